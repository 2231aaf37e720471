// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/objects"
)

// hand says whether an object may be taken from its owner.
type hand struct {
	// from names the owner it is taken from; "" where nobody or the primary
	// itself has it.
	from string
	// waits says what is waited for before it may be taken; "" for nothing.
	waits string
	// claim is the rightful owner's, which makes taking it a conflict.
	claim *Claim
}

// handOver judges whether this primary may take a live object, which is owned
// by another one only while that one lists it.
func (p *planner) handOver(live *unstructured.Unstructured, id objects.ID) hand {
	owner := p.owner(live)
	if owner == "" || owner == p.Owner {
		return hand{}
	}
	for _, claim := range p.Others.Listed[id] {
		if claim.Owner == owner {
			return hand{claim: &claim}
		}
	}
	if p.Others.Elsewhere[owner] != "" {
		return hand{claim: &Claim{Owner: owner, ID: id}}
	}
	switch {
	case !p.Others.Existing[owner]:
		return hand{from: owner}
	case p.Others.Unreadable[owner]:
		return hand{waits: fmt.Sprintf("belongs to layer %s, and what that layer lists cannot be read", owner)}
	case live.GetLabels()[p.Keys.Orphaned] == "":
		return hand{waits: fmt.Sprintf("belongs to layer %s, which no longer lists it and has yet to let it go", owner)}
	default:
		return hand{from: owner}
	}
}

// findConflicts looks for wanted objects that another primary rightfully has,
// and for two objects that stand for the same exclusive thing.
func (p *planner) findConflicts() {
	exclusive := map[string]objects.ID{}
	for i := range p.Wanted {
		d := &p.Wanted[i]
		if d.Mode == ModeObserve || d.Shared || d.LeftAlone != "" {
			continue
		}
		if live := p.Live[d.ID]; live != nil {
			if h := p.handOver(live, d.ID); h.claim != nil {
				p.conflict(Conflict{ID: d.ID, Origin: d.Origin, Owner: h.claim.Owner, OwnerOrigin: h.claim.Origin, With: d.ID})
			}
		}
		if d.Exclusive == "" {
			continue
		}
		if first, taken := exclusive[d.Exclusive]; taken {
			p.conflict(Conflict{ID: d.ID, Origin: d.Origin, Owner: p.Owner, OwnerOrigin: p.wanted[first].Origin, With: first})
		} else {
			exclusive[d.Exclusive] = d.ID
		}
		p.findExclusiveConflicts(d)
	}
}

// findExclusiveConflicts looks for live objects that stand for the same thing
// as a wanted one and are listed still; and for those that are about to be made.
// For what no primary has nobody vouches: it is no more than a contest.
func (p *planner) findExclusiveConflicts(d *Dependent) {
	for _, id := range p.inTheWay(d) {
		if claim, listed := firstClaim(p.Others.Listed[id]); listed {
			p.conflict(Conflict{ID: d.ID, Origin: d.Origin, Owner: claim.Owner, OwnerOrigin: claim.Origin, With: id})
		} else if p.isForeign(id) {
			p.plan.Contested = append(p.plan.Contested, Contest{ID: d.ID, Origin: d.Origin, With: id, Waits: p.waitsForRival(d, id)})
		} else if owner := p.owner(p.Live[id]); owner != p.Owner && p.Others.Elsewhere[owner] != "" {
			p.conflict(Conflict{ID: d.ID, Origin: d.Origin, Owner: owner, With: id})
		}
	}
	if live := p.Live[d.ID]; live == nil || p.owner(live) != p.Owner {
		p.findEarlierClaim(d)
	}
}

// findEarlierClaim looks for another primary that wants the same thing under
// another name, while none of them has it yet. No object is there on which only
// one of them could win, so the first in the order of their names does.
func (p *planner) findEarlierClaim(d *Dependent) {
	claims := slices.DeleteFunc(slices.Clone(p.Others.Exclusive[d.Exclusive]), func(c Claim) bool {
		return c.ID == d.ID || c.Owner >= p.Owner || p.Live[c.ID] != nil
	})
	if claim, found := firstClaim(claims); found {
		p.conflict(Conflict{ID: d.ID, Origin: d.Origin, Owner: claim.Owner, OwnerOrigin: claim.Origin, With: claim.ID})
	}
}

// isForeign tells whether nobody vouches for a live object that is not listed: it
// is in no primary's inventory, and its labels say nothing that could be acted on.
// Any tenant can make such an object.
func (p *planner) isForeign(id objects.ID) bool {
	live := p.Live[id]
	owner := p.owner(live)
	_, own := p.entries[id]
	switch {
	case own || owner != "" && p.Others.Holds[id] == owner:
		return false
	case p.Apart[id]:
		return true
	case live.GetDeletionTimestamp() != nil && !objects.IsSuspended(live):
		return true
	case owner == "":
		return live.GetAnnotations()[p.Keys.SupersededBy] == ""
	}
	return owner != p.Owner && p.Others.Existing[owner]
}

// waitsForRival tells whether a wanted object waits for a foreign one that stands
// for the same: only one that is not there yet, and only for one that may get there
// first.
func (p *planner) waitsForRival(d *Dependent, id objects.ID) bool {
	live := p.Live[d.ID]
	isThere := p.entries[d.ID].Digest != "" || live != nil && p.owner(live) == p.Owner
	return !isThere && !p.Idle[id]
}

func (p *planner) conflict(c Conflict) { p.plan.Conflicts = append(p.plan.Conflicts, c) }

// makeRoom deals with live objects that stand for the same thing as a wanted
// one: they are suspended and owned before the wanted one is written. It
// returns which one is still waited for, and why.
func (p *planner) makeRoom(d *Dependent) (objects.ID, string) {
	for _, id := range p.inTheWay(d) {
		live := p.Live[id]
		if p.isForeign(id) {
			if p.waitsForRival(d, id) {
				return id, fmt.Sprintf(
					"waits for %s, which stands for the same Helm release and which no layer has: suspend it and delete it then, which uninstalls nothing, or list it in a layer",
					id,
				)
			}
			continue
		}
		if p.Stale[id] {
			return id, fmt.Sprintf("waits for %s, which was written a moment ago", id)
		}
		if live.GetDeletionTimestamp() != nil && !objects.IsSuspended(live) {
			return id, fmt.Sprintf("waits for %s, which %s", id, objects.Going(live, "is being uninstalled", " and must be gone first"))
		}
		h := p.handOver(live, id)
		if h.waits != "" {
			return id, fmt.Sprintf("waits for %s, which %s", id, h.waits)
		}
		if live.GetAnnotations()[p.Keys.SupersededBy] == d.ID.Key().String() && objects.IsSuspended(live) && p.owner(live) == p.Owner {
			continue
		}
		action := Action{Verb: VerbSupersede, ID: id, Stage: d.Stage, Successor: d.ID}
		if h.from != "" {
			action.From = []string{h.from}
		}
		p.act(action)
		p.superseding[id] = true
		if _, known := p.entries[id]; !known {
			p.adoptEntry(id, d)
		}
	}
	return objects.ID{}, ""
}

// adoptEntry takes an object that d succeeds into the inventory.
func (p *planner) adoptEntry(id objects.ID, d *Dependent) {
	entry := Entry{ID: id, Status: objects.StatusSuperseded, Since: p.Now, Origin: d.Origin, Assess: d.Assess}
	p.entries[id] = entry
	p.stand(entry, objects.Standing{
		Health: objects.Progressing, Status: objects.StatusSuperseded, Unwanted: true,
		Message: fmt.Sprintf("is succeeded by %s", d.ID),
	})
}
