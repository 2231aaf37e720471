// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/internal/objects"
)

// allIDs are the objects of random worlds.
var allIDs = []objects.ID{a, b, c, releaseID("d"), configID("s"), configID("t"), issuerID("i"), jobID("j")}

func chance(t *rapid.T, percent int, what string) bool {
	return rapid.IntRange(0, 99).Draw(t, what) >= 100-percent
}

// drawWorld returns any world, also such as never come about.
func drawWorld(t *rapid.T) Input {
	in := world(exists("other", "third"))
	in.Held, in.SuspendHeld = chance(t, 15, "held"), chance(t, 50, "suspend held")
	in.MayPrune, in.MayWrite = chance(t, 80, "may prune"), chance(t, 85, "may write")
	in.RepairOnly, in.Abandon = chance(t, 25, "repair only"), chance(t, 20, "abandon")
	in.Others.Unreadable["other"] = chance(t, 15, "other is unreadable")
	in.Others.MayList, in.EndDoubt = map[objects.ID][]Doubt{}, chance(t, 10, "doubts end")
	in.NotServed = map[objects.ServedKind]bool{issuerID("").ServedKind(): chance(t, 30, "not served")}
	for _, id := range allIDs {
		drawWanted(t, &in, id)
		drawEntry(t, &in, id)
		drawLive(t, &in, id)
		in.Keep[id] = chance(t, 10, "kept")
		in.Stale[id] = chance(t, 10, "stale")
		if chance(t, 10, "others may list it") {
			in.Others.MayList[id] = []Doubt{{Owner: "third"}, {Owner: "other", Why: "a file has its name"}}
		}
		for _, owner := range []string{"third", "other"} {
			if chance(t, 12, "claimed") {
				listedBy(owner, id)(&in)
			}
		}
	}
	for _, exclusive := range []string{"x", "y"} {
		if chance(t, 15, "claimed by another name") {
			in.Others.Exclusive[exclusive] = []Claim{{Owner: "third", ID: releaseID("z")}, {Owner: "other", ID: releaseID("y")}}
		}
	}
	return in
}

func drawWanted(t *rapid.T, in *Input, id objects.ID) {
	if !chance(t, 60, "wanted") {
		return
	}
	d := want(id, digest(rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, "digest")),
		mode(rapid.SampledFrom([]Mode{"", ModeApply, ModeApply, ModeCreateOnce, ModeObserve}).Draw(t, "mode")))
	if id.Kind == "HelmRelease" {
		d.Exclusive = rapid.SampledFrom([]string{"x", "y", "helm/" + id.Name, "helm/" + id.Name}).Draw(t, "stands for")
		for _, other := range allIDs[:4] {
			if other.Name < id.Name && chance(t, 20, "depends") {
				d.DependsOn = append(d.DependsOn, other)
			}
		}
	}
	in.Wanted = append(in.Wanted, d)
}

func drawEntry(t *rapid.T, in *Input, id objects.ID) {
	if !chance(t, 65, "in the inventory") {
		return
	}
	e := had(id)
	e.Status = rapid.SampledFrom([]string{objects.StatusReady, objects.StatusOrphaned, objects.StatusOrphaned, objects.StatusSuperseded, objects.StatusNotServed, objects.StatusMissing}).Draw(t, "status")
	e.Since = testNow.Add(-time.Duration(rapid.Int64Range(0, int64(3*testGrace)).Draw(t, "ago")))
	if chance(t, 10, "orphan") {
		e.Deletion = DeletionOrphan
	}
	if chance(t, 15, "undeployed") {
		e.Digest, e.Generation, e.ResourceVersion = "", 0, ""
	}
	e.Completed = chance(t, 25, "completed")
	in.Inventory = append(in.Inventory, e)
}

func drawLive(t *rapid.T, in *Input, id objects.ID) {
	if !chance(t, 75, "live") {
		return
	}
	obj := object(id, ownedBy(rapid.SampledFrom([]string{"base", "base", "base", "other", "gone", ""}).Draw(t, "owner")))
	if id.Kind == "HelmRelease" {
		obj = release(id.Name, ownedBy(obj.GetLabels()[testKeys.Owner]))
		exclusive := rapid.SampledFrom([]string{"x", "y", "helm/" + id.Name, "helm/" + id.Name}).Draw(t, "has")
		in.Exclusive[exclusive] = append(in.Exclusive[exclusive], id)
	}
	for _, option := range []struct {
		percent int
		change  change
	}{
		{25, generation(2)},
		{20, notReady},
		{40, orphaned},
		{10, label(testKeys.Orphaned, "2026-01-02T03.04.00Z")},
		{20, suspended},
		{10, deleting},
		{10, formerlyOwned},
		{20, version("8")},
		{10, heldByStrata},
		{10, supersededBy("a")},
		{10, supersededBy("b")},
		{30, expires},
		{30, complete},
	} {
		if chance(t, option.percent, "option") {
			option.change(obj)
		}
	}
	in.Live[id] = obj
}

