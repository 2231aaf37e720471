// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/address"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/sources"
)

const (
	// maxBeside bounds how many things of one sort are named side by side.
	maxBeside = 3
	// maxOwnCause and maxCarriedCause bound, in bytes, the message of a cause
	// of the layer's own and of one that another layer has named.
	maxOwnCause     = 512
	maxCarriedCause = 256
)

// causesOf says what stands in a layer's way after a decision and what became of
// its actions: nothing for a layer that is deployed, and at least one cause for
// every other. It is deterministic and of bounded size.
func causesOf(o Observation, d Decision, results []dependents.Result) []v1alpha1.Cause {
	if d.Finalized || d.State == v1alpha1.StateDeployed && !d.Stalled && !d.isUnwell() {
		return nil
	}
	found := o.failureCauses(d, results)
	if found == nil {
		found = slices.Clone(d.Causes)
	}
	if found == nil && d.Waits {
		found = d.objectCauses()
	}
	if found == nil {
		found = []v1alpha1.Cause{layerCause(o.Layer.Name, d.Reason, d.Message)}
	}
	for i := range found {
		found[i].Message = address.Line(found[i].Message, maxOwnCause)
	}
	return trimCauses(found)
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

// sourceCause names the source, with what that says of itself where it is not ready.
func (o Observation) sourceCause(reason, message string) []v1alpha1.Cause {
	ref := sources.Of(o.Layer, o.Settings.Namespace)
	cause := v1alpha1.Cause{Kind: ref.Kind, Namespace: ref.ID().Namespace, Name: ref.Name, Reason: reason, Message: message}
	if o.Source != nil && !o.Source.Ready && o.Source.Message != "" && o.DirectoryError == nil && o.SourceError == nil {
		cause.Message = o.Source.Message
	}
	return []v1alpha1.Cause{cause}
}

// clusterCause names the cluster that the layer belongs on.
func (o Observation) clusterCause(reason, message string) []v1alpha1.Cause {
	cause := v1alpha1.Cause{Kind: "Cluster", Reason: reason, Message: message}
	if o.Remote != nil {
		cause.Kind, cause.Namespace, cause.Name = v1alpha1.RemoteClusterKind, o.Remote.Name.Namespace, o.Remote.Name.Name
	}
	return []v1alpha1.Cause{cause}
}

// remoteCause names the RemoteCluster, with what that says of itself where it is not
// ready.
func (o Observation) remoteCause(reason, message string) []v1alpha1.Cause {
	found := o.clusterCause(reason, message)
	if o.Remote == nil || o.Remote.Object == nil {
		return found
	}
	ready := meta.FindStatusCondition(o.Remote.Object.Status.Conditions, v1alpha1.ReadyCondition)
	if ready != nil && ready.Status != metav1.ConditionTrue {
		found[0].Reason, found[0].Message = ready.Reason, ready.Message
	}
	return found
}

// carried returns what stands in another layer's way, one step further down.
// A chain that leads back here explains nothing.
func (o Observation) carried(other *v1alpha1.AddonsLayer) []v1alpha1.Cause {
	if other == nil {
		return nil
	}
	chain := Carried(other)
	for i := range chain {
		if chain[i].Kind == v1alpha1.AddonsLayerKind && chain[i].Name == o.Layer.Name {
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
		cause.Message = address.Line(cause.Message, maxCarriedCause)
		chain = append(chain, cause)
	}
	slices.Reverse(chain)
	return chain
}

// cycleCauses names the layers of a path that leads back to its beginning.
func cycleCauses(path []string) []v1alpha1.Cause {
	var found []v1alpha1.Cause
	for i := 0; i+1 < len(path); i++ {
		found = append(found, layerCause(path[i], v1alpha1.ReasonDependencyCycle, "depends on "+path[i+1]))
	}
	return found
}

// brokenCauses names the layers whose ranges the layer would leave.
func (o Observation) brokenCauses(version string) []v1alpha1.Cause {
	var found []v1alpha1.Cause
	for _, name := range slices.Sorted(maps.Keys(o.Layers)) {
		dependant := o.Layers[name].Layer
		if len(found) < maxBeside && dependant != nil && breaks(dependant, o.Layer, version) {
			ranges := strings.Join(rangesOf(dependant, o.Layer.Name), ", ")
			found = append(found, layerCause(name, v1alpha1.ReasonWouldBreakDependants, "depends on "+ranges))
		}
	}
	return found
}

// dependantCauses names the layers that keep this one from being deleted, and
// what keeps those from going that are being deleted themselves.
func (o Observation) dependantCauses() []v1alpha1.Cause {
	names, what := o.dependants(), "depends on "+o.Layer.Name
	if len(names) == 0 {
		names, what = o.predecessors(), "must be gone before "+o.Layer.Name
	}
	var found []v1alpha1.Cause
	for i, name := range names {
		if i == maxBeside {
			break
		}
		found = append(found, layerCause(name, v1alpha1.ReasonDeletionBlocked, what))
		if other := o.Layers[name].Layer; isDeleting(other) {
			found = append(found, o.carried(other)...)
		}
	}
	return found
}

// conflictCauses names the objects that are not this layer's, each followed by
// the layer that has it.
func (o Observation) conflictCauses(conflicts []dependents.Conflict) []v1alpha1.Cause {
	var found []v1alpha1.Cause
	for i, conflict := range conflicts {
		if i == maxBeside {
			break
		}
		found = append(found, objectCause(conflict.With, v1alpha1.ReasonOwnershipConflict, o.conflictMessage(conflicts[i:i+1])))
		if conflict.Owner != "" && conflict.Owner != o.Layer.Name {
			owner := layerCause(conflict.Owner, v1alpha1.ReasonOwnershipConflict, "lists it in "+conflict.OwnerOrigin)
			owner.Depth = 1
			found = append(found, owner)
		}
	}
	return found
}

func objectCause(id objects.ID, reason, message string) v1alpha1.Cause {
	return v1alpha1.Cause{Kind: id.Kind, Cluster: id.Cluster, Namespace: id.Namespace, Name: id.Name, Reason: reason, Message: message}
}

// failureCauses names the objects that could not be written or removed, or the
// account as which nothing can be. The first one gave the decision its reason.
func (o Observation) failureCauses(d Decision, results []dependents.Result) []v1alpha1.Cause {
	var found []v1alpha1.Cause
	for _, result := range results {
		if result.Err == nil || apierrors.IsConflict(result.Err) || len(found) == maxBeside {
			continue
		}
		why := accounts.FailureOf(o.actor(result.Action.ID), result.Err)
		if why.Reason == v1alpha1.ReasonServiceAccountNotFound {
			account := o.Settings.AccountFor(o.Layer)
			return []v1alpha1.Cause{{
				Kind: "ServiceAccount", Cluster: o.cluster(), Namespace: account.Namespace, Name: account.Name,
				Reason: d.Reason, Message: why.Message,
			}}
		}
		found = append(found, objectCause(result.Action.ID, failureReason(result, why), why.Message))
	}
	return found
}

// objectCauses names the object that the layer waits for, with what that one
// waits for, and beside it a few of those that have failed.
func (d Decision) objectCauses() []v1alpha1.Cause {
	byID := map[objects.ID]objects.Standing{}
	var waiting []objects.Standing
	for _, standing := range d.Plan.Standings {
		byID[standing.ID] = standing
		if standing.Health > objects.Ignored {
			waiting = append(waiting, standing)
		}
	}
	if arriving := slices.DeleteFunc(slices.Clone(waiting), func(s objects.Standing) bool { return s.Unwanted }); len(arriving) > 0 {
		waiting = arriving
	}
	slices.SortFunc(waiting, objects.Compare)
	var found []v1alpha1.Cause
	seen := map[objects.ID]bool{}
	beside := 0
	for _, standing := range waiting {
		first := d.standingCause(standing)
		if seen[standing.ID] || beside == maxBeside || beside > 0 && inProgress(first) {
			continue
		}
		beside++
		found = append(found, first)
		seen[standing.ID] = true
		for depth := int32(1); ; depth++ {
			next, known := byID[standing.WaitsFor]
			if !known || seen[next.ID] || next.Health <= objects.Ignored {
				break
			}
			cause := d.standingCause(next)
			cause.Depth, cause.Until = depth, secondsOf(next.Until)
			found = append(found, cause)
			seen[next.ID], standing = true, next
		}
	}
	return found
}

// standingCause names an object by what it says of itself.
func (d Decision) standingCause(s objects.Standing) v1alpha1.Cause {
	cause := objectCause(s.ID, cmp.Or(s.Reason, s.Status, objects.StatusProgress), cmp.Or(s.Said, s.Message))
	switch {
	case s.Reason != "" || s.Unwanted:
	case s.WaitsFor != objects.ID{}:
		cause.Reason = reasonWaits
	case !s.Current && s.Status != objects.StatusMissing:
		// The object's status describes its previous generation.
		cause.Reason = objects.StatusProgress
	}
	cause.Until = secondsOf(s.Until)
	if cause.Until == nil && !s.Unwanted && d.State == v1alpha1.StateApplying {
		cause.Until = secondsOf(d.Deadline)
	}
	return cause
}

// failureReason says in one word what an action that failed has failed at.
func failureReason(result dependents.Result, why accounts.Failure) string {
	switch result.Action.Verb {
	case dependents.VerbMark, dependents.VerbRelease, dependents.VerbDelete:
		return v1alpha1.ReasonPruneFailed
	case dependents.VerbWrite:
		if live := (*dependents.LiveStateError)(nil); errors.As(result.Err, &live) {
			return v1alpha1.ReasonConflictsWithLiveState
		}
		if dependents.IsMistake(result.Err) {
			return v1alpha1.ReasonInvalidManifest
		}
	}
	return cmp.Or(why.Reason, v1alpha1.ReasonApplyFailed)
}
