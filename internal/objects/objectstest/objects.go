// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objectstest makes live objects for tests.
package objectstest

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/internal/objects"
)

// Change is something that differs from what is usual.
type Change func(*unstructured.Unstructured)

// Live returns a live object at the resource version 7.
func Live(id objects.ID, changes ...Change) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(id.GroupKind().WithVersion("v1"))
	obj.SetNamespace(id.Namespace)
	obj.SetName(id.Name)
	obj.SetUID(types.UID("uid-" + id.Name))
	obj.SetResourceVersion("7")
	for _, change := range changes {
		change(obj)
	}
	return obj
}

// ReleaseID names a HelmRelease, which has a generation.
func ReleaseID(name string) objects.ID {
	return objects.ID{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease", Namespace: "default", Name: name}
}

// ConfigID names a ConfigMap, which has no generation.
func ConfigID(name string) objects.ID {
	return objects.ID{Kind: "ConfigMap", Namespace: "default", Name: name}
}

// Release returns a live HelmRelease that is Ready at generation 1.
func Release(name string, changes ...Change) *unstructured.Unstructured {
	return Live(ReleaseID(name), append([]Change{Generation(1), Conditioned("Ready", "True", "", ""), Observed(1)}, changes...)...)
}

// Config returns a live ConfigMap.
func Config(name string, changes ...Change) *unstructured.Unstructured {
	return Live(ConfigID(name), changes...)
}

// Generation sets the generation.
func Generation(g int64) Change { return func(o *unstructured.Unstructured) { o.SetGeneration(g) } }

// Observed sets the generation that the status speaks of.
func Observed(g int64) Change {
	return func(o *unstructured.Unstructured) {
		must(unstructured.SetNestedField(o.Object, g, "status", "observedGeneration"))
	}
}

// Conditioned puts a condition in the place of the one of its type.
func Conditioned(kind, status, reason, message string) Change {
	return func(o *unstructured.Unstructured) {
		list, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
		must(err)
		list = slices.DeleteFunc(list, func(item any) bool { return item.(map[string]any)["type"] == kind })
		list = append(list, map[string]any{"type": kind, "status": status, "reason": reason, "message": message})
		must(unstructured.SetNestedSlice(o.Object, list, "status", "conditions"))
	}
}

// Unreported takes the status away.
func Unreported(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "status") }

// Suspended has Flux leave the object alone.
func Suspended(o *unstructured.Unstructured) {
	must(unstructured.SetNestedField(o.Object, true, "spec", "suspend"))
}

// must ends a test that makes an object which cannot be.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
