// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/fields"
	"github.com/strata-project/strata/internal/objects"
)

// planWanted decides what a wanted object needs.
func (p *planner) planWanted(d *Dependent) {
	entry := p.entries[d.ID]
	entry.ID, entry.Origin, entry.DependsOn = d.ID, d.Origin, d.DependsOn
	live := p.Live[d.ID]

	if standing, waits := p.waitForKind(d, entry); waits {
		p.stand(entry, standing)
		return
	}
	if d.Mode == ModeObserve {
		p.stand(entry, p.observe(d, live))
		return
	}
	if d.Shared {
		p.planShared(d, live)
		return
	}
	if kept := p.Reserved[d.ID]; kept != "" {
		p.standReserved(d, kept)
		return
	}
	if p.Stale[d.ID] {
		p.stand(entry, objects.Standing{Health: objects.Progressing, Status: cmp.Or(entry.Status, objects.StatusProgress), Message: "was written a moment ago"})
		return
	}
	if why := p.leftAlone(d, live); why != "" {
		p.stand(entry, objects.Standing{Health: objects.Ignored, Status: objects.StatusKept, Message: "is left as it is, because of " + why, Current: true})
		return
	}
	if live != nil {
		p.clearMarks(d, live)
	}
	entry = p.noteCompletion(d, entry, live)
	if p.isDone(d, entry, live) {
		p.stand(entry, done())
		return
	}
	if live != nil && live.GetDeletionTimestamp() != nil {
		p.stand(entry, objects.Standing{
			Health: objects.Progressing, Status: objects.StatusDeleting, Message: objects.Going(live, "is being deleted", " and will be created again"),
		})
		return
	}
	dispute, disputed := p.dispute(d)
	unchanged := live != nil && p.isCurrent(d, entry, live)
	if unchanged {
		p.plan.Unchanged = append(p.plan.Unchanged, d)
	}
	if unchanged || live != nil && p.isMadeOnce(d, live) {
		standing := p.standing(d, entry, live, d.judge)
		standing.Current = true
		if p.MayWrite && !p.Held {
			p.makeRoom(d)
		}
		p.stand(entry, standing)
		return
	}
	if disputed && live != nil && entry.Digest == d.Digest && p.owner(live) == p.Owner {
		p.stand(entry, p.planDisputed(d, entry, dispute, live))
		return
	}
	p.stand(entry, p.planWrite(d, entry, live))
}

// leftAlone says why an object is left as it is; empty where it is not. What is to be
// created once and is somebody's already is not the primary's, so that it never removes it.
func (p *planner) leftAlone(d *Dependent, live *unstructured.Unstructured) string {
	switch {
	case d.LeftAlone != "":
		return d.LeftAlone
	case live == nil:
		return ""
	case p.LeftAlone[d.ID] != "":
		return p.LeftAlone[d.ID]
	case d.Mode == ModeCreateOnce && p.owner(live) == "":
		return "its being there already"
	default:
		return ""
	}
}

// judge says how a live object fares.
func (d *Dependent) judge(live *unstructured.Unstructured) objects.Standing {
	if d.Judge != nil {
		return d.Judge(live)
	}
	return d.assess(live)
}

// assess says how a live object fares for those who wait for it.
func (d *Dependent) assess(live *unstructured.Unstructured) objects.Standing {
	if d.Ready != nil {
		return d.Ready(live)
	}
	return objects.AssessObject(d.Assess, live)
}

// planShared creates an object that belongs to nobody where it is missing. It is
// not in the inventory, so nothing ever becomes of it.
func (p *planner) planShared(d *Dependent, live *unstructured.Unstructured) {
	standing := objects.Standing{ID: d.ID, Origin: d.Origin, Health: objects.Ready, Status: objects.StatusReady, Current: true}
	if live == nil {
		standing.Health, standing.Status, standing.Message, standing.Current = objects.Progressing, objects.StatusMissing, "has yet to be created", false
		if p.MayWrite && !p.Held && !p.RepairOnly && !p.Stale[d.ID] {
			p.act(Action{Verb: VerbWrite, ID: d.ID, Stage: d.Stage, Wanted: d})
		}
	}
	p.standings[d.ID] = standing
	p.plan.Standings = append(p.plan.Standings, standing)
}

// standReserved says that a wanted object is not the primary's to have. It does not
// come into the inventory, so nothing ever becomes of it.
func (p *planner) standReserved(d *Dependent, kept string) {
	standing := objects.Standing{ID: d.ID, Origin: d.Origin, Health: objects.Failed, Status: objects.StatusFailed, Message: "is " + kept + ", and is left alone"}
	p.standings[d.ID] = standing
	p.plan.Standings = append(p.plan.Standings, standing)
}

