// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/objects"
)

var a, b, c = releaseID("a"), releaseID("b"), releaseID("c")

func TestMakeWrites(t *testing.T) {
	settings := configID("settings")
	runPlanCases(t, map[string]planCase{
		"create": {
			reason:    "what does not exist is written",
			in:        world(wanted(want(a))),
			actions:   []string{"Write a"},
			standings: []string{"a progressing NotDeployed: has yet to be applied"},
		},
		"current": {
			reason:    "an object at the generation of the last apply of this content needs nothing",
			in:        world(wanted(want(a)), inventory(had(a)), lives(release("a"))),
			standings: []string{"a ready Deployed"},
		},
		"changed": {
			reason:    "other content is written, and is no correction",
			in:        world(wanted(want(a, digest("v2"))), inventory(had(a)), lives(release("a"))),
			actions:   []string{"Write a"},
			standings: []string{"a progressing Deployed: has yet to be applied"},
		},
		"drift by generation": {
			reason:    "somebody changed the specification",
			in:        world(wanted(want(a)), inventory(had(a)), lives(release("a", generation(2)))),
			actions:   []string{"Write a as a correction"},
			standings: []string{"a progressing InProgress: has yet to be applied"},
		},
		"drift by resourceVersion": {
			reason:    "kinds without a generation are compared by the version after the last apply",
			in:        world(wanted(want(settings)), inventory(had(settings)), lives(config("settings", version("8")))),
			actions:   []string{"Write settings as a correction"},
			standings: []string{"settings progressing Deployed: has yet to be applied"},
		},
		"a status that others write": {
			reason: "the fields that were applied are whose they were, whatever the status has become",
			in: world(
				wanted(want(settings, saying("a", "1"))), inventory(had(settings, func(e *Entry) { e.Fields = notedFields() })),
				lives(config("settings", version("8"), applied, func(o *unstructured.Unstructured) {
					o.Object["status"] = map[string]any{"used": "1"}
				})),
			),
			standings: []string{"settings ready Deployed"},
		},
		"a field that others write": {
			reason: "a field that was applied is no longer the primary's",
			in: world(
				wanted(want(settings, saying("a", "1"))), inventory(had(settings, func(e *Entry) { e.Fields = "of two fields" })),
				lives(config("settings", version("8"), applied)),
			),
			actions:   []string{"Write settings as a correction"},
			standings: []string{"settings progressing Deployed: has yet to be applied"},
		},
		"current without generation": {
			reason:    "the version after the last apply needs nothing",
			in:        world(wanted(want(settings)), inventory(had(settings)), lives(config("settings"))),
			standings: []string{"settings ready Deployed"},
		},
		"made in its place": {
			reason:    "an object that somebody made in the place of the one that was applied is another, whatever its generation",
			in:        world(wanted(want(a)), inventory(had(a, func(e *Entry) { e.UID = "01234567" })), lives(release("a", func(o *unstructured.Unstructured) { o.SetUID("76543210-9") }))),
			actions:   []string{"Write a as a correction"},
			standings: []string{"a progressing Deployed: has yet to be applied"},
		},
		"the very object": {
			reason:    "the beginning of the UID tells that it is the one that was applied",
			in:        world(wanted(want(a)), inventory(had(a, func(e *Entry) { e.UID = "01234567" })), lives(release("a", func(o *unstructured.Unstructured) { o.SetUID("01234567-9") }))),
			standings: []string{"a ready Deployed"},
		},
		"gone": {
			reason:    "what somebody deleted is made again",
			in:        world(wanted(want(a)), inventory(had(a))),
			actions:   []string{"Write a as a correction"},
			standings: []string{"a progressing NotDeployed: has yet to be applied"},
		},
		"label gone": {
			reason:    "the label of ownership is restored by applying",
			in:        world(wanted(want(a)), inventory(had(a)), lives(release("a", unowned))),
			actions:   []string{"Write a as a correction"},
			standings: []string{"a progressing Deployed: has yet to be applied"},
		},
		"nobody's": {
			reason:    "objects that nobody owns are adopted",
			in:        world(wanted(want(a)), lives(release("a", unowned))),
			actions:   []string{"Write a"},
			standings: []string{"a progressing Deployed: has yet to be applied"},
		},
		"stale cache": {
			reason:    "nothing is decided from what is older than the last write, not even marks",
			in:        world(wanted(want(a)), inventory(had(a)), lives(release("a", generation(2), orphaned)), stale(a)),
			standings: []string{"a progressing Deployed: was written a moment ago"},
		},
		"written for the first time, not seen yet": {
			reason:    "the cache lacks what was just created",
			in:        world(wanted(want(a)), stale(a)),
			standings: []string{"a progressing InProgress: was written a moment ago"},
		},
		"being deleted": {
			reason:    "it can only be made again when it is gone",
			in:        world(wanted(want(a)), inventory(had(a)), lives(release("a", deleting))),
			standings: []string{"a progressing Deleting: is being deleted and will be created again"},
		},
		"being deleted, and kept": {
			reason:    "who has to let it go is named",
			in:        world(wanted(want(a)), inventory(had(a)), lives(release("a", deleting, finalized("example.com/stuck")))),
			standings: []string{"a progressing Deleting: is being deleted, kept by example.com/stuck, and will be created again"},
		},
		"being deleted by its successor's doing": {
			reason:    "awake, it would uninstall what it stands for; it goes as it was deleted, suspended",
			in:        world(wanted(want(a)), inventory(had(a)), lives(release("a", suspended, supersededBy("b"), deleting))),
			standings: []string{"a progressing Deleting: is being deleted and will be created again"},
		},
		"being deleted during a hold": {
			reason:    "the same, where a hold has suspended it",
			in:        world(wanted(want(a)), inventory(had(a)), lives(release("a", suspended, annotated(testKeys.SuspendedByHold, "true"), deleting))),
			standings: []string{"a progressing Deleting: is being deleted and will be created again"},
		},
		"listed again": {
			reason:    "the label goes at once, and nothing else is written",
			in:        world(wanted(want(a)), inventory(had(a, since(objects.StatusOrphaned, testGrace/2))), lives(release("a", orphaned))),
			actions:   []string{"Unmark a"},
			standings: []string{"a ready Deployed"},
		},
		"former owner": {
			reason:    "references that garbage collection acts on go before all else",
			in:        world(wanted(want(a)), inventory(had(a, undeployed)), lives(release("a", formerlyOwned))),
			actions:   []string{"Disown a", "Write a"},
			standings: []string{"a progressing Deployed: has yet to be applied"},
		},
		"stages": {
			reason:    "what makes room comes first, then stages in their order",
			in:        world(wanted(want(b), want(a), want(settings)), lives(release("b", orphaned))),
			actions:   []string{"Unmark b", "Write settings", "Write a", "Write b"},
			standings: []string{"settings progressing NotDeployed: has yet to be applied", "a progressing NotDeployed: has yet to be applied", "b progressing Deployed: has yet to be applied"},
		},
		"create once, absent": {
			reason: "it is created", in: world(wanted(want(a, mode(ModeCreateOnce)))),
			actions: []string{"Write a"}, standings: []string{"a progressing NotDeployed: has yet to be applied"},
		},
		"create once, changed": {
			reason:    "it is left alone, whatever becomes of it",
			in:        world(wanted(want(a, mode(ModeCreateOnce), digest("v2"))), inventory(had(a)), lives(release("a", generation(9), observed(9)))),
			standings: []string{"a ready Deployed"},
		},
		"create once, deleted": {
			reason:    "it is made again where it is missing",
			in:        world(wanted(want(a, mode(ModeCreateOnce))), inventory(had(a))),
			actions:   []string{"Write a as a correction"},
			standings: []string{"a progressing NotDeployed: has yet to be applied"},
		},
		"observe, absent": {
			reason: "somebody else makes it", in: world(wanted(want(a, mode(ModeObserve)))),
			standings: []string{"a progressing NotDeployed: does not exist yet"},
		},
		"observe": {
			reason: "it is only looked at, whoever has it", in: world(wanted(want(a, mode(ModeObserve))), lives(release("a", ownedBy("other"), orphaned)), exists("other")),
			standings: []string{"a ready Deployed"},
		},
	})
}

