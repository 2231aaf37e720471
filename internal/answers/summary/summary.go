// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package summary says in one row where a layer stands. It reads nothing but
// the layer and the time it is given.
package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
)

// nothing stands where a column has nothing to say.
const nothing = "-"

// Row is a layer in the columns of a table. Only Why may be empty.
type Row struct {
	// Name of the layer.
	Name string
	// Version that is wanted, after the one that is deployed where they
	// differ: 1.0.0->1.1.0.
	Version string
	// State in the layer's own word; - before the controller's first look.
	State string
	// Ready counts the releases that are ready, of those that must be: 2/3.
	Ready string
	// Cluster that the layer belongs on, as namespace/name of a RemoteCluster,
	// after the one that it is still on where it moves: fleet/a->fleet/b.
	Cluster string
	// Revision that is deployed.
	Revision string
	// Since is for how long the condition Ready has had its status.
	Since string
	// Why says what the layer waits for, or what is wrong.
	Why string
	// Reason of the condition Ready, in one word.
	Reason string
	// Source and Path name the layer's directory.
	Source, Path string
	// Age of the layer.
	Age string
	// Blocked is true for a layer that failed, or that waits for something
	// other than its own objects.
	Blocked bool
}

// Of returns the row of a layer at a moment.
func Of(layer *v1alpha1.AddonsLayer, now time.Time) Row {
	status := layer.Status
	row := Row{
		Name:     layer.Name,
		Version:  version(layer),
		State:    cmp.Or(string(status.State), nothing),
		Ready:    releases(status.Resources),
		Cluster:  cluster(layer),
		Revision: cmp.Or(status.Revision, nothing),
		Since:    nothing,
		Reason:   nothing,
		Why:      Why(layer),
		Source:   source(layer.Spec.Source),
		Path:     layer.Spec.Source.Path,
		Age:      age(layer.CreationTimestamp, now),
		Blocked:  Blocked(layer),
	}
	if ready := condition(layer, v1alpha1.ReadyCondition); ready != nil {
		row.Since, row.Reason = age(ready.LastTransitionTime, now), ready.Reason
	}
	return row
}

// version shows what is deployed beside what is wanted where they differ.
func version(layer *v1alpha1.AddonsLayer) string {
	wanted, has := layer.Spec.Version, layer.Status.Version
	if has == "" || has == wanted {
		return wanted
	}
	return has + "->" + wanted
}

// here stands for the cluster that Strata runs in, where a layer comes from it or
// goes there.
const here = "here"

// cluster shows where a layer is beside where it belongs where these differ.
func cluster(layer *v1alpha1.AddonsLayer) string {
	has, wanted := layer.Status.Cluster, placement.ClusterName(placement.Of(layer, ""))
	if ref := layer.Spec.Cluster; ref != nil && ref.Namespace == "" {
		// The controller knows the namespace that it means.
		wanted = ref.Name
		if strings.HasSuffix(has, "/"+ref.Name) {
			wanted = has
		}
	}
	if layer.Status.Digest == "" || has == wanted {
		return cmp.Or(wanted, nothing)
	}
	return cmp.Or(has, here) + "->" + cmp.Or(wanted, here)
}

// releases counts those that are ready. One that is suspended, or about to go,
// holds nobody up and does not count.
func releases(resources []v1alpha1.Resource) string {
	ready, total := 0, 0
	for _, resource := range resources {
		if !objects.IsReleaseKind(kinds.ParseResourceKind(resource.Kind)) {
			continue
		}
		switch resource.Status {
		case objects.StatusSuspended, objects.StatusOrphaned, objects.StatusSuperseded,
			objects.StatusDeleting, objects.StatusKept:
		case objects.StatusReady:
			ready++
			total++
		default:
			total++
		}
	}
	if total == 0 {
		return nothing
	}
	return fmt.Sprintf("%d/%d", ready, total)
}

