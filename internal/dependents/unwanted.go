// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/objects"
)

// planUnwanted decides what becomes of an object of the inventory that is no
// longer wanted. An object that has gone, that somebody else has taken, or that is
// not the primary's to have, is forgotten.
func (p *planner) planUnwanted(entry Entry) {
	if _, seen := p.standings[entry.ID]; seen {
		return
	}
	live := p.Live[entry.ID]
	switch {
	case p.Reserved[entry.ID] != "":
	case p.isWantedAs(entry.ID): // by another name of its cluster
	case p.superseding[entry.ID]:
		p.stand(
			entry,
			objects.Standing{Health: objects.Progressing, Status: objects.StatusSuperseded, Unwanted: true, Message: "is being suspended for its successor"},
		)
	case p.Forsaken[entry.ID.Cluster] && entry.ID.Cluster != "":
		p.plan.Forsaken = append(p.plan.Forsaken, entry.ID)
	case p.Forsaken[entry.Target] && entry.Target != "" && live != nil && p.owner(live) == p.Owner && !p.Stale[entry.ID]:
		p.planForsaken(entry, live)
	case p.Keep[entry.ID]:
		if live != nil && !p.Stale[entry.ID] {
			p.keepMarks(entry, live)
		}
		p.stand(entry, objects.Standing{Health: objects.Progressing, Status: cmp.Or(entry.Status, objects.StatusMissing), Message: "has yet to be applied"})
	case p.Stale[entry.ID]:
		p.undecided(entry.ID)
		p.stand(entry, objects.Standing{Health: objects.Progressing, Status: entry.Status, Unwanted: true, Message: "was written a moment ago"})
	case live == nil || p.owner(live) != p.Owner:
	case p.isFormerlyOwned(live) && !p.Held:
		p.act(Action{Verb: VerbDisown, ID: entry.ID})
		p.stand(entry, objects.Standing{Health: objects.Progressing, Status: entry.Status, Unwanted: true, Message: "is taken over"})
	case p.Held || !p.MayPrune || entry.Stays:
		p.planHold(entry.ID, live, entry.Assess, 0)
		p.stand(
			entry,
			objects.Standing{Health: objects.Ignored, Status: cmp.Or(entry.Status, objects.StatusProgress), Unwanted: true, Message: "is no longer listed"},
		)
	case live.GetAnnotations()[p.Keys.SupersededBy] != "":
		p.planSuperseded(entry, live)
	case entry.Deletion == DeletionOrphan:
		p.planHold(entry.ID, live, entry.Assess, 0)
		p.act(Action{Verb: VerbRelease, ID: entry.ID, Spared: entry.Spared})
		p.stand(
			entry,
			objects.Standing{Health: objects.Ignored, Status: objects.StatusKept, Unwanted: true, Message: objects.Told("is released and kept", entry.Spared)},
		)
	case live.GetDeletionTimestamp() != nil:
		p.stand(entry, objects.Standing{
			Health: objects.Progressing, Status: objects.StatusDeleting, Unwanted: true, Message: objects.Going(live, "is being removed", ""),
		})
	default:
		p.planOrphan(entry, live)
	}
}

// isWantedAs tells whether an object is wanted, or kept, by another name of its
// cluster.
func (p *planner) isWantedAs(id objects.ID) bool {
	return slices.ContainsFunc(p.Twins[id.Cluster], func(cluster string) bool {
		twin := id.On(cluster)
		return p.wanted[twin] != nil || p.Keep[twin]
	})
}

// planForsaken deletes a release whose cluster was given up. It is suspended
// first: Flux then lets it go without asking the cluster, and what it installed
// stays there.
func (p *planner) planForsaken(entry Entry, live *unstructured.Unstructured) {
	standing := objects.Standing{
		Health:   objects.Progressing,
		Status:   objects.StatusDeleting,
		Unwanted: true,
		Message:  objects.Going(live, "is being removed", ", and what it installed is left behind"),
	}
	switch {
	case !objects.IsSuspended(live):
		// It may be on its way already, and wait for an answer of its cluster.
		p.act(Action{Verb: VerbSuspend, ID: entry.ID, Mark: p.Keys.SuspendedByLoss})
	case live.GetDeletionTimestamp() == nil:
		p.plan.Forsaken = append(p.plan.Forsaken, entry.ID)
		p.act(Action{Verb: VerbDelete, ID: entry.ID})
	}
	p.stand(entry, standing)
}

// undecided notes an object that goes at a later look, unless another primary
// lists it.
func (p *planner) undecided(id objects.ID) {
	if _, claimed := p.claimOn(id); !claimed {
		p.plan.Undecided = append(p.plan.Undecided, id)
	}
}