func TestMakeDependencies(t *testing.T) {
	pending := "b progressing NotDeployed: has yet to be applied"
	runPlanCases(t, map[string]planCase{
		"ready": {
			reason:    "a dependency that is Ready at its own generation holds nothing up",
			in:        world(wanted(want(a), want(b, after("a"))), inventory(had(a)), lives(release("a"))),
			actions:   []string{"Write b"},
			standings: []string{"a ready Deployed", pending},
		},
		"not applied": {
			reason:    "what is yet to be applied cannot be ready",
			in:        world(wanted(want(a), want(b, after("a")))),
			actions:   []string{"Write a"},
			standings: []string{"a progressing NotDeployed: has yet to be applied", "b blocked NotDeployed: waits for HelmRelease default/a, which has yet to be applied"},
		},
		"older content": {
			reason:    "Ready with the content of before does not count",
			in:        world(wanted(want(a, digest("v2")), want(b, after("a"))), inventory(had(a)), lives(release("a"))),
			actions:   []string{"Write a"},
			standings: []string{"a progressing Deployed: has yet to be applied", "b blocked NotDeployed: waits for HelmRelease default/a, which has yet to be applied"},
		},
		"older generation": {
			reason: "the controller has not looked at the new generation yet",
			in: world(wanted(want(a), want(b, after("a"))), inventory(had(a, func(e *Entry) { e.Generation = 2 })),
				lives(release("a", generation(2)))),
			standings: []string{
				"a progressing InProgress: is Ready at an older generation",
				"b blocked NotDeployed: waits for HelmRelease default/a, which is Ready at an older generation",
			},
		},
		"just written": {
			reason:    "the cache still shows the object before the write",
			in:        world(wanted(want(a), want(b, after("a"))), inventory(had(a)), lives(release("a")), stale(a)),
			standings: []string{"a progressing Deployed: was written a moment ago", "b blocked NotDeployed: waits for HelmRelease default/a, which has yet to be applied"},
		},
		"failing": {
			reason:    "its own message is passed on",
			in:        world(wanted(want(a), want(b, after("a"))), inventory(had(a)), lives(release("a", notReady))),
			standings: []string{"a progressing InstallFailed: is not ready: no such chart", "b blocked NotDeployed: waits for HelmRelease default/a, which is not ready: no such chart"},
		},
		"suspended": {
			reason:    "a suspended dependency neither blocks nor counts",
			in:        world(wanted(want(a), want(b, after("a"))), inventory(had(a)), lives(release("a", suspended, notReady))),
			actions:   []string{"Write b"},
			standings: []string{"a ignored Suspended: is suspended", pending},
		},
		"not wanted": {
			reason:    "what is not of this primary is not waited for",
			in:        world(wanted(want(b, after("elsewhere")))),
			actions:   []string{"Write b"},
			standings: []string{pending},
		},
		"a correction": {
			reason:    "drift is taken back whatever the dependency does",
			in:        world(wanted(want(a), want(b, after("a"))), inventory(had(a), had(b)), lives(release("a", notReady), release("b", generation(2)))),
			actions:   []string{"Write b as a correction"},
			standings: []string{"a progressing InstallFailed: is not ready: no such chart", "b progressing InProgress: has yet to be applied"},
		},
	})
}

