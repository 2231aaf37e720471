// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"cmp"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
)

// labelled returns the labels of a layer.
func labelled(platform *v1alpha1.Platform, cluster types.NamespacedName, family, layer string) map[string]string {
	labels := labelsOf(platform)
	labels[v1alpha1.PlatformFamilyLabel] = family
	labels[v1alpha1.PlatformLayerLabel] = layer
	labels[v1alpha1.PlatformClusterLabel] = clusterValue(cluster)
	return labels
}

// draft returns a layer as it is to be, made of the one that exists, and whether it
// must be written. What people own of it stays as it is: hold, rollback, interval and
// orphanGrace where the platform says none, and labels and annotations that are not the
// platform's.
func draft(
	existing *v1alpha1.AddonsLayer,
	name string,
	labels, annotations map[string]string,
	spec v1alpha1.AddonsLayerSpec,
) (layer *v1alpha1.AddonsLayer, changed bool) {
	if existing == nil {
		layer = &v1alpha1.AddonsLayer{Spec: *spec.DeepCopy()}
		layer.Name, layer.Labels = name, labels
		if len(annotations) > 0 {
			layer.Annotations = annotations
		}
		return layer, true
	}
	was := existing.Spec
	spec.Hold, spec.Rollback = was.Hold, was.Rollback
	spec.Interval, spec.OrphanGrace = cmp.Or(spec.Interval, was.Interval), cmp.Or(spec.OrphanGrace, was.OrphanGrace)
	if was.Inputs != nil && spec.Inputs != nil && sameJSON(was.Inputs.Raw, spec.Inputs.Raw) {
		spec.Inputs = was.Inputs
	}
	labels, annotations = with(existing.Labels, labels), with(withoutInputs(existing.Annotations), annotations)
	if equality.Semantic.DeepEqual(was, spec) && maps.Equal(labels, existing.Labels) && maps.Equal(annotations, existing.Annotations) {
		return existing, false
	}
	layer = existing.DeepCopy()
	layer.Labels, layer.Annotations, layer.Spec = labels, annotations, *spec.DeepCopy()
	return layer, true
}

// withoutInputs returns annotations without the inputs that a cluster has: they are not kept
// where they do not go in stages any more.
func withoutInputs(annotations map[string]string) map[string]string {
	if annotations[v1alpha1.PlatformInputsAnnotation]+annotations[v1alpha1.PlatformInputsBeforeAnnotation] == "" {
		return annotations
	}
	others := maps.Clone(annotations)
	delete(others, v1alpha1.PlatformInputsAnnotation)
	delete(others, v1alpha1.PlatformInputsBeforeAnnotation)
	return others
}
