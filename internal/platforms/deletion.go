// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/conditions"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/rollout"
)

// deletion removes all layers of a platform that is being deleted. Their order is
// theirs: each knows what must go before it. Bundles, catalogue and ConfigMaps may
// be gone by then, and a hold does not stop it.
func (d *decider) deletion() {
	status := &d.decision.Status
	last := d.Platform.Status
	status.ObservedGeneration = d.Platform.Generation
	status.Version, status.Lock, status.Rollout = last.Version, last.Lock, last.Rollout
	left := d.leaving()
	for _, layer := range left {
		status.Layers.Total++
		if isDeployed(layer) {
			status.Layers.Deployed++
		}
		d.remove(layer)
	}
	d.removing(left)
	set := conditions.New(last.Conditions, d.Platform.Generation, d.Now)
	message := "nothing is left"
	if d.decision.Gone = len(left) == 0; !d.decision.Gone {
		message = d.leavingMessage()
	}
	set.Put(v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonDeleting, cut(message, maxMessage))
	set.Put(v1alpha1.ReconcilingCondition, metav1.ConditionTrue, v1alpha1.ReasonDeleting, cut(message, maxMessage))
	status.Conditions = set.List
}

// remove deletes a layer by the policy that the platform has now: it may have been
// changed in the moment before. As all layers go, none of them will adopt what it
// had, and a grace for each of them in turn would add up; where somebody has given
// the layer a grace, that stays.
func (d *decider) remove(layer *v1alpha1.AddonsLayer) {
	if layer.DeletionTimestamp != nil {
		return
	}
	d.decision.Delete = append(d.decision.Delete, layer)
	if layer.Spec.DeletionPolicy == d.Platform.Spec.DeletionPolicy && layer.Spec.OrphanGrace != nil {
		return
	}
	changed := layer.DeepCopy()
	changed.Spec.DeletionPolicy = d.Platform.Spec.DeletionPolicy
	if changed.Spec.OrphanGrace == nil {
		changed.Spec.OrphanGrace = &metav1.Duration{}
	}
	d.decision.Write = append(d.decision.Write, changed)
}

// removing names what stands in the way: the layers that have failed first, then
// those whose cluster does not answer.
func (d *decider) removing(left []*v1alpha1.AddonsLayer) {
	worst := map[string]*member{}
	for _, layer := range left {
		place := placement.Of(layer, d.Namespace)
		m := worst[place.String()]
		if m == nil {
			m = &member{target: place, stage: -1, health: well()}
			worst[place.String()] = m
			d.members = append(d.members, m)
		}
		if layer.Status.State == v1alpha1.StateUnknown {
			m.note(rollout.Unreachable, "layer %s: %s", layer.Name, messageOf(layer))
		} else {
			m.leaves(layer)
		}
	}
	total := d.decision.Status.Layers
	d.count()
	d.decision.Status.Layers = total
}
