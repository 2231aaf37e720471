// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependencies"
)

// breakGate keeps a layer from a version that layers which depend on it do not
// take. A roll-out of that version and content that has begun goes on, whatever
// ranges become of it.
func breakGate(o Observation) *Blocked {
	if o.begun() {
		return nil
	}
	return o.refuses(o.Layer.Spec.Version)
}

// refuses says why the layer does not move to a version, forwards or back; nil
// where it may.
func (o Observation) refuses(version string) *Blocked {
	if o.Layer.Annotations[v1alpha1.AllowBreakAnnotation] == "true" {
		return nil
	}
	broken := wouldBreak(o, version)
	if len(broken) == 0 {
		return nil
	}
	return &Blocked{
		State: v1alpha1.StateApplyPending, Reason: v1alpha1.ReasonWouldBreakDependants, Causes: o.brokenCauses(version),
		Message: fmt.Sprintf("stays at %s, because %s is outside of what its dependants take: %s; change what they depend on, or set the annotation %s to \"true\"",
			o.Layer.Status.Version, version, listed(broken), v1alpha1.AllowBreakAnnotation),
	}
}

// begun tells whether the layer is rolling out, or has rolled out, the version
// that it asks for with the content that its directory has.
func (o Observation) begun() bool {
	attempt := o.Layer.Status.Attempt
	return attempt != nil && o.Directory != nil && attempt.Version == o.Layer.Spec.Version && attempt.Digest == o.Directory.Digest
}

// wouldBreak returns the layers that take the version which the layer has
// deployed and would not take another one, each as name (range), sorted. Their
// present specification counts, held or not, and what they ask for as a range:
// an exact version asks the dependant to wait, not the layer. One that is being
// deleted, or has deployed nothing, is not in the way.
func wouldBreak(o Observation, version string) []string {
	var broken []string
	for _, other := range o.Layers {
		if dependant := other.Layer; dependant != nil && breaks(dependant, o.Layer, version) {
			broken = append(broken, fmt.Sprintf("%s (%s)", dependant.Name, strings.Join(rangesOf(dependant, o.Layer.Name), ", ")))
		}
	}
	slices.Sort(broken)
	return broken
}

// breaks tells whether a move of a layer to a version takes from a dependant
// what it has. Where it is not known which version the layer has, as after its status
// did not count, a dependant took that.
func breaks(dependant, layer *v1alpha1.AddonsLayer, version string) bool {
	if dependant.Name == layer.Name || layer.Status.Version == "" && !isUnknown(layer) || isDeleting(dependant) || !hasDeployed(dependant) {
		return false
	}
	took, takes := true, true
	for _, text := range rangesOf(dependant, layer.Name) {
		dependency, _ := dependencies.Parse(text)
		took = took && (layer.Status.Version == "" || dependency.Accepts(layer.Status.Version))
		takes = takes && dependency.Accepts(version)
	}
	return took && !takes
}

// isUnknown tells whether a layer has deployed something of which its status does not say the
// version any more.
func isUnknown(layer *v1alpha1.AddonsLayer) bool {
	return v1alpha1.IsForeign(layer.Status.Conditions) ||
		slices.ContainsFunc(layer.Status.History, func(e v1alpha1.HistoryEntry) bool { return e.Result == v1alpha1.ResultDeployed })
}

// rangesOf returns what a layer asks of another one as ranges, as it is written.
func rangesOf(layer *v1alpha1.AddonsLayer, name string) []string {
	var ranges []string
	for _, text := range layer.Spec.Prereqs.DependsOn {
		if !strings.HasPrefix(text, name+"@") {
			continue
		}
		if dependency, err := dependencies.Parse(text); err == nil && dependency.Range {
			ranges = append(ranges, text)
		}
	}
	return ranges
}

// countsAsDeployed tells whether a layer that is not deployed as it is
// specified stays at what it has deployed, whole, until somebody changes
// something: its new version is refused for the sake of its dependants, or it
// has gone back from what failed. Those who depend on it go by what it has.
func (o Observation) countsAsDeployed(layer *v1alpha1.AddonsLayer) bool {
	status := layer.Status
	attempt := status.Attempt
	half := attempt != nil && (attempt.Version != status.Version || attempt.Digest != status.Digest)
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition)
	if status.Version == "" || half || ready == nil || status.ObservedGeneration != layer.Generation {
		return false
	}
	switch ready.Reason {
	case v1alpha1.ReasonWouldBreakDependants:
		// The layer moves on as soon as it sees that it may.
		return o.stillRefused(layer)
	case v1alpha1.ReasonRolledBack:
		return status.Rollback != nil && status.Rollback.Generation == layer.Generation
	}
	return false
}

// stillRefused tells whether the version that a layer asks for is in the way of
// a dependant, as far as is seen from here.
func (o Observation) stillRefused(layer *v1alpha1.AddonsLayer) bool {
	if layer.Annotations[v1alpha1.AllowBreakAnnotation] == "true" {
		return false
	}
	seen := Observation{Layer: layer, Layers: o.Layers}
	return breaks(o.Layer, layer, layer.Spec.Version) || len(wouldBreak(seen, layer.Spec.Version)) > 0
}

// listed joins the first few of many.
func listed(texts []string) string {
	const most = 20
	if more := len(texts) - most; more > 0 {
		texts = append(slices.Clone(texts[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}
