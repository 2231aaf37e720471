// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
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
	given := d.giveUp()
	blocked := d.blocked()
	if blocked == "" {
		d.decision.GiveUp = given
	}
	for _, layer := range left {
		status.Layers.Total++
		if isDeployed(layer) {
			status.Layers.Deployed++
		}
		if blocked == "" {
			d.remove(layer)
		}
	}
	d.removing(left)
	set := conditions.New(last.Conditions, d.Platform.Generation, d.Now)
	reason, message := v1alpha1.ReasonDeleting, "nothing is left"
	switch {
	case blocked != "":
		reason, message = v1alpha1.ReasonDeletionBlocked, blocked
	case len(left) > 0:
		message = d.leavingMessage()
	}
	d.decision.Gone = len(left) == 0 && blocked == ""
	set.Put(v1alpha1.ReadyCondition, metav1.ConditionFalse, reason, cut(message, maxMessage))
	set.Put(v1alpha1.ReconcilingCondition, metav1.ConditionTrue, reason, cut(message, maxMessage))
	status.Conditions = set.List
}

// remove deletes a layer by the policy that the platform has now: it may have been
// changed in the moment before. What is on a cluster that goes with the platform goes by
// what that says, where it leaves more.
func (d *decider) remove(layer *v1alpha1.AddonsLayer) {
	policy := gentler(d.Platform.Spec.DeletionPolicy, d.bundlePolicy(layer))
	place := placement.Of(layer, d.Namespace)
	if remote := d.Clusters[place]; remote != nil && hasMade(d.own[remote.Labels[v1alpha1.LayerLabel]], remote) {
		policy = gentler(policy, alongWith(remote))
	}
	d.part(layer, policy)
}

// bundlePolicy returns the policy that a layer has by its bundle. Where that is gone, the
// layer's own tells it.
func (d *decider) bundlePolicy(layer *v1alpha1.AddonsLayer) v1alpha1.DeletionPolicy {
	label := strings.TrimPrefix(layer.Labels[v1alpha1.PlatformLayerLabel], v1alpha1.PickedLayerPrefix)
	for _, bundle := range d.Bundles {
		if bundle.Spec.Family == layer.Labels[v1alpha1.PlatformFamilyLabel] && bundle.Spec.Version == layer.Spec.Version {
			if of := bundles.LayerOf(bundle, label); of != nil {
				return of.DeletionPolicy
			}
		}
	}
	return layer.Spec.DeletionPolicy
}

// removing names what stands in the way: the layers that have failed first, then
// those whose cluster does not answer. A layer counts for the cluster that the platform is
// installed on, also where it is on another one that the platform has made for that.
func (d *decider) removing(left []*v1alpha1.AddonsLayer) {
	targets := map[string]types.NamespacedName{}
	for _, target := range Targets(d.Observation) {
		targets[clusterValue(target)] = target
	}
	worst := map[string]*member{}
	for _, layer := range left {
		cluster := layer.Labels[v1alpha1.PlatformClusterLabel]
		m := worst[cluster]
		if m == nil {
			target, known := targets[cluster]
			if !known { // it is selected no more
				target = placement.Of(layer, d.Namespace)
			}
			m = &member{target: target, stage: -1, health: well()}
			worst[cluster] = m
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
