// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// targetOf returns the cluster that an object is on, or installs on; "" is home.
func targetOf(live *unstructured.Unstructured, id objects.ID) string {
	if id.Cluster == "" && live != nil && id.GroupKind() == kinds.HelmReleaseKind {
		return layers.TargetOf(live)
	}
	for _, name := range remoteNames {
		// A copy of what a release there reads.
		if cluster, beside := strings.CutPrefix(
			name,
			fleet+"/",
		); beside && id.Namespace == fleet &&
			strings.HasPrefix(strings.TrimPrefix(id.Name, "strata-copy-"), cluster+"-") {
			return name
		}
	}
	return id.Cluster
}

// lost tells whether a cluster has been away for so long that its layers care.
func (v view) lost(cluster string) bool {
	r := v.remotes[cluster]
	if r == nil {
		return false
	}
	reachable := conditionIn(r.Status.Conditions, v1alpha1.ReachableCondition)
	return reachable.Status == metav1.ConditionFalse && !v.at.time().Before(reachable.LastTransitionTime.Add(r.Spec.Unreachable.After.Duration))
}

// gaveUp tells whether people have given up what the layer has on a cluster.
func (v view) gaveUp(cluster string) bool {
	if cluster == "" {
		return false
	}
	r := v.remotes[cluster]
	if v.own.DeletionTimestamp != nil && v.own.Annotations[v1alpha1.AbandonAnnotation] == "true" &&
		(r == nil || isFalse(r, v1alpha1.ReachableCondition) || isFalse(r, v1alpha1.IdentifiedCondition)) {
		return true
	}
	return r != nil && r.DeletionTimestamp != nil &&
		(r.Spec.DeletionPolicy == v1alpha1.ClusterDeletionAbandon || r.Annotations[v1alpha1.AbandonAnnotation] == "true")
}

func isFalse(r *v1alpha1.RemoteCluster, condition string) bool {
	return conditionIn(r.Status.Conditions, condition).Status == metav1.ConditionFalse
}

// judgeAbsence judges what is done to the objects of a layer whose cluster is
// away: its releases are suspended, and nothing else.
func (h *hands) judgeAbsence(live *unstructured.Unstructured, action dependents.Action) {
	v, target := h.view, targetOf(live, action.ID)
	byLoss := action.Verb == dependents.VerbSuspend && action.Mark == v1alpha1.SuspendedByLossAnnotation
	switch {
	case v.gaveUp(target):
	case byLoss && target == clusterOf(v.own) && h.view.mistaken[target]:
	case byLoss && (target != clusterOf(v.own) || !v.lost(target)):
		h.violated("away", "%s of %s although %s is not away", action.Verb, nameOf(action.ID), target)
	case !byLoss && target != "" && target == clusterOf(v.own) && v.lost(target):
		h.violated("away", "%s of %s although %s is away", action.Verb, nameOf(action.ID), target)
	}
}

// judgeIdentity judges whether a cluster may be written to by a name: it must be the
// one that people mean by it.
func (s *simulation) judgeIdentity(name string, store *cluster) {
	if name != "" && store != s.remotes[name].cluster {
		s.violated("identity", "%s is written to, and another cluster answers there", name)
	}
}

// judgeCopy judges whether a copy of a kubeconfig may be written: Flux installs where
// it leads.
func (k *keeper) judgeCopy(copied *unstructured.Unstructured) {
	if to := k.leadsTo(kubeconfigIn(copied)); to != k.remotes[k.name.String()] {
		k.violated("identity", "the copy of the kubeconfig of %s leads to %s", k.name, to.name)
	}
}

// judgeForsaken judges what is done to the objects of a layer on a cluster that
// was given up: releases are suspended before they go, so that nobody waits for
// that cluster, and it is asked for nothing.
func (h *hands) judgeForsaken(live *unstructured.Unstructured, action dependents.Action) {
	name := nameOf(action.ID)
	switch {
	case action.ID.Cluster != "":
		h.violated("away", "%s of %s, which is on a cluster that was given up", action.Verb, name)
	case action.Verb == dependents.VerbDelete && live != nil && action.ID.GroupKind() == kinds.HelmReleaseKind && !isSuspended(live):
		h.violated("away", "%s is deleted on a cluster that was given up, and not suspended", name)
	}
}

