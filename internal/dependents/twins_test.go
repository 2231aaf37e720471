// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import "testing"

// A cluster that has two names: what is there by one of them is the same by the
// other, and what another primary has by the other name is not taken over.
func TestMakeOfTwins(t *testing.T) {
	red, blue := configID("settings").On("fleet/red"), configID("settings").On("fleet/blue")
	twins := func(in *Input) {
		in.Twins = map[string][]string{"fleet/red": {"fleet/blue"}, "fleet/blue": {"fleet/red"}}
	}
	elsewhere := func(owner string) func(*Input) {
		return func(in *Input) { in.Others.Elsewhere = map[string]string{owner: "RemoteCluster fleet/red"} }
	}
	mine := want(a, standsFor("helm/x"))
	pending := []string{"a progressing NotDeployed: has yet to be applied"}
	refused := []string{`a (a.yaml) with b of "other" ()`}
	runPlanCases(t, map[string]planCase{
		"moved from one name to the other": {
			reason:    "nothing is removed: it is the very object that is wanted",
			in:        world(twins, wanted(want(blue)), inventory(had(red))),
			actions:   []string{"Write settings"},
			standings: []string{"settings progressing NotDeployed: has yet to be applied"},
		},
		"a release that another one has": {
			reason: "it is not superseded, though nobody lists it", in: world(twins, elsewhere("other"), wanted(mine), lives(release("b", ownedBy("other"), orphaned)), sharing("helm/x", b), exists("other"), holds("other", b)),
			conflicts: refused, standings: pending,
		},
		"an object that another one has let go": {
			reason:    "it is not adopted",
			in:        world(twins, elsewhere("other"), wanted(want(a)), lives(release("a", ownedBy("other"), orphaned)), exists("other")),
			conflicts: []string{`a (a.yaml) with a of "other" ()`}, standings: []string{"a progressing Deployed: has yet to be applied"},
		},
		"an object of the same name's": {
			reason:  "what is handed over by one name is adopted as ever",
			in:      world(twins, elsewhere("third"), wanted(want(a)), lives(release("a", ownedBy("other"), orphaned)), exists("other")),
			actions: []string{"Write a from other"}, standings: []string{"a progressing Deployed: has yet to be applied"},
		},
	})
}
