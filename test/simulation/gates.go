// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
)

// judgeGates judges whether a layer might apply something new.
func (h *hands) judgeGates(action dependents.Action) {
	v, name := h.view, nameOf(action.ID)
	listed := v.folders[v.own.Name]
	i := listed.find(name)
	if !listed.readable || i < 0 {
		h.violated("gates", "%s is applied although layer %s does not list it", name, v.own.Name)
	}
	if f := listed.files[i]; f.value != valueOf(action.Wanted.Manifest(), "value") {
		h.violated("converges", "%s is applied with value %d, not %d of revision %s", name, valueOf(action.Wanted.Manifest(), "value"), f.value, listed.revision)
	}
	if cluster := clusterOf(v.own); cluster != "" && v.remotes[cluster] == nil {
		h.violated("gates", "%s is applied although there is no RemoteCluster %s", name, cluster)
	}
	if wanted := v.own.Spec.Prereqs.K8sVersion; !meets(v.kubernetes, wanted) {
		h.violated("gates", "%s is applied although the cluster is at %s and layer %s wants %s", name, v.kubernetes, v.own.Name, wanted)
	}
	for _, dependency := range v.own.Spec.Prereqs.DependsOn {
		if why := v.unmet(dependency); why != "" {
			h.violated("gates", "%s is applied although layer %s waits for %s: %s", name, v.own.Name, dependency, why)
		}
	}
	h.judgeBreak(name)
}

// meets tells whether a cluster's version is at least the one that is wanted.
func meets(cluster, wanted string) bool {
	if wanted == "" {
		return true
	}
	return !less(numbers(cluster), numbers(strings.TrimLeft(wanted, ">= ")))
}

// numbers reads major, minor and patch off a version.
func numbers(version string) (n [3]int) {
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "v"), "-")
	for i, part := range strings.SplitN(version, ".", 3) {
		n[i], _ = strconv.Atoi(part)
	}
	return n
}

func less(a, b [3]int) bool { return slices.Compare(a[:], b[:]) < 0 }

// accepts tells whether a dependency, as people of the simulation write it, is
// met by a version.
func accepts(dependency, version string) bool {
	_, wanted, versioned := strings.Cut(dependency, "@")
	if !versioned {
		return true
	}
	if !strings.HasPrefix(wanted, ">=") {
		return wanted == version
	}
	least, below, bounded := strings.Cut(strings.TrimPrefix(wanted, ">="), " <")
	return version != "" && !less(numbers(version), numbers(least)) && (!bounded || less(numbers(version), numbers(below)))
}

// unmet says why a dependency does not hold; "" where it does.
func (v view) unmet(dependency string) string {
	name, _, _ := strings.Cut(dependency, "@")
	other := v.layers[name]
	switch {
	case other == nil:
		return "it is not there"
	case other.DeletionTimestamp != nil:
		return "it is being deleted"
	case other.Status.Version == "":
		return "it has deployed nothing"
	case !accepts(dependency, other.Status.Version):
		return "it is at " + other.Status.Version
	}
	dv := view{own: other, at: v.at}
	deployed := condition(other, v1alpha1.DeployedCondition).Status == metav1.ConditionTrue
	switch reason := condition(other, v1alpha1.ReadyCondition).Reason; {
	case dv.held():
		if !deployed {
			return "it is held and not deployed"
		}
		return ""
	case reason == v1alpha1.ReasonWouldBreakDependants, reason == v1alpha1.ReasonRolledBack && other.Status.ObservedGeneration == other.Generation:
		return ""
	case !deployed:
		return "it is not deployed"
	case other.Status.ObservedGeneration != other.Generation:
		return "it has changed since"
	case other.Spec.Source.Name == v.own.Spec.Source.Name && v.digestOf(name) != other.Status.Digest:
		return "it has not deployed what this revision holds for it"
	}
	return ""
}

// digestOf returns what the layer's own revision holds for another one, where
// both caches show one revision.
func (v view) digestOf(name string) string {
	if v.folders[name].revision != v.folders[v.own.Name].revision {
		return v.layers[name].Status.Digest
	}
	return v.folders[name].digest
}

// judgeBreak judges whether the layer may leave the version it has.
func (h *hands) judgeBreak(release string) {
	v := h.view
	has, wants := v.own.Status.Version, v.own.Spec.Version
	begun := func(l *v1alpha1.AddonsLayer) bool {
		return l.Status.Attempt != nil && l.Status.Attempt.Version == wants && l.Status.Attempt.Digest == v.folders[l.Name].digest
	}
	if has == "" || has == wants || begun(v.own) || v.own.Annotations[v1alpha1.AllowBreakAnnotation] == "true" {
		return
	}
	for _, name := range sortedKeys(v.layers) {
		other := v.layers[name]
		if other.DeletionTimestamp != nil || other.Status.Version == "" || name == v.own.Name {
			continue
		}
		for _, dependency := range other.Spec.Prereqs.DependsOn {
			if strings.HasPrefix(dependency, v.own.Name+"@>=") && accepts(dependency, has) && !accepts(dependency, wants) {
				h.violated("guard", "%s is applied for version %s of %s, and %s has %s on top of %s", release, wants, v.own.Name, name, dependency, has)
			}
		}
	}
}