// isMadeOnce tells whether a live object was made by this primary to be left from then on:
// whatever others make of it, it is as it is wanted.
func (p *planner) isMadeOnce(d *Dependent, live *unstructured.Unstructured) bool {
	return d.Mode == ModeCreateOnce && p.owner(live) == p.Owner
}

// isCurrent tells whether a live object is this primary's and still as the
// last apply of this very content left it.
func (p *planner) isCurrent(d *Dependent, entry Entry, live *unstructured.Unstructured) bool {
	if p.owner(live) != p.Owner || entry.Digest == "" || entry.Digest != d.Digest {
		return false
	}
	if entry.UID != "" && entry.UID != shortUID(live.GetUID()) {
		return false
	}
	generation := live.GetGeneration()
	untouched := generation != 0 && generation == entry.Generation || generation == 0 && live.GetResourceVersion() == entry.ResourceVersion
	if objects.IsStrict(d.ID.GroupKind()) {
		return generation == entry.Generation
	}
	if entry.Fields == "" { // of before there were notes
		return untouched
	}
	// A field is the primary's until others change it or take it away. What it says then does not
	// count: the API server may have filled in others beside it that applying takes back.
	note := fields.NoteOf(live)
	if note.Own != entry.Fields || untouched {
		return note.Own == entry.Fields
	}
	// Others have changed the object beside: its status, what an autoscaler sets, or what people add.
	return (!note.Hands || d.Merges) && (note.Replicas || !d.saysReplicas())
}

// planWrite decides whether an object that differs may be written now.
func (p *planner) planWrite(d *Dependent, entry Entry, live *unstructured.Unstructured) objects.Standing {
	repair := entry.Digest != "" && entry.Digest == d.Digest
	pending := objects.Standing{Health: objects.Progressing, Status: objects.StatusMissing, Message: "has yet to be applied"}
	if live != nil {
		// How it fares with another content says nothing of this one.
		pending = objects.AssessObject(d.Assess, live)
		pending.Health, pending.Message, pending.Said = objects.Progressing, "has yet to be applied", ""
	}
	var from []string
	if live != nil {
		h := p.handOver(live, d.ID)
		if h.waits != "" {
			return objects.Standing{Health: objects.Blocked, Status: pending.Status, Message: h.waits}
		}
		if h.from != "" {
			from = []string{h.from}
		}
	}
	if p.Held {
		return pending
	}
	if !p.MayWrite || p.RepairOnly && !repair {
		if live != nil && from != nil && p.MayPrune {
			p.act(Action{Verb: VerbAdopt, ID: d.ID, Stage: d.Stage, From: from})
		}
		return pending
	}
	if !repair {
		if id, waits := p.waitForDependencies(d); waits != "" {
			return objects.Standing{Health: objects.Blocked, Status: pending.Status, Message: waits, WaitsFor: id}
		}
	}
	if id, waits := p.makeRoom(d); waits != "" {
		return objects.Standing{Health: objects.Blocked, Status: pending.Status, Message: waits, WaitsFor: id}
	}
	p.act(Action{
		Verb: VerbWrite, ID: d.ID, Stage: d.Stage, Wanted: d, From: from,
		Correction: repair, Again: live != nil && isAgain(d, entry, live),
	})
	return pending
}

// isAgain tells whether the very object got the very content last.
func isAgain(d *Dependent, entry Entry, live *unstructured.Unstructured) bool {
	return entry.Digest == d.Digest && entry.UID != "" && entry.UID == shortUID(live.GetUID())
}

// waitForDependencies names the first dependency that is not ready with the
// content that is wanted now; a suspended one neither blocks nor counts.
func (p *planner) waitForDependencies(d *Dependent) (objects.ID, string) {
	for _, id := range objects.SortIDs(append([]objects.ID(nil), d.DependsOn...)) {
		dependency, wanted := p.wanted[id]
		if !wanted || dependency.Optional {
			continue
		}
		live := p.Live[id]
		if dependency.Mode == ModeObserve {
			if dependency.Withheld != "" {
				return id, fmt.Sprintf("waits for %s, which %s", id, dependency.Withheld)
			}
			if live == nil {
				return id, fmt.Sprintf("waits for %s, which does not exist yet", id)
			}
			continue
		}
		if !p.Stale[id] && p.isDone(dependency, p.noteCompletion(dependency, p.entries[id], live), live) {
			continue
		}
		if live == nil || p.Stale[id] || !p.isCurrent(dependency, p.entries[id], live) && !p.isMadeOnce(dependency, live) {
			return id, fmt.Sprintf("waits for %s, which has yet to be applied", id)
		}
		standing := p.standing(dependency, p.entries[id], live, dependency.assess)
		if standing.Health > objects.Ignored {
			return id, fmt.Sprintf("waits for %s, which %s", id, cmp.Or(standing.Message, "is "+standing.Status))
		}
	}
	return objects.ID{}, ""
}

