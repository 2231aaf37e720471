// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"errors"
	"fmt"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/oldwords"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/versions"
)

// beforePrune are the gates that must be open before anything changes hands.
var beforePrune = []gate{
	wordsGate,
	sourceAccessGate,
	accountGate,
	clusterGate,
	sourceGate,
	directoryGate,
	reservedGate,
	kindListGate,
	accountsOfContentGate,
	contentAccessGate,
	secretNameGate,
	k8sVersionGate,
	specGate,
	hookGate,
	kindGate,
}

// ofContent are the gates that judge what the layer is to hold, whether that is
// what its source has or what it goes back to.
var ofContent = []gate{reservedGate, kindListGate, accountsOfContentGate, contentAccessGate, secretNameGate}

// beforeMove are the gates that must be open before a layer moves to what it
// asks for; one that goes back to what it had does not. What they say is the
// layer's own doing, and not that of something it lacks.
var beforeMove = []gate{breakGate}

// beforeApply are the gates that must be open before anything is applied.
var beforeApply = []gate{dependsOnGate}

func firstClosed(gates []gate, o Observation) *Blocked {
	for _, judge := range gates {
		if blocked := judge(o); blocked != nil {
			return blocked
		}
	}
	return nil
}

// wordsGate wants a layer whose words all mean something.
func wordsGate(o Observation) *Blocked {
	old := oldwords.InLayer(o.Layer)
	if old == "" {
		return nil
	}
	return &Blocked{State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonInvalidSpec, Stalled: true, Message: old}
}

// errUnread says of a directory that was not read, and of which nothing else is known.
var errUnread = errors.New("what the layer lists was not read")

// directoryGate wants a directory that can be read.
func directoryGate(o Observation) *Blocked {
	if o.Directory == nil && o.DirectoryError == nil {
		o.DirectoryError = errUnread
	}
	if o.DirectoryError == nil {
		return nil
	}
	blocked := &Blocked{
		State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonArtifactFailed,
		Message: o.DirectoryError.Error(), Retry: o.DirectoryError,
	}
	var content *directories.ContentError
	if errors.As(o.DirectoryError, &content) {
		if content.Reason != v1alpha1.ReasonArtifactRefused {
			return contentBlocked(content)
		}
		blocked = contentBlocked(content)
	}
	// The source is to blame for content that cannot be had or is wrong.
	blocked.Causes = o.sourceCause(blocked.Reason, blocked.Message)
	return blocked
}

// k8sVersionGate wants the cluster's version to be what the layer asks for.
func k8sVersionGate(o Observation) *Blocked {
	wanted := o.Layer.Spec.Prereqs.K8sVersion
	satisfied, err := versions.KubernetesSatisfied(wanted, o.ClusterVersion)
	if err != nil {
		return &Blocked{
			State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonInvalidSpec, Stalled: true,
			Message: "spec.prereqs.k8sVersion: " + err.Error(),
		}
	}
	if satisfied {
		return nil
	}
	message := fmt.Sprintf("waits for Kubernetes %s: the cluster is at %s", wanted, o.ClusterVersion)
	return &Blocked{
		State: v1alpha1.StateK8sVersion, Reason: v1alpha1.ReasonK8sVersion, Message: message,
		Causes: o.clusterCause(v1alpha1.ReasonK8sVersion, message),
	}
}

// specGate wants dependencies that can be understood and that do not lead back
// to the layer.
func specGate(o Observation) *Blocked {
	if _, err := dependencies.ParseAll(o.Layer.Spec.Prereqs.DependsOn); err != nil {
		return &Blocked{State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonInvalidSpec, Message: err.Error(), Stalled: true}
	}
	if cycle := o.cycle(); cycle != nil {
		return &Blocked{
			State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonDependencyCycle, Stalled: true,
			Message: "layers depend on each other: " + strings.Join(cycle, " -> "), Causes: cycleCauses(cycle),
		}
	}
	return nil
}

// cycle returns the path along which the layer depends on itself.
func (o Observation) cycle() []string {
	return dependencies.Cycle(o.Layer.Name, func(name string) []string {
		layer := o.Layer
		if name != layer.Name {
			layer = o.Layers[name].Layer
		}
		if layer == nil {
			return nil
		}
		return dependencies.Names(layer.Spec.Prereqs.DependsOn)
	})
}

// dependsOnGate wants every dependency deployed. All that are not are named;
// the first one gives the reason. A layer that has all that it wants does not wait for what
// another Platform brings and changes: it would look as if something of it were under way.
func dependsOnGate(o Observation) *Blocked {
	// specGate, which comes before, has refused those that cannot be understood.
	wanted, _ := dependencies.ParseAll(o.Layer.Spec.Prereqs.DependsOn)
	var blocked *Blocked
	var messages []string
	named, hasAll := 0, o.hasAll()
	for _, dependency := range wanted {
		lacks := unmet(o, dependency)
		if lacks == nil && !hasAll {
			lacks = o.unmetBelow(dependency.Name, map[string]bool{})
		}
		if lacks == nil || hasAll && lacks.underWay && isOfAnother(o.Layer, o.Layers[dependency.Name].Layer) {
			continue
		}
		if blocked == nil {
			blocked = &Blocked{State: v1alpha1.StateApplyPending, Reason: lacks.reason}
		}
		messages = append(messages, fmt.Sprintf("waits for %s: %s", dependency, lacks.seen))
		named++
		if named <= maxBeside {
			// What a layer says of its releases is left to the causes behind it.
			blocked.Causes = append(blocked.Causes, layerCause(dependency.Name, lacks.reason, lacks.brief))
			blocked.Causes = append(blocked.Causes, o.carried(o.Layers[dependency.Name].Layer)...)
		}
	}
	if blocked != nil {
		blocked.Message = strings.Join(messages, "; ")
	}
	return blocked
}

