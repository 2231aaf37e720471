// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
)

// strataLabels say what Strata knows of an object, and fluxLabels which HelmRelease
// has installed it. What they say is for those to say that know it: no directory
// does.
var (
	strataLabels = []string{
		v1alpha1.OrphanedLabel, v1alpha1.PlatformLabel, v1alpha1.PlatformLayerLabel, v1alpha1.PlatformClusterLabel, v1alpha1.PlatformFamilyLabel,
	}
	fluxLabels        = []string{"helm.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/namespace"}
	strataAnnotations = []string{
		v1alpha1.SuspendedByHoldAnnotation, v1alpha1.SuspendedByLossAnnotation, v1alpha1.SupersededByAnnotation,
		v1alpha1.PlatformBeforeAnnotation, v1alpha1.PlatformMovedAnnotation, v1alpha1.PlatformInputsAnnotation,
		v1alpha1.PlatformInputsBeforeAnnotation, v1alpha1.PlatformDroppedAnnotation,
		v1alpha1.CreatedForAnnotation,
	}
)

// setMarks makes an object the layer's, and takes off what a directory may not say
// of it. Annotations by which people tell Strata what to do are theirs to write.
func setMarks(obj *unstructured.Unstructured, layer string) {
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	for _, key := range slices.Concat(strataLabels, fluxLabels) {
		delete(labels, key)
	}
	labels[v1alpha1.LayerLabel] = layer
	obj.SetLabels(labels)
	if annotations := obj.GetAnnotations(); len(annotations) > 0 {
		for _, key := range strataAnnotations {
			delete(annotations, key)
		}
		obj.SetAnnotations(annotations)
	}
	if finalizers := obj.GetFinalizers(); len(finalizers) > 0 {
		obj.SetFinalizers(slices.DeleteFunc(finalizers, isStrataFinalizer))
	}
}

// isStrataFinalizer tells a finalizer that Strata sets, and that keeps an object for
// ever where Strata does not know it.
func isStrataFinalizer(name string) bool {
	return name == v1alpha1.Finalizer || strings.HasPrefix(name, "kraan.io/") || strings.HasPrefix(name, "platform.kraan.io/")
}
