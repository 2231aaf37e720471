// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
)

const (
	// maxBeside bounds how many things of one sort are named side by side.
	maxBeside = 3
	// maxOwnCause and maxCarriedCause bound, in bytes, the message of a cause
	// of the layer's own and of one that another layer has named.
	maxOwnCause     = 512
	maxCarriedCause = 256
)

// reasonWaits is helm-controller's word for a release that waits for another.
const reasonWaits = "DependencyNotReady"

// causes finds what stands in a layer's way.
type causes struct {
	Observation
	decision Decision
}

// causesOf says, by the reason of a decision, who knows what stands in the
// way. For every other reason the layer itself is the cause, with its message.
var causesOf = map[string]func(causes) []v1alpha1.Cause{
	v1alpha1.ReasonHold:                 causes.ofHold,
	v1alpha1.ReasonSourceNotFound:       causes.ofSource,
	v1alpha1.ReasonSourceNotReady:       causes.ofSource,
	v1alpha1.ReasonArtifactFailed:       causes.ofSource,
	v1alpha1.ReasonArtifactRefused:      causes.ofSource,
	v1alpha1.ReasonK8sVersion:           causes.ofCluster,
	v1alpha1.ReasonClusterNotFound:      causes.ofRemote,
	v1alpha1.ReasonClusterNotReady:      causes.ofRemote,
	v1alpha1.ReasonClusterUnreachable:   causes.ofRemote,
	v1alpha1.ReasonClusterAbandoned:     causes.ofRemote,
	v1alpha1.ReasonClusterMistaken:      causes.ofRemote,
	v1alpha1.ReasonDependencyNotFound:   causes.ofDependencies,
	v1alpha1.ReasonDependencyVersion:    causes.ofDependencies,
	v1alpha1.ReasonDependencyNotReady:   causes.ofDependencies,
	v1alpha1.ReasonDependencyCycle:      causes.ofCycle,
	v1alpha1.ReasonWouldBreakDependants: causes.ofBroken,
	v1alpha1.ReasonOwnershipConflict:    causes.ofConflicts,
	v1alpha1.ReasonDeletionBlocked:      causes.ofDependants,
	v1alpha1.ReasonDeleting:             causes.ofObjects,
	v1alpha1.ReasonApplying:             causes.ofObjects,
	v1alpha1.ReasonReleaseFailed:        causes.ofObjects,
	v1alpha1.ReasonTimeout:              causes.ofObjects,
	v1alpha1.ReasonPruning:              causes.ofObjects,
	v1alpha1.ReasonKindNotServed:        causes.ofObjects,
	v1alpha1.ReasonRollingBack:          causes.ofObjects,
	v1alpha1.ReasonRollbackFailed:       causes.ofObjects,
	v1alpha1.ReasonSuspendedRelease:     causes.ofObjects,
}

// Causes says what stands in a layer's way after a decision and what became of
// its actions: nothing for a layer that is deployed, and at least one cause for
// every other. It is deterministic and of bounded size.
func Causes(o Observation, d Decision, results []dependents.Result) []v1alpha1.Cause {
	if d.Finalized || d.State == v1alpha1.StateDeployed && !d.Stalled {
		return nil
	}
	c := causes{Observation: o, decision: d}
	found := c.ofFailures(results)
	if of := causesOf[d.Reason]; of != nil && found == nil {
		found = of(c)
	}
	if found == nil {
		found = []v1alpha1.Cause{c.own()}
	}
	for i := range found {
		found[i].Message = cut(found[i].Message, maxOwnCause)
	}
	return trimCauses(found)
}

// own names the layer itself.
func (c causes) own() v1alpha1.Cause {
	return layerCause(c.Layer.Name, c.decision.Reason, c.decision.Message)
}

func layerCause(name, reason, message string) v1alpha1.Cause {
	return v1alpha1.Cause{Kind: v1alpha1.AddonsLayerKind, Name: name, Reason: reason, Message: message}
}

// secondsOf returns a moment as a status holds it; nil where it is not known.
func secondsOf(moment time.Time) *metav1.Time {
	if moment.IsZero() {
		return nil
	}
	seconds := metav1.NewTime(moment.UTC().Truncate(time.Second))
	return &seconds
}

func (c causes) ofHold() []v1alpha1.Cause {
	cause := c.own()
	cause.Until = secondsOf(c.decision.Hold.Until)
	return []v1alpha1.Cause{cause}
}

func (c causes) ofSource() []v1alpha1.Cause {
	ref := SourceOf(c.Layer, c.Settings.Namespace)
	cause := v1alpha1.Cause{
		Kind: ref.Kind, Namespace: ref.ID().Namespace, Name: ref.Name,
		Reason: c.decision.Reason, Message: c.decision.Message,
	}
	if c.Source != nil && !c.Source.Ready && c.Source.Message != "" && c.DirectoryError == nil && c.SourceError == nil {
		cause.Message = c.Source.Message
	}
	return []v1alpha1.Cause{cause}
}