func TestMakeKindsNotServed(t *testing.T) {
	issuer := issuerID("ca")
	unserved := func(in *Input) { in.NotServed = map[objects.ServedKind]bool{issuer.ServedKind(): true} }
	waiting := had(issuer, undeployed, since(objects.StatusNotServed, testGrace))
	runPlanCases(t, map[string]planCase{
		"releases first": {
			reason: "what serves the kind may be one of the releases",
			in:     world(wanted(want(a), want(issuer)), unserved), actions: []string{"Write a"},
			standings: []string{
				"ca blocked KindNotServed (KindNotServed): waits for HelmRelease default/a, after which its kind may be served",
				"a progressing NotDeployed: has yet to be applied",
			},
		},
		"releases ready": {
			reason: "now the kind is missing, and the message says so",
			in:     world(wanted(want(a), want(issuer)), inventory(had(a), waiting), lives(release("a")), unserved),
			standings: []string{
				"ca progressing KindNotServed (KindNotServed): is of kind Issuer.acme.example.com, which the cluster does not serve",
				"a ready Deployed",
			},
		},
		"kind appears early": {
			reason: "the definition is there before what serves it is up",
			in:     world(wanted(want(a), want(issuer)), inventory(had(a), waiting), lives(release("a", notReady))),
			standings: []string{
				"ca blocked KindNotServed (KindNotServed): waits for HelmRelease default/a, after which its kind may be served",
				"a progressing InstallFailed: is not ready: no such chart",
			},
		},
		"kind appears": {
			reason:  "written as soon as everything before it is ready",
			in:      world(wanted(want(a), want(issuer)), inventory(had(a), waiting), lives(release("a"))),
			actions: []string{"Write ca"}, standings: []string{"ca progressing NotDeployed: has yet to be applied", "a ready Deployed"},
		},
		"suspended release": {
			reason:  "it neither blocks nor counts",
			in:      world(wanted(want(a), want(issuer)), inventory(had(a), waiting), lives(release("a", suspended))),
			actions: []string{"Write ca"}, standings: []string{"ca progressing NotDeployed: has yet to be applied", "a ignored Suspended: is suspended"},
		},
		"served from the start": {
			reason:  "a kind that is served waits for nothing",
			in:      world(wanted(want(a), want(issuer))),
			actions: []string{"Write ca", "Write a"},
			standings: []string{
				"ca progressing NotDeployed: has yet to be applied", "a progressing NotDeployed: has yet to be applied",
			},
		},
	})
}