// judgeResume judges whether a release may be resumed: only where Strata itself
// has suspended it.
func (h *hands) judgeResume(live *unstructured.Unstructured) {
	annotations := live.GetAnnotations()
	for _, key := range []string{v1alpha1.SuspendedByHoldAnnotation, v1alpha1.SuspendedByLossAnnotation, v1alpha1.SupersededByAnnotation} {
		if annotations[key] != "" {
			return
		}
	}
	h.violated("away", "%s is resumed, which somebody else has suspended", live.GetName())
}

// judgeUnknown judges what a layer says whose cluster is away: that it is deployed
// stays as it was.
func (h *hands) judgeUnknown(was *v1alpha1.AddonsLayer, status *v1alpha1.AddonsLayerStatus) {
	if status.State != v1alpha1.StateUnknown || was.DeletionTimestamp != nil {
		return
	}
	before, now := condition(was, v1alpha1.DeployedCondition).Status, conditionIn(status.Conditions, v1alpha1.DeployedCondition).Status
	if before != "" && before != now {
		h.violated("away", "layer %s was deployed: %s, and is %s while its cluster is away", was.Name, before, now)
	}
}

// count counts what is done because of a cluster that is away or given up.
func (h *hands) count(live *unstructured.Unstructured, action dependents.Action) {
	covered, target := h.people.covered, targetOf(live, action.ID)
	switch isRelease := action.ID.GroupKind() == kinds.HelmReleaseKind; {
	case action.Verb == dependents.VerbSuspend && action.Mark == v1alpha1.SuspendedByLossAnnotation && !h.view.gaveUp(target):
		covered.saw(suspendedByLoss)
	case action.Verb == dependents.VerbResume && live.GetAnnotations()[v1alpha1.SuspendedByLossAnnotation] != "":
		covered.saw(resumedAfterLoss)
	case action.Verb == dependents.VerbDelete && isRelease && h.view.gaveUp(target):
		covered.saw(releaseForsaken)
	case action.Verb == dependents.VerbMark && isRelease && target != "" && target != clusterOf(h.view.own) && h.away(h.remotes[target]):
		covered.saw(leftWhileAway)
	}
}

// noteForsaken remembers what a layer forgets because it was given up.
func (h *hands) noteForsaken(was *v1alpha1.AddonsLayer, status *v1alpha1.AddonsLayerStatus) {
	has := inventoryOf(&v1alpha1.AddonsLayer{Status: *status})
	for _, name := range inventoryOf(was) {
		if cluster, _ := split(name); cluster != "" && h.view.gaveUp(cluster) && !slices.Contains(has, name) {
			h.evidence.forsaken[name] = true
			h.people.covered.saw(objectForsaken)
		}
	}
}

// judgeSkip judges whether helm-controller may skip an uninstallation because the
// Secret of the kubeconfig is not there: not where Strata has it uninstalled.
func (s *simulation) judgeSkip(release *unstructured.Unstructured) {
	helm := helmOf(release)
	s.note("helm: skips to uninstall %s", helm)
	if s.remotes[layers.TargetOf(release)].givenUp || s.deletedBy[release.GetUID()] == "" {
		// Nobody warns a person who deletes a release by hand in the moment in which
		// its copy is made anew.
		s.evidence.left[helm]++
		return
	}
	if _, is := s.installed[helm]; is {
		s.violated("leaks", "%s is deleted by layer %s and not uninstalled, because the Secret of the kubeconfig is not there", helm, s.deletedBy[release.GetUID()])
	}
}

// judgeEnd judges whether a RemoteCluster may go: when nothing is left there, but
// what was given up.
func (s *simulation) judgeEnd(c *v1alpha1.RemoteCluster) {
	name := c.Namespace + "/" + c.Name
	s.people.covered.saw(remoteGone)
	for _, layer := range s.people.names {
		if l := s.cluster.layer(layer); l != nil {
			for _, r := range l.Status.Resources {
				if r.Cluster == name {
					s.violated("clusters", "RemoteCluster %s goes, and layer %s has %s %s there", name, layer, r.Kind, r.Name)
				}
			}
		}
	}
	for _, release := range s.cluster.releases() {
		live := s.cluster.release(release)
		// One that was written a moment ago, and never installed, leaves nothing.
		if _, installed := s.installed[helmOf(live)]; installed && layers.TargetOf(live) == name {
			s.violated("clusters", "RemoteCluster %s goes, and %s installs there", name, release)
		}
	}
}
