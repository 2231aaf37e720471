// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"fmt"
	"strings"
	"testing"
)

func TestKubernetesSatisfied(t *testing.T) {
	cases := []struct {
		reason, wanted, cluster string
		want                    bool
	}{
		{"nothing is always met", "", "v1.36.3", true},
		{"nothing is met whatever the cluster says", " ", "dev", true},
		{"a minimum", "1.16", "v1.36.3", true},
		{"a minimum with v", "v1.16", "v1.36.3", true},
		{"a minimum with patch", "1.36.3", "v1.36.3", true},
		{"a minimum with patch, one too few", "1.36.4", "v1.36.3", false},
		{"numbers, not text", "1.9", "v1.10.0", true},
		{"a minimum that is far away", "v99.0", "v1.36.3", false},
		{"a range", ">=1.30 <2", "v1.36.3", true},
		{"a range with a comma", ">=1.30, <1.36", "v1.36.3", false},
		{"a range of minors", ">=1.29 <1.34", "v1.33.9-gke.100", true},
		{"a range of minors, at its lower end", ">=1.29 <1.34", "v1.29.0", true},
		{"a range of minors, below", ">=1.29 <1.34", "v1.28.15-eks-1", false},
		{"a range of minors, at its upper end", ">=1.29 <1.34", "v1.34.0", false},
		{"alternatives", "<1.20 || >=1.36", "v1.36.0", true},
		{"a range with v", ">=v1.30", "v1.36.3", true},
		{"a tilde", "~1.36", "v1.36.9", true},
		{"a tilde that ends", "~1.35", "v1.36.0", false},
		{"a caret", "^1.16", "v1.36.3", true},
		{"a wildcard", "1.36.x", "v1.36.3", true},
		{"exactly", "=1.36.3", "v1.36.3-eks-1", true},
		{"EKS", ">=1.36.3", "v1.36.3-eks-1", true},
		{"EKS, as a minimum", "1.36.3", "v1.36.3-eks-1a2b3c4", true},
		{"GKE", "1.30.5", "v1.30.5-gke.100", true},
		{"GKE, in a range", ">=1.30 <2", "v1.30.5-gke.100", true},
		{"k3s", ">=1.36.3 <1.36.4", "v1.36.3+k3s1", true},
		{"a pre-release of the cluster counts as its version", ">=1.37", "v1.37.0-alpha.1", true},
		{"two numbers", "1.36", "1.36", true},
		{"a cluster's version that is none meets nothing", "1.16", "dev", false},
		{"nor does it meet a range", ">=0", "", false},
	}
	for _, tc := range cases {
		got, err := KubernetesSatisfied(tc.wanted, tc.cluster)
		if got != tc.want || err != nil {
			t.Errorf("%s: %q on %q: got %v, %v", tc.reason, tc.wanted, tc.cluster, got, err)
		}
	}
	for _, wanted := range []string{"latest", "1.2.3.4", ">=", "v", ">=1.30 <two"} {
		if got, err := KubernetesSatisfied(wanted, "v1.36.3"); got || err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q is neither", wanted)) {
			t.Errorf("%q is no version: got %v, %v", wanted, got, err)
		}
	}
}

func FuzzKubernetesSatisfied(f *testing.F) {
	for _, seed := range [][2]string{{"1.16", "v1.36.3"}, {">=1.30 <2", "v1.36.3-eks-1"}, {"v99.0", "v1.30.5-gke.100"}, {"~1.36 || 2.x", "v1.36.3+k3s1"}, {"", ""}, {"-", "x"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, wanted, cluster string) {
		met, err := KubernetesSatisfied(wanted, cluster)
		if met && err != nil {
			t.Errorf("met, and cannot be understood: %v", err)
		}
		plain := leadingVersion.FindString(cluster)
		if again, _ := KubernetesSatisfied(wanted, plain+"-eks-1"); plain != "" && strings.Count(plain, ".") == 2 && again != met {
			t.Errorf("a suffix matters: %q on %q: %v, with another one %v", wanted, cluster, met, again)
		}
	})
}