// ofCluster names the cluster that the layer belongs on.
func (c causes) ofCluster() []v1alpha1.Cause {
	cause := v1alpha1.Cause{Kind: "Cluster", Reason: c.decision.Reason, Message: c.decision.Message}
	if c.Remote != nil {
		cause.Kind, cause.Namespace, cause.Name = v1alpha1.RemoteClusterKind, c.Remote.Name.Namespace, c.Remote.Name.Name
	}
	return []v1alpha1.Cause{cause}
}

// ofRemote names the RemoteCluster, with what that says of itself where it is not
// ready.
func (c causes) ofRemote() []v1alpha1.Cause {
	found := c.ofCluster()
	if c.Remote == nil || c.Remote.Object == nil {
		return found
	}
	ready := meta.FindStatusCondition(c.Remote.Object.Status.Conditions, v1alpha1.ReadyCondition)
	if ready != nil && ready.Status != metav1.ConditionTrue {
		found[0].Reason, found[0].Message = ready.Reason, ready.Message
	}
	return found
}

// ofDependencies names the first few layers that are waited for, each followed
// by what stands in its own way. What a layer says of its releases is left to
// the entries behind it.
func (c causes) ofDependencies() []v1alpha1.Cause {
	wanted, _ := Dependencies(c.Layer.Spec.Prereqs.DependsOn)
	var found []v1alpha1.Cause
	beside := 0
	for _, dependency := range wanted {
		reason, seen := unmet(c.Observation, dependency)
		if reason == "" || beside == maxBeside {
			continue
		}
		beside++
		other := c.Layers[dependency.Name].Layer
		if other != nil {
			seen = strings.Replace(seen, colon(shorten(readyMessage(other))), "", 1)
		}
		found = append(found, layerCause(dependency.Name, reason, seen))
		found = append(found, c.carried(other)...)
	}
	return found
}

// carried returns what stands in another layer's way, one step further down.
// A chain that leads back here explains nothing.
func (c causes) carried(other *v1alpha1.AddonsLayer) []v1alpha1.Cause {
	if other == nil {
		return nil
	}
	chain := Carried(other)
	for i := range chain {
		if chain[i].Kind == v1alpha1.AddonsLayerKind && chain[i].Name == c.Layer.Name {
			return nil
		}
		chain[i].Depth++
	}
	return chain
}

// Carried returns what other layers repeat of what stands in a layer's way:
// nothing that merely takes its time, in fewer words, and only of the layer as
// it is specified now.
func Carried(layer *v1alpha1.AddonsLayer) []v1alpha1.Cause {
	if layer.Status.ObservedGeneration != layer.Generation {
		return nil
	}
	var chain []v1alpha1.Cause
	for _, cause := range slices.Backward(layer.Status.BlockedBy) {
		explained := len(chain) > 0 && chain[len(chain)-1].Depth > cause.Depth
		if !explained && inProgress(cause) {
			continue
		}
		cause.Message = cut(cause.Message, maxCarriedCause)
		chain = append(chain, cause)
	}
	slices.Reverse(chain)
	return chain
}

// inProgress tells of an object that is merely on its way.
func inProgress(cause v1alpha1.Cause) bool {
	switch cause.Reason {
	case dependents.StatusProgress, dependents.StatusMissing, dependents.StatusReady, reasonWaits,
		"Progressing", v1alpha1.ReasonProgressingWithRetry, v1alpha1.ReasonDeleting:
		return cause.Kind != v1alpha1.AddonsLayerKind
	}
	return false
}

func (c causes) ofCycle() []v1alpha1.Cause {
	var found []v1alpha1.Cause
	path := c.cycle()
	for i := 0; i+1 < len(path); i++ {
		found = append(found, layerCause(path[i], c.decision.Reason, "depends on "+path[i+1]))
	}
	return found
}

// ofBroken names the layers whose ranges the layer would leave.
func (c causes) ofBroken() []v1alpha1.Cause {
	var found []v1alpha1.Cause
	for _, name := range slices.Sorted(maps.Keys(c.Layers)) {
		dependant := c.Layers[name].Layer
		if len(found) < maxBeside && dependant != nil && breaks(dependant, c.Layer, c.Layer.Spec.Version) {
			found = append(found, layerCause(name, c.decision.Reason, "depends on "+strings.Join(rangesOf(dependant, c.Layer.Name), ", ")))
		}
	}
	return found
}

