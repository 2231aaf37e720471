// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/moments"
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
	if blocked := o.blockingLayersMessage(); blocked != "" && !hasBegun(o.Layer) {
		decision.Reason, decision.Message, decision.Causes = v1alpha1.ReasonDeletionBlocked, blocked, o.dependantCauses()
		decision.Plan = dependents.Make(o.keepEverything())
		decision.Plan.Conflicts = nil
		return decision
	}
	if decision := deletionOnRemote(o); decision != nil {
		return *decision
	}
	if o.KindError != nil {
		decision.Reason, decision.Retry = v1alpha1.ReasonPruneFailed, o.KindError
		decision.Message = kindMessage(o)
		in := o.keepEverything()
		// What has been taken away is not brought back.
		in.MayWrite = !hasBegun(o.Layer)
		decision.Plan = dependents.Make(in)
		return decision
	}
	if o.BlockersError != nil && o.AsksForBlockers() {
		decision.Reason, decision.Retry = v1alpha1.ReasonDeletionBlocked, o.BlockersError
		decision.Message = fmt.Sprintf("is not deleted while it cannot be looked up what stands in the way: %v", o.BlockersError)
		decision.Plan = dependents.Make(o.keepEverything())
		decision.Plan.Conflicts = nil
		return decision
	}
	if blocked := blockersMessage(o.Blockers); blocked != "" && o.AsksForBlockers() {
		decision.Reason, decision.Message = v1alpha1.ReasonDeletionBlocked, blocked
		decision.Plan = dependents.Make(o.keepEverything())
		decision.Plan.Conflicts = nil
		decision.Until = moments.Earlier(decision.Until, o.Now.Add(blockersPeriod))
		return decision
	}
	if before, waits := decision.beforeDeletion(o); waits {
		return before
	}
	decision.Deleting = true
	in := o.baseInput()
	in.MayPrune = true
	if o.Layer.Spec.DeletionPolicy == v1alpha1.DeletionPolicyOrphan {
		for i := range in.Inventory {
			in.Inventory[i].Deletion, in.Inventory[i].Spared = dependents.DeletionOrphan, ""
		}
	}
	decision.Plan = dependents.Make(in)
	decision.Hold, decision.Until = Hold{}, decision.Plan.Until
	left := len(decision.Plan.Inventory)
	decision.Finalized = left == 0 && len(decision.Plan.Forsaken) == 0
	if left == 0 && !decision.Finalized {
		// What is given up is told, and asked for no more, before the layer goes.
		decision.Until = o.Now
	}
	decision.Message, decision.Waits = "has nothing left", true
	if worst, found := dependents.Worst(decision.Plan.Standings); found {
		decision.Reason = cmp.Or(worst.Reason, decision.Reason)
		decision.Message = fmt.Sprintf("is being deleted, %d objects left: %s %s",
			len(decision.Plan.Inventory), worst.ID, worst.Message)
	}
	return decision
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
		return slices.ContainsFunc(DependencyNames(layer.Spec.Prereqs.DependsOn), func(name string) bool {
			return name == target || visit(o.Layers[name].Layer)
		})
	}
	return visit(o.Layer)
}

func dependsOn(layer *v1alpha1.AddonsLayer, name string) bool {
	return slices.Contains(DependencyNames(layer.Spec.Prereqs.DependsOn), name)
}