// Why says what there is to know of a layer beyond its state.
func Why(layer *v1alpha1.AddonsLayer) string {
	ready := condition(layer, v1alpha1.ReadyCondition)
	switch {
	case ready == nil:
		return "the controller has not looked at it yet"
	case ready.Reason == v1alpha1.ReasonInternalError:
		return ready.Message
	case outdated(layer):
		return fmt.Sprintf("the controller has not looked at generation %d yet", layer.Generation)
	case ready.Status != metav1.ConditionTrue && Through(layer.Status.BlockedBy) != "":
		return Through(layer.Status.BlockedBy)
	case ready.Status != metav1.ConditionTrue:
		return strings.Join(strings.Fields(ready.Message), " ")
	}
	var notes []string
	if from := condition(layer, v1alpha1.SourceReadyCondition); from != nil && from.Status == metav1.ConditionFalse {
		notes = append(notes, strings.Join(strings.Fields(from.Message), " "))
	}
	if contested := condition(layer, v1alpha1.ContestedCondition); contested != nil && contested.Status == metav1.ConditionTrue {
		notes = append(notes, contested.Message)
	}
	for _, about := range []string{v1alpha1.VariablesUnsetCondition, v1alpha1.SecretsInNamesCondition, v1alpha1.UnsharedSecretsCondition} {
		if is := condition(layer, about); is != nil && is.Status == metav1.ConditionTrue {
			notes = append(notes, is.Message)
		}
	}
	if names := suspended(layer.Status.Resources); len(names) > 0 {
		notes = append(notes, "suspended: "+strings.Join(names, ", "))
	}
	return strings.Join(notes, "; ")
}

// Through says what is at the root where a layer waits for another one that has a
// cause of its own; empty elsewhere.
func Through(causes []v1alpha1.Cause) string {
	root, found := layers.RootCause(causes)
	first := v1alpha1.Cause{}
	if found {
		first = causes[0]
	}
	if root.Depth == 0 || first.Kind != v1alpha1.AddonsLayerKind {
		return ""
	}
	name := strings.TrimPrefix(root.Namespace+"/"+root.Name, "/")
	if root.Cluster != "" {
		name += " on " + root.Cluster
	}
	text := fmt.Sprintf("waits for %s, because of %s %s (%s): %s", first.Name, root.Kind, name, root.Reason, root.Message)
	return strings.Join(strings.Fields(text), " ")
}

func suspended(resources []v1alpha1.Resource) []string {
	var names []string
	for _, resource := range resources {
		if resource.Status == objects.StatusSuspended {
			names = append(names, resource.Namespace+"/"+resource.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Blocked tells whether a layer does not get on by itself.
func Blocked(layer *v1alpha1.AddonsLayer) bool {
	ready := condition(layer, v1alpha1.ReadyCondition)
	if ready == nil || outdated(layer) || ready.Status == metav1.ConditionFalse || ready.Reason == v1alpha1.ReasonInternalError {
		return true
	}
	switch layer.Status.State {
	case v1alpha1.StateDeployed, v1alpha1.StateApplying:
		return false
	case v1alpha1.StatePruning:
		return ready.Reason == v1alpha1.ReasonDeletionBlocked || ready.Reason == v1alpha1.ReasonSuspendedRelease
	default:
		return true
	}
}

// outdated tells whether the status speaks of an earlier specification.
func outdated(layer *v1alpha1.AddonsLayer) bool {
	return layer.Status.ObservedGeneration != layer.Generation
}

func condition(layer *v1alpha1.AddonsLayer, kind string) *metav1.Condition {
	return meta.FindStatusCondition(layer.Status.Conditions, kind)
}

func source(spec v1alpha1.SourceSpec) string {
	if spec.Namespace == "" {
		return spec.Name
	}
	return spec.Namespace + "/" + spec.Name
}

func age(since metav1.Time, now time.Time) string {
	if since.IsZero() {
		return nothing
	}
	return duration.HumanDuration(max(0, now.Sub(since.Time)))
}
