// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"testing"

	"github.com/strata-project/strata/internal/objects"
)

func TestMakeOwnership(t *testing.T) {
	others := release("a", ownedBy("other"))
	let := release("a", ownedBy("other"), orphaned)
	runPlanCases(t, map[string]planCase{
		"listed still": {
			reason:    "the owner keeps what it lists, and nothing at all is done by the second",
			in:        world(wanted(want(a), want(b)), lives(others), listedBy("other", a)),
			standings: []string{"a progressing Deployed: has yet to be applied", "b progressing NotDeployed: has yet to be applied"},
			conflicts: []string{`a (a.yaml) with a of "other" (other/a.yaml)`},
		},
		"listed still, with a forged label": {
			reason:    "the label of an orphan takes nothing from an owner that lists the object",
			in:        world(wanted(want(a)), lives(let), listedBy("other", a)),
			standings: []string{"a progressing Deployed: has yet to be applied"},
			conflicts: []string{`a (a.yaml) with a of "other" (other/a.yaml)`},
		},
		"listed by a third": {
			reason:    "of two who may have it, one is first",
			in:        world(wanted(want(a)), lives(let), exists("other"), listedBy("third", a)),
			actions:   []string{"Write a from other"},
			standings: []string{"a progressing Deployed: has yet to be applied"},
		},
		"let go": {
			reason:    "an orphan that is listed here is adopted",
			in:        world(wanted(want(a)), lives(let), exists("other")),
			actions:   []string{"Write a from other"},
			standings: []string{"a progressing Deployed: has yet to be applied"},
		},
		"not yet let go": {
			reason:    "the owner has yet to say so",
			in:        world(wanted(want(a)), lives(others), exists("other")),
			standings: []string{"a blocked Deployed: belongs to layer other, which no longer lists it and has yet to let it go"},
		},
		"owner cannot be read": {
			reason:    "it may still list the object",
			in:        world(wanted(want(a)), lives(let), exists("other"), func(in *Input) { in.Others.Unreadable["other"] = true }),
			standings: []string{"a blocked Deployed: belongs to layer other, and what that layer lists cannot be read"},
		},
		"owner gone": {
			reason:    "there is nobody to let it go",
			in:        world(wanted(want(a)), lives(others)),
			actions:   []string{"Write a from other"},
			standings: []string{"a progressing Deployed: has yet to be applied"},
		},
		"taken after it was deployed here": {
			reason:    "an object that another one took and lists is its own",
			in:        world(wanted(want(a)), inventory(had(a)), lives(others), listedBy("other", a)),
			standings: []string{"a progressing Deployed: has yet to be applied"},
			conflicts: []string{`a (a.yaml) with a of "other" (other/a.yaml)`},
		},
		"forged owner": {
			reason:    "a label with the name of one that is not there takes nothing away",
			in:        world(wanted(want(a)), inventory(had(a)), lives(release("a", ownedBy("nobody")))),
			actions:   []string{"Write a from nobody as a correction"},
			standings: []string{"a progressing Deployed: has yet to be applied"},
		},
		"no longer wanted and taken": {
			reason: "what another one has is forgotten",
			in:     world(inventory(had(a)), lives(others), exists("other")),
		},
		"no longer wanted and nobody's": {
			reason: "pruning needs the label to name this primary",
			in:     world(inventory(had(a)), lives(release("a", unowned))),
		},
		"no longer wanted and gone": {
			reason: "what is gone is forgotten", in: world(inventory(had(a))),
		},
		"a conflict stops a hold's suspensions": {
			reason:    "a conflict changes nothing, in no way",
			in:        world(suspendHeld, wanted(want(a), want(b)), inventory(had(b)), lives(others, release("b")), listedBy("other", a)),
			standings: []string{"a progressing Deployed: has yet to be applied", "b ready Deployed"},
			conflicts: []string{`a (a.yaml) with a of "other" (other/a.yaml)`},
		},
	})
}