// shuffled returns the same world with all its slices in another order.
func shuffled(t *rapid.T, in Input) Input {
	in.Wanted = rapid.Permutation(in.Wanted).Draw(t, "wanted")
	for i := range in.Wanted {
		in.Wanted[i].DependsOn = slices.Clone(in.Wanted[i].DependsOn)
	}
	in.Inventory = rapid.Permutation(in.Inventory).Draw(t, "inventory")
	doubts := map[objects.ID][]Doubt{}
	for id, owners := range in.Others.MayList {
		doubts[id] = reversed(owners)
	}
	in.Others.MayList = doubts
	listed, exclusive, taken := map[objects.ID][]Claim{}, map[string][]objects.ID{}, map[string][]Claim{}
	for id, claims := range in.Others.Listed {
		listed[id] = reversed(claims)
	}
	for name, ids := range in.Exclusive {
		exclusive[name] = reversed(ids)
	}
	for name, claims := range in.Others.Exclusive {
		taken[name] = reversed(claims)
	}
	in.Others.Listed, in.Exclusive, in.Others.Exclusive = listed, exclusive, taken
	return in
}

func reversed[T any](list []T) []T {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

// printed writes a world down, with the objects that it points to.
func printed(in Input) string {
	objs := map[objects.ID]map[string]any{}
	for id, obj := range in.Live {
		objs[id] = obj.Object
	}
	in.Live = nil
	return fmt.Sprintf("%+v %v", in, objs)
}

func TestMakeIsAFunction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawWorld(t)
		before := printed(in)
		plan := Make(in)
		if diff := cmp.Diff(plan, Make(in)); diff != "" {
			t.Fatalf("made twice:\n%s", diff)
		}
		if after := printed(in); before != after {
			t.Fatalf("the input is changed: %s", cmp.Diff(before, after))
		}
		if diff := cmp.Diff(plan, Make(shuffled(t, in))); diff != "" {
			t.Fatalf("the order matters:\n%s", diff)
		}
	})
}

// TestMakeIsSafe says what no plan may do, in whatever world.
func TestMakeIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawWorld(t)
		plan := Make(in)
		s := safety{T: t, Input: in, plan: plan, entries: map[objects.ID]Entry{}, wanted: map[objects.ID]*Dependent{}}
		for _, e := range in.Inventory {
			s.entries[e.ID] = e
		}
		for i := range in.Wanted {
			s.wanted[in.Wanted[i].ID] = &in.Wanted[i]
		}
		s.checkPlan()
		checkStandings(t, plan)
		seen := map[objects.ID][]Verb{}
		for _, action := range plan.Actions {
			if slices.Contains(seen[action.ID], action.Verb) {
				t.Errorf("%s %s twice", action.Verb, action.ID)
			}
			seen[action.ID] = append(seen[action.ID], action.Verb)
			s.checkAction(action)
		}
		for id, verbs := range seen {
			final := slices.DeleteFunc(verbs, func(v Verb) bool { return v.Phase() == PhasePreparation })
			if len(final) > 1 {
				t.Errorf("%v of one object: %s", final, id)
			}
		}
	})
}

type safety struct {
	*rapid.T
	Input
	plan    Plan
	entries map[objects.ID]Entry
	wanted  map[objects.ID]*Dependent
}

func (s *safety) checkPlan() {
	if s.plan.Until != (time.Time{}) && !s.plan.Until.After(s.Now) {
		s.Errorf("the next look is not in the future: %v", s.plan.Until)
	}
	known := map[objects.ID]bool{}
	for i, e := range s.plan.Inventory {
		known[e.ID] = true
		if i > 0 && s.plan.Inventory[i-1].ID.Compare(e.ID) >= 0 {
			s.Errorf("the inventory is not in order at %s", e.ID)
		}
	}
	if len(s.plan.Standings) != len(s.plan.Inventory) {
		s.Errorf("%d objects have %d standings", len(s.plan.Inventory), len(s.plan.Standings))
	}
	for id := range s.wanted {
		if !known[id] {
			s.Errorf("%s is wanted and not in the inventory", id)
		}
	}
	for id := range s.entries {
		if live := s.Live[id]; live != nil && s.owner(id) == s.Owner && !known[id] {
			s.Errorf("%s is forgotten while it is there", id)
		}
	}
}

func (s *safety) owner(id objects.ID) string { return s.Live[id].GetLabels()[testKeys.Owner] }

