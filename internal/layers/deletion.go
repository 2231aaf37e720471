// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/moments"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/oldwords"
)

// decideDeletion takes a layer down: not while another layer needs it or
// objects of others would be lost with it, then by way of the orphan's grace,
// in reverse order. A hold does not stop it, but a layer that may not go yet is
// held as any other.
func decideDeletion(o Observation) Decision {
	decision := Decision{
		State: v1alpha1.StatePruning, Reason: v1alpha1.ReasonDeleting, Attempt: o.Layer.Status.Attempt,
		Hold: HoldOf(o.Layer, o.Now), Rollback: o.Layer.Status.Rollback,
	}
	decision.Until = decision.Hold.Until
	if old := oldwords.InLayer(o.Layer); old != "" && !hasBegun(o.Layer) {
		return decision.notDeleted(o, "is not deleted as it is written: "+old)
	}
	if blocked := o.blockingLayersMessage(); blocked != "" && !hasBegun(o.Layer) {
		decision.Causes = o.dependantCauses()
		return decision.notDeleted(o, blocked)
	}
	if decision := deletionOnRemote(o); decision != nil {
		return *decision
	}
	if o.KindError != nil {
		decision.Reason, decision.Retry = v1alpha1.ReasonPruneFailed, o.KindError
		decision.Message = kindMessage(o)
		in := o.keepEverything()
		// Once the deletion has begun, nothing is created again.
		in.MayWrite = !hasBegun(o.Layer)
		decision.Plan = dependents.Make(in)
		return decision
	}
	if o.BlockersError != nil && o.AsksForBlockers() {
		decision.Retry = o.BlockersError
		return decision.notDeleted(o, fmt.Sprintf("is not deleted while it cannot be looked up what stands in the way: %v", o.BlockersError))
	}
	if blocked := blockersMessage(o.Blockers); blocked != "" && o.AsksForBlockers() {
		decision.Until = moments.Earlier(decision.Until, o.Now.Add(blockersPeriod))
		return decision.notDeleted(o, blocked)
	}
	if before, waits := decision.beforeDeletion(o); waits {
		return before
	}
	return decision.deletes(o)
}

// notDeleted says what is in the way of a deletion. What is deployed stays and is
// repaired.
func (d Decision) notDeleted(o Observation, message string) Decision {
	d.Reason, d.Message = v1alpha1.ReasonDeletionBlocked, message
	d.Plan = dependents.Make(o.keepEverything())
	d.Plan.Conflicts = nil
	return d
}

// deletes removes what the layer has, and lets it go when nothing is left.
func (d Decision) deletes(o Observation) Decision {
	d.Deleting = true
	in := o.baseInput()
	// The annotation counts until the layer is gone, and goes with it.
	in.MayPrune, in.EndDoubt = true, o.endsDoubt()
	if o.Layer.Spec.OnDeletion() != v1alpha1.DeletionPolicyDelete {
		for i := range in.Inventory {
			in.Inventory[i].Deletion, in.Inventory[i].Spared = dependents.DeletionOrphan, ""
		}
	}
	d.Plan = dependents.Make(in)
	d.Hold, d.Until = Hold{}, d.Plan.Until
	left := len(d.Plan.Inventory)
	// A status that does not count may have left out what there is: it is written again first.
	d.Finalized = left == 0 && len(d.Plan.Forsaken) == 0 && !v1alpha1.IsForeign(o.Layer.Status.Conditions)
	if left == 0 && !d.Finalized {
		// The status reports what is given up before the layer goes, and what there is.
		d.Until = o.Now
	}
	d.Message, d.Waits = "has nothing left", true
	if worst, found := objects.Worst(d.Plan.Standings); found {
		d.Reason = cmp.Or(worst.Reason, d.Reason)
		d.Message = fmt.Sprintf("is being deleted, %d objects left: %s %s",
			len(d.Plan.Inventory), worst.ID, worst.Message)
	}
	return d
}

// dependants returns the names of layers that depend on this one and have
// something deployed, but for members of its own cycle: those would wait for
// each other for ever. Where the layer says itself which layers go first, those
// that are going are in nobody's way.
func (o Observation) dependants() []string {
	var names []string
	for name, other := range o.Layers {
		if other.Layer == nil || !goesBefore(other.Layer, o.Layer) || o.reaches(name) {
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// reaches tells whether this layer depends on another, directly or not.
func (o Observation) reaches(target string) bool {
	seen := map[string]bool{}
	var visit func(layer *v1alpha1.AddonsLayer) bool
	visit = func(layer *v1alpha1.AddonsLayer) bool {
		if layer == nil || seen[layer.Name] {
			return false
		}
		seen[layer.Name] = true
		return slices.ContainsFunc(dependencies.Names(layer.Spec.Prereqs.DependsOn), func(name string) bool {
			return name == target || visit(o.Layers[name].Layer)
		})
	}
	return visit(o.Layer)
}

func dependsOn(layer *v1alpha1.AddonsLayer, name string) bool {
	return slices.Contains(dependencies.Names(layer.Spec.Prereqs.DependsOn), name)
}
