// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package directoriestest makes directories for tests.
package directoriestest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/directories"
)

// Of returns a directory whose digest says what is in it.
func Of(revision string, manifests ...directories.Manifest) *directories.Directory {
	names := []string{"content"}
	for _, m := range manifests {
		names = append(names, m.Object.GetName()+fmt.Sprint(m.Object.Object["spec"]))
	}
	return &directories.Directory{Revision: revision, Digest: strings.Join(names, " "), Manifests: manifests}
}

// HelmRelease returns a HelmRelease as a directory has it, with further fields of its
// specification: a name and a value each.
func HelmRelease(name string, spec ...any) directories.Manifest {
	fields := map[string]any{"interval": "1m"}
	for i := 0; i+1 < len(spec); i += 2 {
		fields[spec[i].(string)] = spec[i+1]
	}
	release := Any("helm.toolkit.fluxcd.io/v2", "HelmRelease", "default", name)
	release.Object.Object["spec"] = fields
	return release
}

// Any returns an object of any kind as a directory has it.
func Any(apiVersion, kind, namespace, name string) directories.Manifest {
	meta := map[string]any{"name": name}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	return directories.Manifest{File: "base/" + name + ".yaml", Line: 1, Object: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": meta,
	}}}
}

// Secret returns a Secret with a value that nobody should see.
func Secret(namespace, name string, changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	obj := Any("v1", "Secret", namespace, name).Object
	obj.Object["data"] = map[string]any{"value": "aHVudGVyMg=="}
	for _, change := range changes {
		change(obj)
	}
	return obj
}

// OfType gives a Secret a type.
func OfType(kind string) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) { obj.Object["type"] = kind }
}

// Labelled gives an object a label.
func Labelled(key, value string) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		labels := obj.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
		obj.SetLabels(labels)
	}
}

// Annotated gives an object an annotation.
func Annotated(key, value string) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		annotations := obj.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
		obj.SetAnnotations(annotations)
	}
}
