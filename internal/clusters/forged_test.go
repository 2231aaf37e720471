// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/forged"
)

// Whatever somebody has written into the fields of a RemoteCluster's status of which nothing is
// to follow, the copy of its kubeconfig is written and deleted as if they had not.
func TestForgedStatusOfARemoteCluster(t *testing.T) {
	for name, change := range map[string]func(*Observation){
		"well":            func(*Observation) {},
		"without a copy":  func(o *Observation) { o.Live = nil },
		"another one":     func(o *Observation) { o.Identity.UID = "another" },
		"another content": func(o *Observation) { o.Access.KubeConfig, o.Access.Digest = []byte("token: other "), "two" },
	} {
		o := observation(change)
		honest := verbsOf(Decide(o))
		for _, forgery := range forged.Each(t, v1alpha1.RemoteClusterKind, o.Cluster.Status, func(s v1alpha1.RemoteClusterStatus) v1alpha1.RemoteClusterStatus { return *s.DeepCopy() }) {
			changed := o
			changed.Cluster = o.Cluster.DeepCopy()
			changed.Cluster.Status = forgery.Status
			if diff := cmp.Diff(honest, verbsOf(Decide(changed))); diff != "" {
				t.Errorf("%s: %s: %s", name, forgery.Name, diff)
			}
		}
	}
}

// verbsOf returns what a decision writes, and to what.
func verbsOf(d Decision) []string {
	var all []string
	for _, action := range d.Plan.Actions {
		all = append(all, string(action.Verb)+" "+action.ID.String())
	}
	return all
}