// keepMarks takes the orphaned label off what the primary lists again.
func (p *planner) keepMarks(entry Entry, live *unstructured.Unstructured) {
	if p.owner(live) != p.Owner {
		return
	}
	if live.GetLabels()[p.Keys.Orphaned] != "" {
		p.act(Action{Verb: VerbUnmark, ID: entry.ID})
	}
	p.planHold(entry.ID, live, entry.Assess, 0)
}

// planOrphan marks an unwanted object, waits for its grace, and deletes it
// when nobody wants it and nothing that outlives it is in the way.
func (p *planner) planOrphan(entry Entry, live *unstructured.Unstructured) {
	if p.Grace < 0 {
		p.stand(entry, p.planDelete(entry, live))
		return
	}
	claim, claimed := p.claimOn(entry.ID)
	marked := live.GetLabels()[p.Keys.Orphaned] != ""
	if !marked || entry.Status != objects.StatusOrphaned {
		p.act(Action{Verb: VerbMark, ID: entry.ID, Moment: p.Now, KeptFor: claim.Owner})
		entry.Since, entry.Status = p.Now, objects.StatusOrphaned
	} else if entry.Since.After(p.Now) { // the clock was set back: begin again
		entry.Since = p.Now
	} else if since := p.markedAt(live); since.After(entry.Since) && !since.After(p.Now) {
		entry.Since = since
	}
	p.planHold(entry.ID, live, entry.Assess, 0)
	orphaned := objects.Standing{Health: objects.Progressing, Status: objects.StatusOrphaned, Unwanted: true}
	due := p.dueOf(entry)
	switch {
	case claimed:
		orphaned.Health = objects.Ignored
		orphaned.Message = fmt.Sprintf("is kept for layer %s, which lists it", claim.Owner)
	case p.Now.Before(due):
		p.until(due)
		orphaned.Until = due
		orphaned.Message = fmt.Sprintf("waits until %s for another layer to adopt it", due.UTC().Format(time.RFC3339))
	case len(p.Others.MayList[entry.ID]) > 0 && !p.EndDoubt:
		orphaned.Health = objects.Blocked
		orphaned.Message = p.doubtMessage(p.Others.MayList[entry.ID])
	default:
		if len(p.Others.MayList[entry.ID]) > 0 {
			p.plan.Doubted = append(p.plan.Doubted, entry.ID)
		}
		orphaned = p.planDelete(entry, live)
	}
	p.stand(entry, orphaned)
}

// doubtMessage names all primaries that may list an object, the reason of the first that
// has one, and what ends the doubt.
func (p *planner) doubtMessage(doubts []Doubt) string {
	sorted := slices.SortedFunc(slices.Values(doubts), func(a, b Doubt) int {
		return cmp.Or(strings.Compare(a.Owner, b.Owner), strings.Compare(a.Why, b.Why))
	})
	var names []string
	why := ""
	for _, doubt := range sorted {
		names = append(names, doubt.Owner)
		if why == "" && doubt.Why != "" {
			why = fmt.Sprintf(" (%s: %s)", doubt.Owner, doubt.Why)
		}
	}
	message := fmt.Sprintf("is kept while it is not known whether layer %s lists it%s", strings.Join(slices.Compact(names), ", "), why)
	if p.Keys.AllowPrune != "" {
		message += fmt.Sprintf(": if none does set the annotation %s to %q", p.Keys.AllowPrune, "next")
	}
	return message
}

// dueOf returns when the grace of an orphan is over, in whole seconds. The
// inventory keeps such, cut off: it is never sooner than the grace. Nor is it
// for a clock that was set forward, as far as is known how long it has waited.
func (p *planner) dueOf(entry Entry) time.Time {
	due := entry.Since.Truncate(time.Second).Add(p.Grace + time.Second)
	if waited, known := p.Waited[entry.ID]; known {
		if steady := p.Now.Add(p.Grace - waited).Truncate(time.Second).Add(time.Second); steady.After(due) {
			return steady
		}
	}
	return due
}

// claimOn returns the first claim of another primary on an object, or on what
// it stands for.
func (p *planner) claimOn(id objects.ID) (Claim, bool) {
	claims := slices.Clone(p.Others.Listed[id])
	for _, exclusive := range p.standsFor[id] {
		for _, d := range p.successors[exclusive] {
			if d.ID != id {
				claims = append(claims, Claim{Owner: p.Owner, Origin: d.Origin, ID: d.ID})
			}
		}
		claims = append(claims, p.Others.Exclusive[exclusive]...)
	}
	return firstClaim(claims)
}

// firstClaim returns the claim that messages name, whatever the order.
func firstClaim(claims []Claim) (Claim, bool) {
	if len(claims) == 0 {
		return Claim{}, false
	}
	return slices.MinFunc(claims, func(a, b Claim) int {
		return cmp.Or(strings.Compare(a.Owner, b.Owner), strings.Compare(a.Origin, b.Origin), a.ID.Compare(b.ID))
	}), true
}

