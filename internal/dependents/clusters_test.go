// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/internal/objects"
)

const lossMark = "lost"

// withLoss gives the world a mark for what is suspended while a cluster is away.
func withLoss(in *Input) { in.Keys.SuspendedByLoss = lossMark }

func away(in *Input) {
	withLoss(in)
	in.Away, in.MayWrite, in.MayPrune = "fleet/prod", false, false
}

func shared(d *Dependent) { d.Shared, d.Mode, d.Assess = true, ModeCreateOnce, objects.AssessExistence }

func forsaken(cluster string) func(*Input) {
	return func(in *Input) {
		withLoss(in)
		in.Forsaken = map[string]bool{cluster: true}
	}
}

// installsOn has a release of the inventory install on another cluster.
func installsOn(cluster string) func(*Entry) { return func(e *Entry) { e.Target = cluster } }

func TestMakeOfOtherClusters(t *testing.T) {
	there := configID("settings").On("fleet/prod")
	runPlanCases(t, map[string]planCase{
		"away": {
			reason:    "what runs is suspended, so that nobody waits for the cluster, and all else stays",
			in:        world(away, wanted(want(a), want(b)), inventory(had(a, installsOn("fleet/prod")), had(b, installsOn("fleet/prod"))), lives(release("a"), release("b", suspended))),
			actions:   []string{"Suspend a"},
			standings: []string{"a ready Deployed", "b ignored Suspended: is suspended"},
		},
		"away, and another one is not": {
			reason: "what a layer has yet to take off another cluster goes on there",
			in: world(away, inventory(had(a, installsOn("fleet/prod")), had(b, installsOn("fleet/old")), had(c)),
				lives(release("a"), release("b"), release("c"))),
			actions: []string{"Suspend a"},
			standings: []string{
				"a ignored Deployed unwanted: is no longer listed", "b ignored Deployed unwanted: is no longer listed",
				"c ignored Deployed unwanted: is no longer listed",
			},
		},
		"back": {
			reason:    "exactly those that were suspended go on",
			in:        world(withLoss, wanted(want(a), want(b)), inventory(had(a), had(b)), lives(release("a", suspended, annotated(lossMark, "true")), release("b", suspended))),
			actions:   []string{"Resume a"},
			standings: []string{"a ignored Suspended: is suspended", "b ignored Suspended: is suspended"},
		},
		"nobody's, missing": {
			reason:    "it is made where it is missing",
			in:        world(wanted(want(configID("apps"), shared))),
			actions:   []string{"Write apps"},
			standings: []string{"apps progressing NotDeployed: has yet to be created"},
		},
		"nobody's, of another owner": {
			reason:    "whoever has it, it is there",
			in:        world(wanted(want(configID("apps"), shared)), lives(config("apps", ownedBy("other"))), exists("other"), listedBy("other", configID("apps"))),
			standings: []string{"apps ready Deployed"},
		},
		"nobody's, while the layer waits": {
			reason:    "nothing new is made",
			in:        world(repairOnly, wanted(want(configID("apps"), shared))),
			standings: []string{"apps progressing NotDeployed: has yet to be created"},
		},
		"given up": {
			reason:    "what is there is forgotten, and what installed there is suspended before it goes",
			in:        world(forsaken("fleet/prod"), inventory(had(there), had(a, installsOn("fleet/prod")), had(b)), lives(release("a"), release("b"))),
			actions:   []string{"Suspend a", "Mark b"},
			standings: []string{"a progressing Deleting unwanted: is being removed, and what it installed is left behind", "b progressing Orphaned unwanted: waits until 2026-01-02T03:05:06Z for another layer to adopt it"},
			until:     time.Date(2026, 1, 2, 3, 5, 6, 0, time.UTC),
		},
		"given up and suspended": {
			reason:    "now Flux lets it go without asking the cluster",
			in:        world(forsaken("fleet/prod"), inventory(had(a, installsOn("fleet/prod"))), lives(release("a", suspended, annotated(lossMark, "true")))),
			actions:   []string{"Delete a"},
			standings: []string{"a progressing Deleting unwanted: is being removed, and what it installed is left behind"},
		},
	})

	plan := Make(world(forsaken("fleet/prod"), inventory(had(there), had(a, installsOn("fleet/prod"))), lives(release("a", suspended))))
	if diff := cmp.Diff([]objects.ID{there, a}, objects.SortIDs(plan.Forsaken)); diff != "" {
		t.Errorf("what is left behind (-want +got):\n%s", diff)
	}
	for _, entry := range plan.Inventory {
		if entry.ID == there {
			t.Error("what was given up is still in the inventory")
		}
	}
	if plan := Make(world(wanted(want(configID("apps"), shared)))); len(plan.Inventory) != 0 {
		t.Errorf("what belongs to nobody is in the inventory: %v", plan.Inventory)
	}
}

// What somebody else makes is waited for by its name.
func TestMakeWaitsForWhatIsObserved(t *testing.T) {
	observed := want(configID("values"), func(d *Dependent) { d.Mode, d.Object, d.Assess = ModeObserve, Content{}, objects.AssessExistence })
	needs := func(d *Dependent) { d.DependsOn = []objects.ID{configID("values")} }
	runPlanCases(t, map[string]planCase{
		"missing": {
			reason: "nothing is written that would find it missing", in: world(wanted(observed, want(a, needs))),
			standings: []string{"values progressing NotDeployed: does not exist yet", "a blocked NotDeployed: waits for ConfigMap default/values, which does not exist yet"},
		},
		"there": {
			reason: "whoever owns it", in: world(wanted(observed, want(a, needs)), lives(config("values", unowned))), actions: []string{"Write a"},
			standings: []string{"values ready Deployed", "a progressing NotDeployed: has yet to be applied"},
		},
		"optional": {
			reason: "nobody waits for it, and it does not count", in: world(wanted(observed, want(a, needs)), optionalOnes("values")), actions: []string{"Write a"},
			standings: []string{"values ignored NotDeployed: does not exist yet", "a progressing NotDeployed: has yet to be applied"},
		},
	})
}

// optionalOnes makes ConfigMaps that are wanted optional.
func optionalOnes(names ...string) func(*Input) {
	return func(in *Input) {
		for i := range in.Wanted {
			in.Wanted[i].Optional = slices.Contains(names, in.Wanted[i].ID.Name)
		}
	}
}
