// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/charts"
	"github.com/strata-project/strata/internal/answers/repository"
	"github.com/strata-project/strata/internal/forecast"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/sources"
)

// Written is what a folder has in its files, for a cluster that has nothing.
type Written struct {
	// Strata holds the objects of Strata's own kinds.
	Strata []repository.Manifest
	// Sources holds Flux's sources, wherever they are.
	Sources []repository.Manifest
}

// Written returns what the files of the folder or revision have.
func (g *Plan) Written(ctx context.Context) (Written, error) {
	var found Written
	var err error
	if found.Strata, err = g.repository.ManifestsOf(ctx, v1alpha1.GroupVersion.Group, g.options.LayersIn...); err != nil {
		return found, err
	}
	found.Sources, err = g.repository.ManifestsOf(ctx, sourcev1.GroupVersion.Group)
	return found, err
}

// Load returns the chart and the true values of a release that a layer of the folder
// lists: by what the layers of a world list, the sources that are written, and the folder
// itself. Whoever calls it installs what they have in the folder, so that the Secrets in it
// may be used.
func (g *Plan) Load(
	ctx context.Context,
	r *charts.Renderer,
	w forecast.World,
	written Written,
	release *unstructured.Unstructured,
) (*charts.Installable, error) {
	known := map[objects.ID]*unstructured.Unstructured{}
	for _, manifest := range written.Sources {
		known[objects.IDOf(manifest.Object)] = manifest.Object
	}
	for _, content := range w.Contents {
		if content.Directory == nil {
			continue
		}
		for i := range content.Directory.Manifests {
			manifest := &content.Directory.Manifests[i]
			known[manifest.ID()] = manifest.Object
		}
	}
	request := charts.Request{
		Release: release, Secrets: charts.Secrets{True: true}, KubeVersion: g.Version,
		Trust: func(*unstructured.Unstructured) charts.Trust { return charts.TrustAll },
		Find:  func(_ context.Context, id objects.ID) (*unstructured.Unstructured, error) { return known[id], nil },
		Files: func(_ context.Context, source objects.ID) (fs.FS, error) {
			if source == g.source.ID() {
				return g.artifact, nil
			}
			return nil, nil
		},
	}
	// What cannot be rendered is found before there is a cluster.
	if _, err := r.Render(ctx, request); err != nil {
		return nil, err
	}
	return r.Load(ctx, request)
}

// SourceOf returns the source of a layer, in the namespace that the controller would look in.
func (g *Plan) SourceOf(layer *v1alpha1.AddonsLayer) sources.Ref {
	return sources.Of(layer, g.settings.Namespace)
}