func (s *safety) listed(id objects.ID, owner string) bool {
	return slices.ContainsFunc(s.Others.Listed[id], func(c Claim) bool { return c.Owner == owner })
}

func (s *safety) checkAction(action Action) {
	id, live := action.ID, s.Live[action.ID]
	conflicts := len(s.plan.Conflicts) > 0
	if (s.Held || conflicts) && (action.Verb != VerbSuspend || conflicts || !s.SuspendHeld) {
		s.Errorf("%s %s of a primary that is held", action.Verb, id)
	}
	if s.Stale[id] {
		s.Errorf("%s %s, which is not as it is seen", action.Verb, id)
	}
	if live != nil && (action.UID != live.GetUID() || action.ResourceVersion != live.GetResourceVersion()) {
		s.Errorf("%s %s does not say what it saw", action.Verb, id)
	}
	switch action.Verb {
	case VerbWrite:
		s.checkWrite(action)
		s.checkTaken(action)
	case VerbAdopt, VerbSupersede:
		s.checkTaken(action)
	case VerbMark, VerbRelease, VerbDelete:
		s.checkRemoval(action)
	case VerbSuspend:
		if !s.SuspendHeld || objects.IsSuspended(live) {
			s.Errorf("%s is suspended", id)
		}
	default:
		if s.owner(id) != s.Owner {
			s.Errorf("%s %s of %q", action.Verb, id, s.owner(id))
		}
	}
}

func (s *safety) checkWrite(action Action) {
	d := s.wanted[action.ID]
	switch entry := s.entries[action.ID]; {
	case d == nil || d.Mode == ModeObserve:
		s.Errorf("%s is written and not wanted", action.ID)
	case !s.MayWrite, s.RepairOnly && entry.Digest != d.Digest:
		s.Errorf("%s is written behind a closed gate", action.ID)
	case s.NotServed[action.ID.ServedKind()]:
		s.Errorf("%s is of a kind that is not served", action.ID)
	case action.ID == jobID("j") && entry.Completed && entry.Digest == d.Digest && s.Live[action.ID] == nil:
		s.Errorf("%s is run again", action.ID)
	case action.UID != "" && s.Live[action.ID].GetDeletionTimestamp() != nil:
		s.Errorf("%s is being deleted", action.ID)
	}
}

// checkTaken checks that nothing is taken from somebody who lists it, or may.
func (s *safety) checkTaken(action Action) {
	live := s.Live[action.ID]
	if live == nil || s.owner(action.ID) == "" || s.owner(action.ID) == s.Owner {
		return
	}
	owner := s.owner(action.ID)
	letGo := live.GetLabels()[testKeys.Orphaned] != "" && !s.Others.Unreadable[owner] || !s.Others.Existing[owner]
	if s.listed(action.ID, owner) || !letGo || !slices.Equal(action.From, []string{owner}) {
		s.Errorf("%s is taken from %s", action.ID, owner)
	}
}

func (s *safety) checkRemoval(action Action) {
	id, live, entry := action.ID, s.Live[action.ID], s.entries[action.ID]
	if !s.MayPrune || live == nil || s.wanted[id] != nil || s.Keep[id] || s.owner(id) != s.Owner {
		s.Errorf("%s %s, which is to stay", action.Verb, id)
		return
	}
	if action.Verb != VerbRelease && live.GetDeletionTimestamp() != nil {
		s.Errorf("%s %s, which is going already", action.Verb, id)
	}
	if action.Verb != VerbDelete {
		return
	}
	if successor := live.GetAnnotations()[testKeys.SupersededBy]; successor != "" {
		next := releaseID(successor[len("default/"):])
		if !objects.IsSuspended(live) || s.wanted[next] == nil || objects.AssessObject(objects.AssessCondition, s.Live[next]).Health != objects.Ready {
			s.Errorf("%s goes before its successor is ready", id)
		}
		return
	}
	switch {
	case entry.Status != objects.StatusOrphaned || live.GetLabels()[testKeys.Orphaned] == "" || s.Now.Sub(entry.Since) < s.Grace:
		s.Errorf("%s goes before its grace is over", id)
	case live.GetLabels()[testKeys.Orphaned] == "2026-01-02T03.04.00Z":
		s.Errorf("%s goes although it was marked a moment ago", id)
	case entry.Deletion == DeletionOrphan, len(s.Others.Listed[id]) > 0, len(s.Others.MayList[id]) > 0 && !s.EndDoubt:
		s.Errorf("%s goes although it is kept or may be wanted", id)
	case id.Kind == "HelmRelease" && objects.IsSuspended(live) && !s.Abandon:
		s.Errorf("%s goes while it is suspended", id)
	}
}
