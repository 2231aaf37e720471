// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
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
// must be written. What people own of it stays as it is: hold, interval, orphanGrace,
// rollback, and labels and annotations that are not the platform's.
func draft(existing *v1alpha1.AddonsLayer, name string, labels, annotations map[string]string, spec v1alpha1.AddonsLayerSpec) (layer *v1alpha1.AddonsLayer, changed bool) {
	if existing == nil {
		layer = &v1alpha1.AddonsLayer{Spec: spec}
		layer.Name, layer.Labels = name, labels
		if len(annotations) > 0 {
			layer.Annotations = annotations
		}
		return layer, true
	}
	layer = existing.DeepCopy()
	layer.Labels = with(layer.Labels, labels)
	layer.Annotations = with(layer.Annotations, annotations)
	spec.Hold, spec.Interval, spec.OrphanGrace, spec.Rollback = layer.Spec.Hold, layer.Spec.Interval, layer.Spec.OrphanGrace, layer.Spec.Rollback
	if was := layer.Spec.Inputs; was != nil && spec.Inputs != nil && sameJSON(was.Raw, spec.Inputs.Raw) {
		spec.Inputs = was
	}
	layer.Spec = spec
	changed = !equality.Semantic.DeepEqual(layer.Spec, existing.Spec) ||
		!maps.Equal(layer.Labels, existing.Labels) || !maps.Equal(layer.Annotations, existing.Annotations)
	return layer, changed
}
