// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package solver

import "testing"

func TestSeveralClusters(t *testing.T) {
	catalogue := []Application{{Name: "a", Versions: []Version{{Version: "1.0.0"}, {Version: "2.0.0", Kubernetes: ">=1.31"}}}}
	for _, test := range []struct {
		reason     string
		kubernetes []string
		want       string
	}{
		{"every cluster has what it asks for", []string{"v1.31.1", "v1.32.0"}, "2.0.0"},
		{"one of the clusters does not", []string{"v1.31.1", "v1.30.4"}, "1.0.0"},
		{"no version is known", nil, "1.0.0"},
	} {
		lock, err := Solve(Problem{Picks: []Pick{{Name: "a"}}, Catalogue: catalogue, Kubernetes: test.kubernetes})
		if err != nil || lock[0].Version != test.want {
			t.Errorf("%s: %v %v, not %s", test.reason, lock, err, test.want)
		}
	}
	_, err := Solve(Problem{Picks: []Pick{{Name: "a", Range: "2.0.0"}}, Catalogue: catalogue, Kubernetes: []string{"v1.31.1", "v1.30.4", "v1.31.1"}})
	if want := "no versions fit together: the platform picks a 2.0.0; a 2.0.0 needs Kubernetes >=1.31, the clusters have v1.30.4, v1.31.1"; err == nil || err.Error() != want {
		t.Errorf("%v, not %s", err, want)
	}
}