// lack is why a dependency does not hold.
type lack struct {
	reason string
	// seen is what was seen, and brief the same without what the other layer says.
	seen, brief string
	// underWay is true where the other layer has deployed something before, and is on its way
	// to something else.
	underWay bool
}

// hasAll tells whether the layer has deployed all that it wants now.
func (o Observation) hasAll() bool {
	status := o.Layer.Status
	return deployed(o.Layer) && status.ObservedGeneration == o.Layer.Generation && o.Directory != nil &&
		status.Version == o.Layer.Spec.Version && status.Digest == o.Directory.Digest &&
		(status.Attempt == nil || isContentOf(status.Attempt, status.Version, status.Digest))
}

// isOfAnother tells whether two layers are of different Platforms.
func isOfAnother(layer, other *v1alpha1.AddonsLayer) bool {
	if other == nil {
		return false
	}
	of, its := layer.Labels[v1alpha1.PlatformLabel], other.Labels[v1alpha1.PlatformLabel]
	return of != "" && its != "" && of != its
}

// unmetBelow returns what a dependency that is deployed does not wait for itself, because that is
// of another Platform, and what this layer waits for in its place; nil for nothing.
func (o Observation) unmetBelow(name string, seen map[string]bool) *lack {
	layer := o.Layers[name].Layer
	if layer == nil || seen[name] {
		return nil
	}
	seen[name] = true
	below, _ := dependencies.ParseAll(layer.Spec.Prereqs.DependsOn)
	for _, dependency := range below {
		if isOfAnother(layer, o.Layers[dependency.Name].Layer) {
			if lacks := unmet(o, dependency); lacks != nil {
				return lacks
			}
		}
		if lacks := o.unmetBelow(dependency.Name, seen); lacks != nil {
			return lacks
		}
	}
	return nil
}

// isOnItsWay tells whether a layer that has deployed something is on its way to something else,
// and neither failed nor held up by what only somebody can mend.
func isOnItsWay(layer *v1alpha1.AddonsLayer) bool {
	if layer.Status.Version == "" || isStalled(layer) {
		return false
	}
	switch layer.Status.State {
	case v1alpha1.StateDeployed, v1alpha1.StateApplying, v1alpha1.StateApplyPending, v1alpha1.StatePruning:
		return true
	}
	return false
}

// unmet returns why a dependency does not hold; nil where it holds. A layer that stays
// at what it has deployed counts as that.
func unmet(o Observation, dependency dependencies.Dependency) *lack {
	of := func(reason, seen string) *lack { return &lack{reason: reason, seen: seen, brief: seen} }
	other, exists := o.Layers[dependency.Name]
	if !exists || other.Layer == nil {
		return of(v1alpha1.ReasonDependencyNotFound, fmt.Sprintf("there is no layer %s", dependency.Name))
	}
	layer := other.Layer
	held := HoldOf(layer, o.Now).Active
	stays := held || o.countsAsDeployed(layer)
	// at says where the other layer is, between two texts.
	at := func(reason, before, after string) *lack {
		place := placeOf(layer)
		return &lack{reason: reason, seen: before + place + said(layer) + after, brief: before + place + after}
	}
	switch {
	case isDeleting(layer):
		return of(v1alpha1.ReasonDependencyNotDeployed, layer.Name+" is being deleted")
	case v1alpha1.IsForeign(layer.Status.Conditions):
		return of(v1alpha1.ReasonDependencyNotDeployed, layer.Name+" "+readyMessage(layer))
	case !stays && layer.Status.ObservedGeneration < 0:
		return of(v1alpha1.ReasonDependencyNotDeployed, layer.Name+" has not been looked at yet")
	case !stays && layer.Status.ObservedGeneration != layer.Generation:
		changed := of(v1alpha1.ReasonDependencyNotDeployed, fmt.Sprintf("%s has changed and is not deployed as it is now (generation %d, seen %d)",
			layer.Name, layer.Generation, layer.Status.ObservedGeneration))
		changed.underWay = isOnItsWay(layer)
		return changed
	case layer.Status.Version != "" && !dependency.Accepts(layer.Status.Version):
		return at(v1alpha1.ReasonDependencyVersion, "", dependency.Explain(layer.Status.Version))
	case layer.Status.Version == "" || !deployed(layer) && (held || !stays):
		there := at(v1alpha1.ReasonDependencyNotDeployed, "", "")
		there.underWay = !held && isOnItsWay(layer)
		return there
	case stays || !other.SameSource:
		return nil
	case other.Digest == "":
		return of(v1alpha1.ReasonDependencyNotDeployed, fmt.Sprintf("what revision %s holds for %s cannot be read", o.Source.Revision, layer.Name))
	case other.Digest != layer.Status.Digest:
		changes := at(v1alpha1.ReasonDependencyNotDeployed,
			fmt.Sprintf("revision %s changes %s, which has not deployed that yet; ", o.Source.Revision, layer.Name), "")
		changes.underWay = isOnItsWay(layer)
		return changes
	}
	return nil
}

// placeOf says in a few words where a layer is.
func placeOf(layer *v1alpha1.AddonsLayer) string {
	state := string(layer.Status.State)
	if state == "" {
		state = "new"
	}
	if layer.Status.Version == "" {
		return fmt.Sprintf("%s has deployed no version yet, %s", layer.Name, state)
	}
	return fmt.Sprintf("%s is at %s, %s", layer.Name, layer.Status.Version, state)
}

// said is what a layer that is not deployed says of itself, after a colon.
func said(layer *v1alpha1.AddonsLayer) string {
	if layer.Status.State == v1alpha1.StateDeployed {
		return ""
	}
	return colon(printable.Shorten(readyMessage(layer)))
}
