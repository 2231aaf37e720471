// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/rollout"
)

// health is how a cluster, or a part of it, fares.
type health struct {
	rollout.Condition
	message string
	// reached is since when the last layer has its state.
	reached time.Time
	// deployed and total count layers.
	deployed, total int32
}

// well is where health begins.
func well() health { return health{Condition: rollout.Ready} }

// severity orders conditions, the worse the higher. What has failed goes before what
// cannot be seen, and that before what still waits.
var severity = map[rollout.Condition]int{rollout.Ready: 0, rollout.Progressing: 1, rollout.Unreachable: 2, rollout.Unhealthy: 3, rollout.Failed: 3}

// note adds what there is to say; the first of what is worst is said.
func (h *health) note(condition rollout.Condition, format string, args ...any) {
	if severity[condition] > severity[h.Condition] {
		h.Condition, h.message = condition, fmt.Sprintf(format, args...)
	}
}

// wants adds a layer that is wanted. It may be missing, and changed is true where it
// is to be written.
func (h *health) wants(name string, layer *v1alpha1.AddonsLayer, changed bool) {
	h.total++
	switch {
	case layer == nil:
		h.note(rollout.Progressing, "layer %s is to be made", name)
	case layer.DeletionTimestamp != nil:
		h.leaves(layer)
	case changed:
		h.note(rollout.Progressing, "layer %s is to be changed", name)
	default:
		h.has(layer)
	}
}

// has adds a layer that stays as it is.
func (h *health) has(layer *v1alpha1.AddonsLayer) {
	if since := layer.Status.StateSince.Time; since.After(h.reached) {
		h.reached = since
	}
	said := messageOf(layer)
	switch {
	case isDeployed(layer) && isUnwell(layer):
		h.deployed++
		h.note(rollout.Unhealthy, "layer %s is not well: %s", layer.Name, said)
	case isDeployed(layer):
		h.deployed++
	case v1alpha1.IsForeign(layer.Status.Conditions):
		h.note(rollout.Progressing, "layer %s: %s", layer.Name, said)
	case layer.Status.ObservedGeneration != layer.Generation:
		h.note(rollout.Progressing, "layer %s has not been looked at since it was changed", layer.Name)
	case layer.Status.State == v1alpha1.StateUnknown:
		h.note(rollout.Unreachable, "layer %s: %s", layer.Name, said)
	case hasFailed(layer):
		h.note(rollout.Failed, "layer %s: %s", layer.Name, said)
	default:
		h.note(rollout.Progressing, "layer %s: %s", layer.Name, said)
	}
}

// leaves adds a layer that is being removed, or is to be.
func (h *health) leaves(layer *v1alpha1.AddonsLayer) {
	condition, said := rollout.Progressing, ""
	if layer.DeletionTimestamp != nil {
		said = ": " + messageOf(layer)
		if hasFailed(layer) && layer.Status.ObservedGeneration == layer.Generation {
			condition = rollout.Failed
		}
	}
	h.note(condition, "layer %s is being removed%s", layer.Name, said)
}

// isDeployed tells whether a layer is deployed as its specification wants it.
func isDeployed(layer *v1alpha1.AddonsLayer) bool {
	return layer.Status.State == v1alpha1.StateDeployed && layer.Status.ObservedGeneration == layer.Generation && layer.Status.Version == layer.Spec.Version
}

// isUnwell tells whether a layer says that something that its releases have made is not
// well.
func isUnwell(layer *v1alpha1.AddonsLayer) bool {
	return meta.IsStatusConditionFalse(layer.Status.Conditions, v1alpha1.HealthyCondition)
}

func hasFailed(layer *v1alpha1.AddonsLayer) bool {
	return layer.Status.State == v1alpha1.StateFailed || meta.IsStatusConditionTrue(layer.Status.Conditions, v1alpha1.StalledCondition)
}

// messageOf returns what a layer says of itself.
func messageOf(layer *v1alpha1.AddonsLayer) string {
	if ready := meta.FindStatusCondition(layer.Status.Conditions, v1alpha1.ReadyCondition); ready != nil && ready.Message != "" {
		return ready.Message
	}
	return cmp.Or(string(layer.Status.State), "it has not been looked at yet")
}

// awayMessage says that a RemoteCluster does not answer; empty where it does, or was
// not asked yet.
func awayMessage(cluster *v1alpha1.RemoteCluster) string {
	reachable := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ReachableCondition)
	if reachable == nil || reachable.Status != metav1.ConditionFalse {
		return ""
	}
	return fmt.Sprintf("RemoteCluster %s/%s does not answer: %s", cluster.Namespace, cluster.Name, cmp.Or(reachable.Message, reachable.Reason))
}
