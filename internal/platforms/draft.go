// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"cmp"
	"maps"
	"slices"

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
	labels, annotations = with(existing.Labels, labels), with(withoutPassing(existing.Annotations), annotations)
	if equality.Semantic.DeepEqual(was, spec) && maps.Equal(labels, existing.Labels) && maps.Equal(annotations, existing.Annotations) {
		return existing, false
	}
	layer = existing.DeepCopy()
	layer.Labels, layer.Annotations, layer.Spec = labels, annotations, *spec.DeepCopy()
	return layer, true
}

// withoutPassing returns annotations without those that are only kept while they hold: the
// inputs that a cluster has, where they do not go in stages any more, and that a layer was
// dropped, where it is wanted again.
func withoutPassing(annotations map[string]string) map[string]string {
	passing := []string{v1alpha1.PlatformInputsAnnotation, v1alpha1.PlatformInputsBeforeAnnotation, v1alpha1.PlatformDroppedAnnotation}
	if !slices.ContainsFunc(passing, func(key string) bool { return annotations[key] != "" }) {
		return annotations
	}
	others := maps.Clone(annotations)
	for _, key := range passing {
		delete(others, key)
	}
	return others
}
