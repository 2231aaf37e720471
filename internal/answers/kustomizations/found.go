// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomizations

import (
	"fmt"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Read understands a Kustomization. The error names a field that Flux's v1 does not have.
func Read(object *unstructured.Unstructured) (*kustomizev1.Kustomization, error) {
	if version := object.GroupVersionKind().Version; version != kustomizev1.GroupVersion.Version {
		return nil, fmt.Errorf("it is of %s, and only %s is read: let Flux migrate it first", object.GetAPIVersion(), kustomizev1.GroupVersion)
	}
	read := &kustomizev1.Kustomization{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, read, true); err != nil {
		if strict, is := runtime.AsStrictDecodingError(err); is && len(strict.Errors()) > 0 {
			err = strict.Errors()[0]
		}
		return nil, fmt.Errorf("it cannot be understood: %w", err)
	}
	return read, nil
}

// Labels by which kustomize-controller names the Kustomization that applies an object.
const (
	NameLabel      = "kustomize.toolkit.fluxcd.io/name"
	NamespaceLabel = "kustomize.toolkit.fluxcd.io/namespace"
)

// Live returns a Kustomization as it is on a cluster: who applies it, and how much it
// applies itself.
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
		if !strings.HasSuffix(entry.ID, "_"+kustomizev1.GroupVersion.Group+"_"+kustomizev1.KustomizationKind) {
			found.Others++
		}
	}
	return found, nil
}
