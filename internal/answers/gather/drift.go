// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/charts"
	"github.com/strata-project/strata/internal/answers/drift"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/forecast"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/sources"
)

// Drift compares what layers have with what is wanted.
func (g *Plan) Drift(ctx context.Context, o PreviewOptions) ([]drift.Layer, error) {
	world, err := g.World(ctx)
	if err != nil {
		return nil, err
	}
	renderer, err := NewRenderer("")
	if err != nil {
		return nil, err
	}
	work := &chartWork{Plan: g, renderer: renderer, world: world, tell: o.Say}
	made := forecast.Make(world)
	found := []drift.Layer{}
	for _, layer := range g.Planned {
		if len(o.Names) > 0 && !slices.Contains(o.Names, layer.Name) {
			continue
		}
		o.Say("comparing layer %s", layer.Name)
		diff, err := work.diff(ctx, made, layer)
		if err != nil {
			return nil, err
		}
		found = append(found, diff)
	}
	return found, nil
}

// diff compares what a layer has.
func (r *chartWork) diff(ctx context.Context, made forecast.Forecast, layer *v1alpha1.AddonsLayer) (drift.Layer, error) {
	found := drift.Layer{Layer: layer.Name, Objects: []drift.Object{}, Beside: []drift.Beside{}, Unknown: []string{}}
	if err := r.away[sources.Of(layer, r.settings.Namespace)]; err != nil {
		found.Unknown = append(found.Unknown, fmt.Sprintf("the layer's own objects: %v", err))
	}
	corrected := map[objects.ID]bool{}
	for _, step := range made.Steps {
		if step.Layer != layer.Name || !step.Correction {
			continue
		}
		corrected[step.ID] = true
		// A correction begins with the live object.
		for _, change := range r.changesOf(charts.Diff(bare(step.Done), bare(step.Before)), step.Decrypted) {
			found.Objects = append(found.Objects, drift.Object{ObjectChange: change})
		}
	}
	found.Beside = r.beside(layer, corrected)
	if cluster := placement.Of(layer, r.settings.Namespace); cluster.Name != "" {
		found.Unknown = append(found.Unknown, fmt.Sprintf("what the releases have made is on RemoteCluster %s, which is not asked", cluster))
		return found, ctx.Err()
	}
	for _, entry := range layers.Inventory(layer.Status.Resources, nil) {
		release := r.Objects[entry.ID]
		if entry.ID.GroupKind() != kinds.HelmReleaseKind || release == nil || entry.Status == objects.StatusOrphaned {
			continue
		}
		name := entry.ID.Namespace + "/" + entry.ID.Name
		rendering, hidden, err := r.renderHidden(ctx, release, layer.Name)
		if err != nil {
			found.Unknown = append(found.Unknown, fmt.Sprintf("HelmRelease %s: %v", name, err))
			continue
		}
		live, unknown := r.readRendered(ctx, renderedBy(rendering))
		differs := drift.Of(renderedBy(rendering), live, unknown)
		if !r.options.Charts.ShowSecrets {
			shown, unnamed := drift.Masked(differs, hidden)
			differs = rendering.Masked(shown)
			if unnamed > 0 {
				found.Unknown = append(
					found.Unknown,
					fmt.Sprintf("HelmRelease %s: the names of %d objects that differ depend on values of Secrets (--show-secrets)", name, unnamed),
				)
			}
		}
		for _, change := range r.changesOf(differs, r.isDecrypted(layer.Name, entry.ID)) {
			found.Objects = append(found.Objects, drift.Object{Release: name, ObjectChange: change})
		}
		for _, id := range objects.SortIDs(keysOf(unknown)) {
			found.Unknown = append(found.Unknown, fmt.Sprintf("HelmRelease %s: you may not get %s", name, id))
		}
	}
	return found, ctx.Err()
}

// beside returns what others have of the layer's own objects, and that is no drift. What goes
// from an object that is corrected is a part of what differs.
func (r *chartWork) beside(layer *v1alpha1.AddonsLayer, corrected map[objects.ID]bool) []drift.Beside {
	found := []drift.Beside{}
	for _, entry := range layers.Inventory(layer.Status.Resources, nil) {
		live := r.Objects[entry.ID]
		if live == nil || live.GetLabels()[v1alpha1.LayerLabel] != layer.Name {
			continue
		}
		for _, held := range layers.Takes(live).Beside(live, dependents.MarksManager) {
			if !held.Goes || !corrected[entry.ID] {
				found = append(found, drift.Beside{Object: entry.ID.String(), Held: held})
			}
		}
	}
	return found
}

// renderHidden renders a release as it is deployed, and returns what of that depends on
// values of Secrets: what is another thing with stand-ins in their place. Only the
// chart itself sees the values, and what it makes of them is not shown.
func (r *chartWork) renderHidden(ctx context.Context, release *unstructured.Unstructured, layer string) (*charts.Rendering, []charts.Change, error) {
	if r.options.Charts.ShowSecrets {
		rendering, err := r.render(ctx, r.Objects, release, layer, false, charts.Secrets{True: true})
		return rendering, nil, err
	}
	salt := rand.Text()
	rendering, err := r.render(ctx, r.Objects, release, layer, false, charts.Secrets{Salt: salt + "0"})
	if err != nil || !rendering.FromSecrets {
		return rendering, nil, err
	}
	other, err := r.render(ctx, r.Objects, release, layer, false, charts.Secrets{Salt: salt + "1"})
	if err != nil {
		return nil, nil, err
	}
	deployed, err := r.render(ctx, r.Objects, release, layer, false, charts.Secrets{True: true})
	if err != nil {
		// A chart may put anything into what it says.
		return nil, nil, errors.New("its chart cannot be rendered with the values of its Secrets (--show-secrets says why, and may show them)")
	}
	hidden := charts.Diff(renderedBy(deployed), renderedBy(rendering))
	return deployed, append(hidden, charts.Diff(renderedBy(deployed), renderedBy(other))...), nil
}

func keysOf(ids map[objects.ID]bool) []objects.ID {
	found := make([]objects.ID, 0, len(ids))
	for id := range ids {
		found = append(found, id)
	}
	return found
}

// readRendered reads what is there of objects that were rendered, at the versions
// that they were rendered in.
func (r *chartWork) readRendered(
	ctx context.Context,
	rendered []*unstructured.Unstructured,
) (live map[objects.ID]*unstructured.Unstructured, unknown map[objects.ID]bool) {
	live, unknown = map[objects.ID]*unstructured.Unstructured{}, map[objects.ID]bool{}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, object := range rendered {
		id := objects.IDOf(object)
		group.Go(func() error {
			found, err := r.get(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && found != nil:
				live[id] = found
			case err != nil && !apierrors.IsNotFound(err):
				unknown[id] = true
			}
			return nil
		})
	}
	_ = group.Wait() // what cannot be read is unknown
	return live, unknown
}
