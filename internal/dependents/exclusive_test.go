// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"testing"

	"github.com/strata-project/strata/internal/objects"
)

// Nothing is there yet on which only one of two could win, so their names
// decide; "base" is this one.
func TestMakeExclusiveListedAtOnce(t *testing.T) {
	claimed := func(owner string, id objects.ID) func(*Input) {
		return func(in *Input) {
			in.Others.Exclusive["helm/x"] = append(in.Others.Exclusive["helm/x"], Claim{Owner: owner, Origin: owner + "/" + id.Name + ".yaml", ID: id})
		}
	}
	mine := want(a, standsFor("helm/x"))
	refused := []string{`a (a.yaml) with b of "apps" (apps/b.yaml)`}
	pending := []string{"a progressing NotDeployed: has yet to be applied"}
	runPlanCases(t, map[string]planCase{
		"by one that is first": {
			reason: "the other one will make its own", in: world(wanted(mine), claimed("apps", b)),
			conflicts: refused, standings: pending,
		},
		"by several that are first": {
			reason: "the message names the first of all", in: world(wanted(mine), claimed("aqua", b), claimed("apps", b)),
			conflicts: refused, standings: pending,
		},
		"by one that comes later": {
			reason: "it is the other one that is refused", in: world(wanted(mine), claimed("core", b)),
			actions: []string{"Write a"}, standings: pending,
		},
		"under the same name": {
			reason: "creating the one object decides", in: world(wanted(mine), claimed("apps", a)),
			actions: []string{"Write a"}, standings: pending,
		},
		"by a newcomer": {
			reason:    "who has it keeps it, whoever lists it too",
			in:        world(wanted(mine), inventory(had(a)), lives(release("a")), sharing("helm/x", a), claimed("apps", b)),
			standings: []string{"a ready Deployed"},
		},
	})
}
