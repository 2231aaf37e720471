// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
)

// blockingLayersMessage says which layers keep this one from being deleted; ""
// where none does.
func (o Observation) blockingLayersMessage() string {
	if o.Layer.Annotations[v1alpha1.ForceDeleteAnnotation] == "true" {
		return ""
	}
	if names := o.dependants(); len(names) > 0 {
		return fmt.Sprintf("is not deleted while layer %s depends on it: delete that first, or set the annotation %s to \"true\"",
			strings.Join(names, ", "), v1alpha1.ForceDeleteAnnotation)
	}
	names := o.predecessors()
	if len(names) == 0 {
		return ""
	}
	message := fmt.Sprintf("is not deleted before layer %s is gone (spec.teardownAfter)", strings.Join(names, ", "))
	staying := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return isDeleting(o.Layers[name].Layer) })
	if len(staying) == 0 {
		return message
	}
	return fmt.Sprintf("%s: delete %s first, or set the annotation %s to \"true\"", message, strings.Join(staying, ", "), v1alpha1.ForceDeleteAnnotation)
}

// predecessors returns the layers of teardownAfter that are still there, sorted, but
// for the layer itself and those that would wait for it in turn.
func (o Observation) predecessors() []string {
	var names []string
	for _, name := range o.Layer.Spec.TeardownAfter {
		if o.Layers[name].Layer != nil && !slices.Contains(names, name) && !o.waitsForThis(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// goesBefore tells whether a layer is in the way of another one's deletion because
// it depends on it.
func goesBefore(dependant, layer *v1alpha1.AddonsLayer) bool {
	return hasDeployed(dependant) && dependsOn(dependant, layer.Name) && (len(layer.Spec.TeardownAfter) == 0 || !isDeleting(dependant))
}

// waitsForThis tells whether the deletion of another layer waits for that of this
// one, or would, directly or not.
func (o Observation) waitsForThis(name string) bool {
	seen := map[string]bool{}
	var visit func(name string) bool
	visit = func(name string) bool {
		if name == o.Layer.Name {
			return true
		}
		layer := o.Layers[name].Layer
		if layer == nil || seen[name] {
			return false
		}
		seen[name] = true
		if slices.ContainsFunc(layer.Spec.TeardownAfter, func(next string) bool { return next != name && visit(next) }) || goesBefore(o.Layer, layer) {
			return true
		}
		for next, other := range o.Layers {
			if other.Layer != nil && goesBefore(other.Layer, layer) && visit(next) {
				return true
			}
		}
		return false
	}
	return visit(name)
}
