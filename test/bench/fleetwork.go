// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/placement"
)

// helmReleaseKind is the kind of what stays on the management cluster.
const helmReleaseKind = "HelmRelease"

// putGroup is the API group of what layers have on a cluster, which each cluster
// has one of. One API server stands in for all of them, and a connection that
// watches a kind there is told of all objects of it: with a kind that all
// clusters have, each would see what belongs on all the others, too.
func putGroup(cluster string) string { return cluster + ".fleet.example.com" }

// putPath is where the API of a group serves what layers have.
func putPath(group string) string {
	return "/apis/" + group + "/v1/namespaces/" + namespace + "/settings"
}

// putDefinition returns the definition of a cluster's group.
func putDefinition(cluster string) any {
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "settings." + putGroup(cluster)},
		"spec": map[string]any{
			"group": putGroup(cluster), "scope": "Namespaced",
			"names": map[string]any{"plural": "settings", "singular": "setting", "kind": "Setting", "listKind": "SettingList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object",
					"properties": map[string]any{"spec": map[string]any{
						"type": "object", "additionalProperties": map[string]any{"type": "string"},
					}},
				}},
			}},
		},
	}
}

// put is what a layer of another cluster is made of.
type put struct {
	// files are its manifests in the repository, by their paths.
	files map[string]string
	// manifests are those of the objects that come of them: releases on the
	// management cluster, and everything else on the other one.
	manifests []string
}

// newFleet makes clusters with the same layers each. Each layer has a directory
// of its own, with its releases, which all clusters call the same, and one object
// that goes to the cluster.
func newFleet(of size) (*workload, error) {
	w := &workload{marks: map[string]string{}, puts: map[string]put{}}
	for i := range of.clusters {
		cluster := fmt.Sprintf("cluster-%03d", i)
		w.clusters = append(w.clusters, cluster)
		for j := range of.layers {
			l := layer{Name: fmt.Sprintf("%s-layer-%02d", cluster, j), Source: "addons", Cluster: cluster}
			files := map[string]string{l.file("settings"): settings(cluster, l.Name)}
			for k := range of.releases {
				name := fmt.Sprintf("layer-%02d-release-%02d", j, k)
				files[l.file(name)] = manifest(name, "first")
			}
			if err := w.place(l, files); err != nil {
				return nil, err
			}
		}
	}
	return w, nil
}

// place adds a layer with what comes of its manifests, under the names that the
// product gives it: a plain client writes the same.
func (w *workload) place(l layer, files map[string]string) error {
	written := &directories.Directory{}
	for path, text := range files {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
			return fmt.Errorf("%s is no YAML: %w", path, err)
		}
		written.Manifests = append(written.Manifests, directories.Manifest{File: path, Object: obj})
	}
	return w.put(l, written, "first", files)
}

// put adds a layer with what comes of objects on its cluster.
func (w *workload) put(l layer, written *directories.Directory, mark string, files map[string]string) error {
	place := placement.Place{Layer: l.Name, Cluster: types.NamespacedName{Namespace: namespace, Name: l.Cluster}}
	placed, err := place.Put(written)
	if err != nil {
		return fmt.Errorf("cannot place layer %s: %w", l.Name, err)
	}
	of := put{files: files}
	for _, manifest := range placed.Manifests {
		if manifest.Ensured {
			continue // the namespace is there
		}
		text, err := yaml.Marshal(manifest.Object.Object)
		if err != nil {
			return fmt.Errorf("cannot write %s of layer %s: %w", manifest.ID(), l.Name, err)
		}
		of.manifests = append(of.manifests, string(text))
		if manifest.Object.GetKind() == helmReleaseKind {
			l.Releases = append(l.Releases, manifest.Object.GetName())
			w.marks[manifest.Object.GetName()] = mark
		}
	}
	w.layers, w.puts[l.Name] = append(w.layers, l), of
	return nil
}

// settings returns the object that a layer has on its cluster.
func settings(cluster, layer string) string {
	return fmt.Sprintf(`apiVersion: %s/v1
kind: Setting
metadata:
  name: %s
  namespace: %s
spec:
  domain: example.com
  tier: standard
`, putGroup(cluster), layer, namespace)
}
