// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"strings"
	"testing"
)

func TestCheckVersion(t *testing.T) {
	for _, version := range []string{
		"v1.30.1", "1.30.1", "v1.30", "v1.33.5-eks-113cf36", "v1.30.5-gke.1014001", "v1.29.3+k3s1", "v1.31.0-alpha.1+b1e5a1b4",
		"v1.27.16+vmware.1-fips.1", "v0.0.0-master+$Format:%H$",
	} {
		if err := CheckVersion(version); err != nil {
			t.Errorf("%q: %v", version, err)
		}
	}
	for reason, version := range map[string]string{
		"nothing":                  "",
		"a word":                   "x",
		"a number":                 "1",
		"a long one":               "v1." + strings.Repeat("3", 40000),
		"a long suffix":            "v1.30.1+" + strings.Repeat("a", 60),
		"a forged line":            "v1.30.1\n\x1b[31mforged line",
		"a line at its end":        "v1.30.1\n",
		"text behind it":           "v1.30.1 is deployed",
		"another direction":        "v1.30.1-\u202Ea",
		"a link":                   "v1.30.1-[x](http://evil.example)",
		"an object of a page":      "v1.30.1-<img>",
		"other digits":             "v\u0661.30.1",
		"what is no text":          "v1.30.1-\xff",
		"more numbers than it has": "v99999.1.1",
	} {
		err := CheckVersion(version)
		if err == nil || !strings.Contains(err.Error(), "no API server of Kubernetes") || version != "" && strings.Contains(err.Error(), version+" ") {
			t.Errorf("%s: the error is %v", reason, err)
		}
	}
}