func TestMakeGates(t *testing.T) {
	runPlanCases(t, map[string]planCase{
		"repair only, new": {
			reason: "a closed gate applies nothing new", in: world(repairOnly, wanted(want(a))),
			standings: []string{"a progressing NotDeployed: has yet to be applied"},
		},
		"repair only, changed": {
			reason: "nor new content", in: world(repairOnly, wanted(want(a, digest("v2"))), inventory(had(a)), lives(release("a"))),
			standings: []string{"a progressing Deployed: has yet to be applied"},
		},
		"repair only, drift": {
			reason:    "what is deployed is kept as it is",
			in:        world(repairOnly, wanted(want(a)), inventory(had(a)), lives(release("a", generation(2)))),
			actions:   []string{"Write a as a correction"},
			standings: []string{"a progressing InProgress: has yet to be applied"},
		},
		"repair only, deleted": {
			reason: "and made again where it is missing", in: world(repairOnly, wanted(want(a)), inventory(had(a))),
			actions: []string{"Write a as a correction"}, standings: []string{"a progressing NotDeployed: has yet to be applied"},
		},
		"read only, drift": {
			reason:    "nothing is written where there is nothing to go by",
			in:        world(readOnly, wanted(want(a)), inventory(had(a)), lives(release("a", generation(2)))),
			standings: []string{"a progressing InProgress: has yet to be applied"},
		},
		"adopt while waiting": {
			reason:    "an orphan changes hands although nothing may be applied yet",
			in:        world(repairOnly, wanted(want(a)), lives(release("a", ownedBy("other"), orphaned)), exists("other")),
			actions:   []string{"Adopt a from other"},
			standings: []string{"a progressing Deployed: has yet to be applied"},
		},
		"nothing is adopted without pruning": {
			reason:    "ownership does not change while the directory does not count",
			in:        world(readOnly, wanted(want(a)), lives(release("a", ownedBy("other"), orphaned)), exists("other")),
			standings: []string{"a progressing Deployed: has yet to be applied"},
		},
		"kept": {
			reason:    "what the primary will want again is not unwanted, and loses a label that says so",
			in:        world(readOnly, inventory(had(a), had(b)), lives(release("a", orphaned)), func(in *Input) { in.Keep = map[objects.ID]bool{a: true, b: true} }),
			actions:   []string{"Unmark a"},
			standings: []string{"a progressing Deployed: has yet to be applied", "b progressing Deployed: has yet to be applied"},
		},
		"kept, of another owner": {
			reason:    "the marks of another owner's object are left alone",
			in:        world(readOnly, inventory(had(a)), lives(release("a", orphaned, ownedBy("other"))), func(in *Input) { in.Keep = map[objects.ID]bool{a: true} }),
			standings: []string{"a progressing Deployed: has yet to be applied"},
		},
		"held": {
			reason: "a hold leaves everything as it is",
			in: world(held, wanted(want(a), want(b)), inventory(had(a), had(c)),
				lives(release("a", generation(2), orphaned, formerlyOwned), release("c"))),
			standings: []string{
				"a progressing InProgress: has yet to be applied", "b progressing NotDeployed: has yet to be applied",
				"c ignored Deployed unwanted: is no longer listed",
			},
		},
		"held, releases too": {
			reason:  "those that run are suspended, what is suspended by hand is not marked",
			in:      world(suspendHeld, wanted(want(a), want(b)), inventory(had(a), had(b), had(c)), lives(release("a"), release("b", suspended), release("c"))),
			actions: []string{"Suspend c", "Suspend a"},
			standings: []string{
				"a ready Deployed", "b ignored Suspended: is suspended", "c ignored Deployed unwanted: is no longer listed",
			},
		},
		"held, kept releases too": {
			reason:    "a release that cannot be compared is suspended all the same",
			in:        world(suspendHeld, inventory(had(a)), lives(release("a")), func(in *Input) { in.Keep[a] = true }),
			actions:   []string{"Suspend a"},
			standings: []string{"a progressing Deployed: has yet to be applied"},
		},
		"held, other kinds": {
			reason:    "only releases are suspended",
			in:        world(suspendHeld, wanted(want(configID("s"))), inventory(had(configID("s"))), lives(config("s"))),
			standings: []string{"s ready Deployed"},
		},
		"hold ends": {
			reason: "exactly what the hold suspended is resumed",
			in: world(wanted(want(a), want(b)), inventory(had(a), had(b), had(c, since(objects.StatusOrphaned, testGrace/2))),
				lives(release("a", suspended, heldByStrata), release("b", suspended), release("c", suspended, heldByStrata, orphaned))),
			actions: []string{"Resume c", "Resume a"},
			standings: []string{
				"a ignored Suspended: is suspended", "b ignored Suspended: is suspended",
				"c progressing Orphaned unwanted: waits until 2026-01-02T03:04:36Z for another layer to adopt it",
			},
			until: testNow.Truncate(1e9).Add(31e9),
		},
	})
}

func TestMakeNamesWhatItSaw(t *testing.T) {
	plan := Make(world(wanted(want(b)), lives(release("b", version("41"))), wanted(want(a))))
	type seen struct{ Name, UID, Version string }
	var got []seen
	for _, action := range plan.Actions {
		got = append(got, seen{action.ID.Name, string(action.UID), action.ResourceVersion})
	}
	if diff := cmp.Diff([]seen{{"a", "", ""}, {"b", "uid-b", "41"}}, got); diff != "" {
		t.Errorf("an action is for the object as it was seen (-want +got):\n%s", diff)
	}
}

func TestMakeTellsWhatIsUnchanged(t *testing.T) {
	once := configID("once")
	plan := Make(world(
		wanted(want(a), want(b), want(c, digest("v2")), want(releaseID("d")), want(once, mode(ModeCreateOnce))),
		inventory(had(a), had(b), had(c), had(once)),
		lives(release("a"), release("b", generation(2)), release("c"), config("once", version("8"))),
	))
	if len(plan.Unchanged) != 1 || plan.Unchanged[0].ID != a {
		t.Errorf("unchanged is %v, want a alone: others edited b, c is wanted otherwise, and d is missing", plan.Unchanged)
	}
}