// ofDependants names the layers that keep this one from being deleted, and
// what keeps those from going that are being deleted themselves.
func (c causes) ofDependants() []v1alpha1.Cause {
	if c.Layer.Annotations[v1alpha1.ForceDeleteAnnotation] == "true" {
		return nil
	}
	names, what := c.dependants(), "depends on "+c.Layer.Name
	if len(names) == 0 {
		names, what = c.predecessors(), "must be gone before "+c.Layer.Name
	}
	var found []v1alpha1.Cause
	for i, name := range names {
		if i == maxBeside {
			break
		}
		found = append(found, layerCause(name, c.decision.Reason, what))
		if other := c.Layers[name].Layer; isDeleting(other) {
			found = append(found, c.carried(other)...)
		}
	}
	return found
}

// ofConflicts names the objects that are not this layer's, each followed by
// the layer that has it.
func (c causes) ofConflicts() []v1alpha1.Cause {
	var found []v1alpha1.Cause
	for i, conflict := range c.decision.Plan.Conflicts {
		if i == maxBeside {
			break
		}
		found = append(found, objectCause(conflict.With, c.decision.Reason, c.conflictMessage(c.decision.Plan.Conflicts[i:i+1])))
		if conflict.Owner != "" && conflict.Owner != c.Layer.Name {
			owner := layerCause(conflict.Owner, c.decision.Reason, "lists it in "+conflict.OwnerOrigin)
			owner.Depth = 1
			found = append(found, owner)
		}
	}
	return found
}

func objectCause(id dependents.ID, reason, message string) v1alpha1.Cause {
	return v1alpha1.Cause{Kind: id.Kind, Cluster: id.Cluster, Namespace: id.Namespace, Name: id.Name, Reason: reason, Message: message}
}

// ofFailures names the objects that could not be written or removed, or the
// account as which nothing can be. The first one gave the decision its reason.
func (c causes) ofFailures(results []dependents.Result) []v1alpha1.Cause {
	var found []v1alpha1.Cause
	for _, result := range results {
		if result.Err == nil || apierrors.IsConflict(result.Err) || len(found) == maxBeside {
			continue
		}
		why := failureOf(c.actor(result.Action.ID), result.Err)
		if why.reason == v1alpha1.ReasonServiceAccountNotFound {
			account := AccountOf(c.Layer, c.Settings)
			return []v1alpha1.Cause{{
				Kind: "ServiceAccount", Cluster: c.cluster(), Namespace: account.Namespace, Name: account.Name,
				Reason: c.decision.Reason, Message: why.message,
			}}
		}
		found = append(found, objectCause(result.Action.ID, failureReason(result, why), why.message))
	}
	return found
}

// ofObjects names the object that the layer waits for, with what that one
// waits for, and beside it a few of those that have failed.
func (c causes) ofObjects() []v1alpha1.Cause {
	byID := map[dependents.ID]dependents.Standing{}
	var waiting []dependents.Standing
	for _, standing := range c.decision.Plan.Standings {
		byID[standing.ID] = standing
		if standing.Health > dependents.Ignored {
			waiting = append(waiting, standing)
		}
	}
	if arriving := slices.DeleteFunc(slices.Clone(waiting), func(s dependents.Standing) bool { return s.Unwanted }); len(arriving) > 0 {
		waiting = arriving
	}
	slices.SortFunc(waiting, dependents.Compare)
	var found []v1alpha1.Cause
	seen := map[dependents.ID]bool{}
	beside := 0
	for _, standing := range waiting {
		first := c.ofStanding(standing)
		if seen[standing.ID] || beside == maxBeside || beside > 0 && inProgress(first) {
			continue
		}
		beside++
		found = append(found, first)
		seen[standing.ID] = true
		for depth := int32(1); ; depth++ {
			next, known := byID[standing.WaitsFor]
			if !known || seen[next.ID] || next.Health <= dependents.Ignored {
				break
			}
			cause := c.ofStanding(next)
			cause.Depth, cause.Until = depth, secondsOf(next.Until)
			found = append(found, cause)
			seen[next.ID], standing = true, next
		}
	}
	return found
}

// ofStanding names an object by what it says of itself.
func (c causes) ofStanding(s dependents.Standing) v1alpha1.Cause {
	cause := objectCause(s.ID, cmp.Or(s.Reason, s.Status, dependents.StatusProgress), cmp.Or(s.Said, s.Message))
	switch {
	case s.Reason != "" || s.Unwanted:
	case s.WaitsFor != dependents.ID{}:
		cause.Reason = reasonWaits
	case !s.Current && s.Status != dependents.StatusMissing:
		// What it says of itself is of what it was before.
		cause.Reason = dependents.StatusProgress
	}
	cause.Until = secondsOf(s.Until)
	if cause.Until == nil && !s.Unwanted && c.decision.State == v1alpha1.StateApplying {
		cause.Until = secondsOf(c.decision.Deadline)
	}
	return cause
}