// planDelete deletes an object whose grace is over, in reverse order, and
// never a suspended release, which Flux would drop without uninstalling it.
func (p *planner) planDelete(entry Entry, live *unstructured.Unstructured) objects.Standing {
	waiting := objects.Standing{Health: objects.Progressing, Status: objects.StatusOrphaned, Unwanted: true}
	if user, found := p.userOf(entry); found {
		waiting.Message, waiting.WaitsFor = fmt.Sprintf("goes after %s", user), user
		return waiting
	}
	if user, found := p.oldUserOf(entry); found {
		waiting.Message, waiting.WaitsFor = fmt.Sprintf("goes when %s, which may still use it, has been applied anew", user), user
		return waiting
	}
	if isRelease(entry.Assess, live) {
		if standing, waits := p.awaitResume(live); waits {
			return standing
		}
		if standing, waits := p.awaitAction(live); waits {
			return standing
		}
	}
	p.act(Action{Verb: VerbDelete, ID: entry.ID})
	waiting.Message = "is being removed"
	return waiting
}

// awaitResume waits for a release that a hold suspended and that is being
// resumed; one that somebody else suspended is in the way.
func (p *planner) awaitResume(live *unstructured.Unstructured) (objects.Standing, bool) {
	waiting := objects.Standing{Health: objects.Progressing, Status: objects.StatusOrphaned, Unwanted: true}
	switch {
	case p.isSuspendedByUs(live):
		waiting.Message = "is resumed before it is removed"
	case objects.IsSuspended(live) && !p.Abandon:
		waiting.Health, waiting.Reason = objects.Blocked, ReasonSuspended
		waiting.Message = "is suspended, so Flux would drop it without uninstalling anything: " +
			"resume it, or abandon what it installed with the annotation " + p.Keys.Abandon
	default:
		return objects.Standing{}, false
	}
	return waiting, true
}

// defaultTimeout is what Flux gives an action of a release that names no timeout.
const defaultTimeout = 5 * time.Minute

// actionMargin is added to the timeout of an action, for what comes before and
// after it.
const actionMargin = time.Minute

// TimeoutOf returns how long an action of a release may take, by Flux's rules.
func TimeoutOf(release *unstructured.Unstructured) time.Duration {
	if text, _, _ := unstructured.NestedString(release.Object, "spec", "timeout"); text != "" {
		if timeout, err := time.ParseDuration(text); err == nil {
			return timeout
		}
	}
	return defaultTimeout
}

// awaitAction waits for a release that Flux is installing or upgrading right now.
// Where helm-controller dies in the middle of that it may not know any more, after
// that, that there is something to uninstall. It is not waited for longer than the
// action may take.
func (p *planner) awaitAction(live *unstructured.Unstructured) (objects.Standing, bool) {
	action, runs := actionOf(live)
	if !runs || objects.IsSuspended(live) {
		return objects.Standing{}, false
	}
	if action.Since.After(p.Now.Add(actionMargin)) { // by a wrong clock, which may be years ahead
		return objects.Standing{}, false
	}
	end := action.Since.Add(TimeoutOf(live) + actionMargin)
	if !p.Now.Before(end) {
		return objects.Standing{}, false
	}
	p.until(end)
	return objects.Standing{
		Health:   objects.Progressing,
		Status:   objects.StatusOrphaned,
		Unwanted: true,
		Until:    end,
		Message: objects.Told(
			fmt.Sprintf("waits until %s at most for Flux to be done with it", end.UTC().Format(time.RFC3339)),
			action.Message,
		),
		Said: action.Message,
	}, true
}

// actionOf returns what a release says of the action that Flux is in the middle of.
// Between two actions, as when it has unlocked a release that it left half done, it
// is not Ready already, and the next action follows at once.
func actionOf(live *unstructured.Unstructured) (objects.Condition, bool) {
	ready, _ := objects.ConditionOf(live, "Ready")
	if ready.Status == "Unknown" && ready.Reason == "Progressing" {
		return ready, true
	}
	reconciling, _ := objects.ConditionOf(live, "Reconciling")
	if ready.Status != "False" || !objects.RunsAction(reconciling) {
		return objects.Condition{}, false
	}
	if ready.Since.After(reconciling.Since) {
		reconciling.Since = ready.Since
	}
	return reconciling, true
}

