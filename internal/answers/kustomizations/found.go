// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomizations

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

const kustomizationKind = kustomizev1.KustomizationKind

var v1Version = kustomizev1.GroupVersion.String()

// olderVersions are those that Flux has served before, whose fields v1 has as well, or says
// in another way.
var olderVersions = []string{"v1beta2", "v1beta1"}

// IsKustomization tells whether an object is a Kustomization of Flux, of any version.
func IsKustomization(object *unstructured.Unstructured) bool {
	gvk := object.GroupVersionKind()
	return gvk.Group == kustomizev1.GroupVersion.Group && gvk.Kind == kustomizationKind
}

// Read understands a Kustomization, also of an older version, as Flux would have migrated
// it. The error names a field that Flux's v1 does not have.
func Read(object *unstructured.Unstructured) (*kustomizev1.Kustomization, error) {
	version := object.GroupVersionKind().Version
	switch {
	case version == kustomizev1.GroupVersion.Version:
	case slices.Contains(olderVersions, version):
		object = object.DeepCopy()
		if err := migrate(object); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("it is of %s, and what is read are %s, and of that group %s",
			object.GetAPIVersion(), kustomizev1.GroupVersion, strings.Join(olderVersions, " and "))
	}
	object = withTexts(object)
	read := &kustomizev1.Kustomization{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, read, true); err != nil {
		if strict, is := runtime.AsStrictDecodingError(err); is && len(strict.Errors()) > 0 {
			err = strict.Errors()[0]
		}
		return nil, fmt.Errorf("it cannot be understood: %w", err)
	}
	return read, nil
}

// withTexts returns a Kustomization whose labels and annotations are texts: kustomize takes
// true and 1 for what they are written as.
func withTexts(object *unstructured.Unstructured) *unstructured.Unstructured {
	metadata, _ := object.Object["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		values, _ := metadata[field].(map[string]any)
		for name, value := range values {
			if _, isText := value.(string); isText {
				continue
			}
			object = object.DeepCopy()
			_ = unstructured.SetNestedField(object.Object, fmt.Sprint(value), "metadata", field, name) // all are mappings
		}
	}
	return object
}

// migrate writes a Kustomization of an older version as v1: patches of two further fields,
// and what v1 has no more.
func migrate(object *unstructured.Unstructured) error {
	spec, _ := object.Object["spec"].(map[string]any)
	patches, _ := spec["patches"].([]any)
	merged, _ := spec["patchesStrategicMerge"].([]any)
	for i, patch := range merged {
		text, err := json.Marshal(patch)
		if err != nil {
			return fmt.Errorf("spec.patchesStrategicMerge[%d] cannot be understood: %w", i, err)
		}
		patches = append(patches, map[string]any{"patch": string(text)})
	}
	operations, _ := spec["patchesJson6902"].([]any)
	for i, each := range operations {
		of, _ := each.(map[string]any)
		text, err := json.Marshal(of["patch"])
		if err != nil {
			return fmt.Errorf("spec.patchesJson6902[%d] cannot be understood: %w", i, err)
		}
		patches = append(patches, map[string]any{"patch": string(text), "target": of["target"]})
	}
	if len(patches) > 0 {
		spec["patches"] = patches
	}
	for _, gone := range []string{"patchesStrategicMerge", "patchesJson6902", "validation"} {
		delete(spec, gone)
	}
	object.SetAPIVersion(v1Version)
	return nil
}

// Labels by which kustomize-controller names the Kustomization that applies an object.
const (
	NameLabel      = "kustomize.toolkit.fluxcd.io/name"
	NamespaceLabel = "kustomize.toolkit.fluxcd.io/namespace"
)

// Live returns a Kustomization as it is on a cluster: who applies it, and what it applies
// itself.
func Live(object *unstructured.Unstructured) (Found, error) {
	read, err := Read(object)
	if err != nil {
		return Found{}, err
	}
	labels := object.GetLabels()
	found := Found{Kustomization: read, Parent: types.NamespacedName{Namespace: labels[NamespaceLabel], Name: labels[NameLabel]}}
	if found.Parent == found.key() {
		found.Parent = types.NamespacedName{}
	}
	if read.Status.Inventory == nil {
		found.Others = -1
		return found, nil
	}
	for _, entry := range read.Status.Inventory.Entries {
		id, is := strings.CutSuffix(entry.ID, "_"+kustomizev1.GroupVersion.Group+"_"+kustomizationKind)
		if !is {
			found.Others++
			continue
		}
		namespace, name, _ := strings.Cut(id, "_")
		found.Applies = append(found.Applies, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return found, nil
}
