// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/reserved"
)

// setMarks makes an object the layer's, and takes off what a directory may not say
// of it. What Place has put keeps what it says of that.
func setMarks(manifest directories.Manifest, obj *unstructured.Unstructured, layer string) {
	labels := sayable(reserved.Label, obj.GetLabels(), nil)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.LayerLabel] = layer
	obj.SetLabels(labels)
	if annotations := obj.GetAnnotations(); len(annotations) > 0 {
		obj.SetAnnotations(sayable(reserved.Annotation, annotations, placed(manifest)))
	}
	if finalizers := obj.GetFinalizers(); len(finalizers) > 0 {
		obj.SetFinalizers(slices.DeleteFunc(finalizers, func(name string) bool { return !reserved.MaySay(reserved.Finalizer, name) }))
	}
}

// sayable returns texts without those that are not for a directory to say, but for others.
func sayable(sort reserved.Sort, texts map[string]string, others []string) map[string]string {
	for key := range texts {
		if !reserved.MaySay(sort, key) && !slices.Contains(others, key) {
			delete(texts, key)
		}
	}
	return texts
}

// placed lists the annotations that Place has set on an object.
func placed(manifest directories.Manifest) []string {
	switch {
	case manifest.Copy:
		return []string{v1alpha1.PlacedForAnnotation, v1alpha1.CopyOfAnnotation, v1alpha1.SharedByAnnotation}
	case manifest.Placed:
		return []string{v1alpha1.PlacedForAnnotation}
	}
	return nil
}
