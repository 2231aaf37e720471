// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package waits finds layers that wait for each other by what is in them. It is pure.
package waits

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// Layer is a layer with what its directory holds; nothing where that is not known.
type Layer struct {
	*v1alpha1.AddonsLayer
	Manifests []directories.Manifest
}

// Graph says what each layer, and each release of a layer, waits for. A layer is deployed
// when its releases are ready, and those releases of others whose health it looks at. A release
// is ready when those that it depends on are, and it comes when the layers before its own are
// deployed.
type Graph struct{ layers, all dependencies.Graph }

// GraphOf returns what layers of one cluster wait for.
func GraphOf(all []Layer) Graph {
	g := Graph{dependencies.Graph{}, dependencies.Graph{}}
	owner := map[objects.ID]string{}
	for _, layer := range all {
		for _, manifest := range layer.Manifests {
			if id := manifest.ID(); id.GroupKind() == kinds.HelmReleaseKind && owner[id] == "" {
				owner[id] = layer.Name
			}
		}
	}
	for _, layer := range all {
		own := node(layer.Name)
		for _, name := range dependencies.Names(layer.Spec.Prereqs.DependsOn) {
			g.layers[own] = append(g.layers[own], node(name))
		}
		g.all[own] = append(g.all[own], g.layers[own]...)
		for _, check := range layer.Spec.HealthChecks {
			of := objects.ID{Group: kinds.HelmReleaseKind.Group, Kind: check.Kind, Namespace: check.Namespace, Name: check.Name}
			if owner[of] != "" && !layer.Spec.Waits() {
				g.all[own] = append(g.all[own], of.String())
			}
		}
		for _, manifest := range layer.Manifests {
			if owner[manifest.ID()] != layer.Name {
				continue // no release, or one that another layer lists, too
			}
			release := manifest.ID().String()
			if layer.Spec.Waits() {
				g.all[own] = append(g.all[own], release)
			}
			for _, wanted := range Releases(manifest.Object) {
				if owner[wanted] != "" {
					g.all[release] = append(g.all[release], wanted.String())
				}
			}
			g.all[release] = append(g.all[release], g.layers[own]...)
		}
	}
	return g
}

// Circle returns what lies on a circle with a layer, and a shortest way around, which begins
// and ends with the layer; nil where there is none, or where layers alone make one.
func (g Graph) Circle(layer string) (circle, way []string) {
	start := node(layer)
	circle = g.all.Circle(start)
	if circle == nil || g.layers.Circle(start) != nil {
		return nil, nil
	}
	return circle, dependencies.Cycle(start, func(at string) []string { return g.all[at] })
}

// LayerPrefix stands before the name of a layer on a circle; all else there is a release.
const LayerPrefix = "layer "

func node(layer string) string { return LayerPrefix + layer }

// Releases returns the releases that a release depends on, in order.
func Releases(release *unstructured.Unstructured) []objects.ID {
	value, _, _ := unstructured.NestedFieldNoCopy(release.Object, "spec", "dependsOn")
	list, _ := value.([]any)
	found := make([]objects.ID, 0, len(list))
	for _, item := range list {
		fields, _ := item.(map[string]any)
		name, _ := fields["name"].(string)
		namespace, _ := fields["namespace"].(string)
		id := objects.IDOf(release)
		id.Name, id.Namespace = name, cmp.Or(namespace, id.Namespace)
		found = append(found, id)
	}
	return found
}