// userOf finds an object that must go before this one: one that depends on it,
// or one of a higher rank. Objects that somebody else will have do not count.
func (p *planner) userOf(entry Entry) (objects.ID, bool) {
	for _, other := range p.Inventory {
		live := p.Live[other.ID]
		if other.ID == entry.ID || p.wanted[other.ID] != nil || p.Keep[other.ID] || other.Deletion == DeletionOrphan ||
			live == nil || p.owner(live) != p.Owner {
			continue
		}
		if other.Rank <= entry.Rank && !slices.Contains(other.DependsOn, entry.ID) {
			continue
		}
		if _, claimed := p.claimOn(other.ID); !claimed {
			return other.ID, true
		}
	}
	return objects.ID{}, false
}

// oldUserOf finds a wanted release that is not as it is wanted now, and so may
// still use what only its old content refers to. A layer that may only repair
// holds all of its releases to their old content.
func (p *planner) oldUserOf(entry Entry) (objects.ID, bool) {
	if objects.IsReleaseKind(entry.ID.GroupKind()) {
		return objects.ID{}, false
	}
	for i := range p.Wanted {
		d := &p.Wanted[i]
		live := p.Live[d.ID]
		if objects.IsReleaseKind(d.ID.GroupKind()) && live != nil && (p.RepairOnly || !p.isCurrent(d, p.entries[d.ID], live)) {
			return d.ID, true
		}
	}
	return objects.ID{}, false
}

// planSuperseded deletes a suspended object once its successor is ready, so
// that what both stand for lives on. Without successor it is resumed, to go
// the way of every other orphan, but for one that is to be kept beside it.
func (p *planner) planSuperseded(entry Entry, live *unstructured.Unstructured) {
	standing := objects.Standing{Health: objects.Progressing, Status: objects.StatusSuperseded, Unwanted: true}
	id := p.successorOf(entry, live)
	successor := p.wanted[id]
	switch {
	case live.GetDeletionTimestamp() != nil:
		standing.Message = objects.Going(live, "is being removed", ", and what it installed stays")
	case successor == nil && entry.Deletion == DeletionOrphan && p.Live[id] != nil:
		p.act(Action{Verb: VerbRelease, ID: entry.ID})
		standing.Health, standing.Status = objects.Ignored, objects.StatusKept
		standing.Message = fmt.Sprintf("is released and stays suspended, because %s succeeds it", id)
	case successor == nil:
		p.undecided(entry.ID)
		p.act(Action{Verb: VerbResume, ID: entry.ID})
		standing.Status, standing.Message = objects.StatusProgress, "is resumed, because its successor is no longer listed"
	case !objects.IsSuspended(live):
		p.act(Action{Verb: VerbSupersede, ID: entry.ID, Successor: id})
		standing.Message = fmt.Sprintf("is suspended, because %s succeeds it", id)
	case p.isSettled(successor):
		p.act(Action{Verb: VerbDelete, ID: entry.ID})
		standing.Message = fmt.Sprintf("is removed without uninstalling anything, because %s has succeeded it", id)
	default:
		standing.Message, standing.WaitsFor = fmt.Sprintf("stays suspended until %s is ready", id), id
	}
	p.stand(entry, standing)
}

// successorOf returns the object that succeeds a superseded one.
func (p *planner) successorOf(entry Entry, live *unstructured.Unstructured) objects.ID {
	id := entry.ID
	id.Namespace, id.Name, _ = strings.Cut(live.GetAnnotations()[p.Keys.SupersededBy], "/")
	return id
}

func (p *planner) isSettled(d *Dependent) bool {
	live := p.Live[d.ID]
	return live != nil && !p.Stale[d.ID] && p.isCurrent(d, p.entries[d.ID], live) &&
		objects.AssessObject(d.Assess, live).Health == objects.Ready
}

// isRelease tells whether deleting an object uninstalls something: the kinds
// of Flux that know suspend and are assessed by their condition.
func isRelease(assess objects.Assess, live *unstructured.Unstructured) bool {
	gk := live.GroupVersionKind().GroupKind()
	return assess == objects.AssessCondition && objects.IsReleaseKind(gk)
}

func groupOf(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		return ""
	}
	return group
}

// OrphanedValue returns the moment of an action as the orphaned label says it: RFC
// 3339 in UTC, with "." for ":", which labels must not have.
func (a Action) OrphanedValue() string {
	return strings.ReplaceAll(a.Moment.UTC().Format(time.RFC3339), ":", ".")
}

// markedAt returns the moment that the orphaned label of an object says: later than
// what the inventory says where a mark was refused at first, and what has become of
// the next one was not recorded. It is zero where the label says no moment.
func (p *planner) markedAt(live *unstructured.Unstructured) time.Time {
	moment, err := time.Parse(time.RFC3339, strings.ReplaceAll(live.GetLabels()[p.Keys.Orphaned], ".", ":"))
	if err != nil {
		return time.Time{}
	}
	return moment
}