func TestMakeRename(t *testing.T) {
	const rival = "waits for HelmRelease default/a, which stands for the same Helm release and which no layer has: suspend it and delete it then, which uninstalls nothing, or list it in a layer"
	shared := sharing("helm/x", a)
	both := sharing("helm/x", a, b)
	successor := want(b, standsFor("helm/x"))
	predecessor := want(a, standsFor("helm/x"))
	old := release("a", suspended, supersededBy("b"))
	superseded := had(a, since(objects.StatusSuperseded, testGrace))
	runPlanCases(t, map[string]planCase{
		"begins": {
			reason:    "the old one is suspended before the new one is written",
			in:        world(wanted(successor), inventory(had(a)), lives(release("a")), shared),
			actions:   []string{"Supersede a for b", "Write b"},
			standings: []string{"b progressing NotDeployed: has yet to be applied", "a progressing Superseded unwanted: is being suspended for its successor"},
		},
		"from another owner": {
			reason:  "moved and renamed at once: it is taken over with its name",
			in:      world(wanted(successor), lives(release("a", ownedBy("other"), orphaned)), holds("other", a), shared),
			actions: []string{"Supersede a from other for b", "Write b"},
			standings: []string{
				"a progressing Superseded unwanted: is succeeded by HelmRelease default/b", "b progressing NotDeployed: has yet to be applied",
			},
		},
		"from another owner that has yet to let go": {
			reason:    "nothing is suspended behind the owner's back",
			in:        world(wanted(successor), lives(release("a", ownedBy("other"))), holds("other", a), shared),
			standings: []string{"b blocked NotDeployed: waits for HelmRelease default/a, which belongs to layer other, which no longer lists it and has yet to let it go"},
		},
		"just suspended": {
			reason:    "the cache has not seen the suspension yet",
			in:        world(wanted(successor), inventory(superseded), lives(release("a")), shared, stale(a)),
			standings: []string{"b blocked NotDeployed: waits for HelmRelease default/a, which was written a moment ago", "a progressing Superseded unwanted: was written a moment ago"},
		},
		"new one not ready": {
			reason:    "the old one stays, suspended",
			in:        world(wanted(successor), inventory(superseded, had(b)), lives(old, release("b", notReady)), both),
			standings: []string{"b progressing InstallFailed: is not ready: no such chart", "a progressing Superseded unwanted: stays suspended until HelmRelease default/b is ready"},
		},
		"new one ready with older content": {
			reason:    "ready means ready with what is wanted now",
			in:        world(wanted(want(b, standsFor("helm/x"), digest("v2"))), inventory(superseded, had(b)), lives(old, release("b")), both),
			actions:   []string{"Write b"},
			standings: []string{"b progressing Deployed: has yet to be applied", "a progressing Superseded unwanted: stays suspended until HelmRelease default/b is ready"},
		},
		"new one ready": {
			reason:  "the old one goes while it is suspended, so that nothing is uninstalled, and waits for no grace",
			in:      world(wanted(successor), inventory(superseded, had(b)), lives(old, release("b")), both),
			actions: []string{"Delete a"},
			standings: []string{
				"b ready Deployed", "a progressing Superseded unwanted: is removed without uninstalling anything, because HelmRelease default/b has succeeded it",
			},
		},
		"old one resumed by hand": {
			reason:    "it would fight its successor, so it is suspended again and never deleted awake",
			in:        world(wanted(successor), inventory(superseded, had(b)), lives(release("a", supersededBy("b")), release("b")), both),
			actions:   []string{"Supersede a for b"},
			standings: []string{"b ready Deployed", "a progressing Superseded unwanted: is being suspended for its successor"},
		},
		"old one resumed and renamed by hand": {
			reason:    "it stands for something else now, and would uninstall that",
			in:        world(wanted(successor), inventory(superseded, had(b)), lives(release("a", supersededBy("b")), release("b")), sharing("helm/x", b)),
			actions:   []string{"Supersede a for b"},
			standings: []string{"b ready Deployed", "a progressing Superseded unwanted: is suspended, because HelmRelease default/b succeeds it"},
		},
		"old one on its way out": {
			reason:    "deleted while suspended; the new one waits for nothing",
			in:        world(wanted(successor), inventory(superseded, had(b)), lives(release("a", suspended, supersededBy("b"), deleting), release("b")), both),
			standings: []string{"b ready Deployed", "a progressing Superseded unwanted: is being removed, and what it installed stays"},
		},
		"old one being uninstalled": {
			reason:  "what is being uninstalled must be gone before it is installed anew",
			in:      world(wanted(successor), inventory(had(a)), lives(release("a", deleting)), shared),
			actions: nil,
			standings: []string{
				"b blocked NotDeployed: waits for HelmRelease default/a, which is being uninstalled and must be gone first", "a progressing Deleting unwanted: is being removed",
			},
		},
		"taken back": {
			reason:  "the old name is listed again: it is resumed, and the new one goes the same way as the old one had",
			in:      world(wanted(predecessor), inventory(superseded, had(b)), lives(old, release("b")), both),
			actions: []string{"Resume a", "Supersede b for a"},
			standings: []string{
				"a ignored Suspended: is suspended", "b progressing Superseded unwanted: is being suspended for its successor",
			},
		},
		"neither listed any more": {
			reason:    "the old one goes the way of every other orphan",
			in:        world(inventory(superseded, had(c)), lives(old, release("c"))),
			actions:   []string{"Resume a", "Mark c"},
			standings: []string{"a progressing InProgress unwanted: is resumed, because its successor is no longer listed", "c progressing Orphaned unwanted: waits until 2026-01-02T03:05:06Z for another layer to adopt it"},
			until:     testNow.Truncate(1e9).Add(testGrace + 1e9),
		},
		"neither listed, both kept": {
			reason:  "beside its successor it stays suspended, for both would fight for one Helm release",
			in:      world(inventory(had(a, since(objects.StatusSuperseded, testGrace), retained), had(b, retained)), lives(old, release("b"))),
			actions: []string{"Release a", "Release b"},
			standings: []string{
				"a ignored Kept unwanted: is released and stays suspended, because HelmRelease default/b succeeds it", "b ignored Kept unwanted: is released and kept",
			},
		},
		"kept without successor": {
			reason:    "a successor that never came does not keep it suspended",
			in:        world(inventory(had(a, since(objects.StatusSuperseded, testGrace), retained)), lives(old)),
			actions:   []string{"Resume a"},
			standings: []string{"a progressing InProgress unwanted: is resumed, because its successor is no longer listed"},
		},
		"gate closed": {
			reason:    "before the new one may be written, the old one is an orphan that is kept for it",
			in:        world(repairOnly, wanted(successor), inventory(had(a)), lives(release("a")), shared),
			actions:   []string{"Mark a kept for base"},
			standings: []string{"b progressing NotDeployed: has yet to be applied", "a ignored Orphaned unwanted: is kept for layer base, which lists it"},
		},
		"held": {
			reason:    "a rename waits for the end of a hold",
			in:        world(held, wanted(successor), inventory(superseded, had(b)), lives(old, release("b")), both),
			standings: []string{"b ready Deployed", "a ignored Superseded unwanted: is no longer listed"},
		},
		"both listed": {
			reason:    "one Helm release cannot be two",
			in:        world(wanted(successor, predecessor), inventory(had(a)), lives(release("a")), shared),
			standings: []string{"a ready Deployed", "b progressing NotDeployed: has yet to be applied"},
			conflicts: []string{`b (b.yaml) with a of "base" (a.yaml)`},
		},
		"the other one listed elsewhere": {
			reason:    "another primary lists the object that stands for the same",
			in:        world(wanted(successor), lives(release("a", ownedBy("other"))), shared, listedBy("other", a)),
			standings: []string{"b progressing NotDeployed: has yet to be applied"},
			conflicts: []string{`b (b.yaml) with a of "other" (other/a.yaml)`},
		},
		"listed elsewhere, several": {
			reason:    "the conflict is the same whatever order they come in",
			in:        world(wanted(successor), lives(release("a", ownedBy("zeta"))), shared, listedBy("zeta", a), listedBy("alpha", a)),
			standings: []string{"b progressing NotDeployed: has yet to be applied"},
			conflicts: []string{`b (b.yaml) with a of "alpha" (alpha/a.yaml)`},
		},
		"nobody's object": {
			reason:    "a Helm release that somebody else may install is not taken over by another name, and nothing else waits for that",
			in:        world(wanted(successor, want(c)), lives(release("a", unowned)), shared),
			actions:   []string{"Write c"},
			standings: []string{"b blocked NotDeployed: " + rival, "c progressing NotDeployed: has yet to be applied"},
			contested: []string{"b waits for a"},
		},
		"nobody's object, suspended": {
			reason:    "what installs nothing is in nobody's way",
			in:        world(wanted(successor), lives(release("a", unowned, suspended)), shared, idle(a)),
			actions:   []string{"Write b"},
			standings: []string{"b progressing NotDeployed: has yet to be applied"},
			contested: []string{"b beside a"},
		},
		"nobody's object, beside what is deployed": {
			reason:    "what is deployed goes on, whoever comes later",
			in:        world(wanted(successor), inventory(had(b)), lives(release("a", unowned), release("b")), both),
			standings: []string{"b ready Deployed"},
			contested: []string{"b beside a"},
		},
		"nobody's object, beside what was changed": {
			reason:    "what is deployed is repaired, and gets what is new",
			in:        world(wanted(want(b, standsFor("helm/x"), digest("v2"))), inventory(had(b)), lives(release("a", unowned), release("b")), both),
			actions:   []string{"Write b"},
			standings: []string{"b progressing Deployed: has yet to be applied"},
			contested: []string{"b beside a"},
		},
		"nobody's object, beside what was deleted": {
			reason:    "what was deployed comes again",
			in:        world(wanted(successor), inventory(had(b)), lives(release("a", unowned)), shared),
			actions:   []string{"Write b as a correction"},
			standings: []string{"b progressing NotDeployed: has yet to be applied"},
			contested: []string{"b beside a"},
		},
		"nobody's object, with the label of another owner": {
			reason:    "a label is written by whoever may write the object: the owner that it names does not have it",
			in:        world(wanted(successor), lives(release("a", ownedBy("other"), suspended)), exists("other"), shared, idle(a)),
			actions:   []string{"Write b"},
			standings: []string{"b progressing NotDeployed: has yet to be applied"},
			contested: []string{"b beside a"},
		},
		"nobody's object, beside what is deployed, with the label of another owner": {
			reason:    "a forged label does not make what is deployed wait",
			in:        world(wanted(want(b, standsFor("helm/x"), digest("v2"))), inventory(had(b)), lives(release("a", ownedBy("other")), release("b")), exists("other"), both),
			actions:   []string{"Write b"},
			standings: []string{"b progressing Deployed: has yet to be applied"},
			contested: []string{"b beside a"},
		},
		"nobody's object, that is never gone": {
			reason:    "what somebody deletes and keeps with a finalizer does not make what is deployed wait, whatever it is labelled",
			in:        world(wanted(want(b, standsFor("helm/x"), digest("v2"))), inventory(had(b)), lives(release("a", deleting), release("b")), both),
			actions:   []string{"Write b"},
			standings: []string{"b progressing Deployed: has yet to be applied"},
			contested: []string{"b beside a"},
		},
		"nobody's, of a rename under way": {
			reason:  "a rename whose label of ownership went missing goes on",
			in:      world(wanted(successor), lives(release("a", unowned, suspended, supersededBy("b"))), shared),
			actions: []string{"Supersede a for b", "Write b"},
			standings: []string{
				"a progressing Superseded unwanted: is succeeded by HelmRelease default/b", "b progressing NotDeployed: has yet to be applied",
			},
		},
		"kept": {
			reason:    "an object that will be wanted again is in nobody's way",
			in:        world(repairOnly, wanted(successor), inventory(had(a), had(b)), lives(release("a"), release("b", generation(2))), both, func(in *Input) { in.Keep[a] = true }),
			actions:   []string{"Write b as a correction"},
			standings: []string{"b progressing InProgress: has yet to be applied", "a progressing Deployed: has yet to be applied"},
		},
	})
}