// waitForKind deals with objects of a kind that is not served. They come after
// everything that reports readiness, also once the kind has appeared, because
// what serves it may not be up before.
func (p *planner) waitForKind(d *Dependent, entry Entry) (objects.Standing, bool) {
	unserved := p.NotServed[d.ID.ServedKind()]
	if !unserved && (entry.Status != objects.StatusNotServed || !p.MayWrite) {
		return objects.Standing{}, false
	}
	for i := range p.Wanted {
		other := &p.Wanted[i]
		if other.Assess != objects.AssessCondition || p.NotServed[other.ID.ServedKind()] || other.ID == d.ID {
			continue
		}
		live := p.Live[other.ID]
		if live == nil || !p.isCurrent(other, p.entries[other.ID], live) || objects.AssessObject(other.Assess, live).Health > objects.Ignored {
			return objects.Standing{
				Health: objects.Blocked, Status: objects.StatusNotServed, Reason: objects.StatusNotServed, WaitsFor: other.ID,
				Message: fmt.Sprintf("waits for %s, after which its kind may be served", other.ID),
			}, true
		}
	}
	if !unserved {
		return objects.Standing{}, false
	}
	return objects.Standing{
		Health: objects.Progressing, Status: objects.StatusNotServed, Reason: objects.StatusNotServed,
		Message: fmt.Sprintf("is of kind %s, which the cluster does not serve", d.ID.GroupKind()),
	}, true
}

// clearMarks takes back what is said of an object that is wanted: its orphaned
// label, the former owner's reference, and a suspension of Strata's own.
func (p *planner) clearMarks(d *Dependent, live *unstructured.Unstructured) {
	if p.owner(live) != p.Owner {
		return
	}
	if p.isFormerlyOwned(live) {
		p.act(Action{Verb: VerbDisown, ID: d.ID, Stage: d.Stage})
	}
	if live.GetLabels()[p.Keys.Orphaned] != "" {
		p.act(Action{Verb: VerbUnmark, ID: d.ID, Stage: d.Stage})
	}
	p.planHold(d.ID, live, d.Assess, d.Stage)
}

// planHold suspends releases of a held primary, and resumes what a hold or a
// rename that was taken back has suspended. One that is being deleted stays as it
// is: whether that uninstalls anything was decided when it was deleted.
func (p *planner) planHold(id objects.ID, live *unstructured.Unstructured, assess objects.Assess, stage int) {
	if live.GetDeletionTimestamp() != nil {
		return
	}
	suspend := p.Held && isRelease(assess, live) && !objects.IsSuspended(live)
	switch {
	case suspend && p.Away != "" && p.entries[id].Target == p.Away:
		p.act(Action{Verb: VerbSuspend, ID: id, Stage: stage, Mark: p.Keys.SuspendedByLoss})
	case suspend && p.SuspendHeld:
		p.act(Action{Verb: VerbSuspend, ID: id, Stage: stage, Mark: p.Keys.SuspendedByHold})
	case p.Held:
	case p.isSuspendedByUs(live), p.wanted[id] != nil && live.GetAnnotations()[p.Keys.SupersededBy] != "":
		p.act(Action{Verb: VerbResume, ID: id, Stage: stage})
	}
}

// isSuspendedByUs tells whether a hold, or the loss of a cluster, has suspended an
// object.
func (p *planner) isSuspendedByUs(live *unstructured.Unstructured) bool {
	annotations := live.GetAnnotations()
	return annotations[p.Keys.SuspendedByHold] != "" || p.Keys.SuspendedByLoss != "" && annotations[p.Keys.SuspendedByLoss] != ""
}

func (p *planner) isFormerlyOwned(live *unstructured.Unstructured) bool {
	return HasOwner(live, p.Keys)
}

// HasOwner tells whether an object has an ownerReference of the former owner
// kind.
func HasOwner(live *unstructured.Unstructured, keys Keys) bool {
	for _, ref := range live.GetOwnerReferences() {
		if ref.Kind == keys.FormerOwner.Kind && groupOf(ref.APIVersion) == keys.FormerOwner.Group {
			return true
		}
	}
	return false
}

func (p *planner) observe(d *Dependent, live *unstructured.Unstructured) objects.Standing {
	if d.Withheld != "" {
		return objects.Standing{Health: objects.Blocked, Status: objects.StatusMissing, Message: d.Withheld}
	}
	if live == nil {
		return objects.Standing{Health: objects.Progressing, Status: objects.StatusMissing, Message: "does not exist yet"}
	}
	standing := d.assess(live)
	standing.Current = true
	return standing
}
