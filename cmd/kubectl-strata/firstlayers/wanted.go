// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package firstlayers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/chartutil"
	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/charts"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/forecast"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/sources"
)

// reader reads what is wanted from a folder.
type reader struct {
	plan     *gather.Plan
	renderer *charts.Renderer
	world    forecast.World
	written  gather.Written
	charts   map[objects.ID]*charts.Installable
}

// read returns the first layers of a folder, with their charts, and what comes after them.
func (r *reader) read(ctx context.Context, names []string, install bool) (wanted Wanted, err error) {
	wanted.Install, r.charts = install, map[objects.ID]*charts.Installable{}
	if r.world, err = r.plan.World(ctx); err != nil {
		return wanted, err
	}
	if r.written, err = r.plan.Written(ctx); err != nil {
		return wanted, err
	}
	for i, name := range names {
		layer, err := r.layer(ctx, name)
		if err != nil {
			return wanted, fmt.Errorf("spec.bootstrap.layers[%d]: %w", i, err)
		}
		wanted.Layers = append(wanted.Layers, layer)
	}
	if install {
		wanted.Objects = r.objects()
	}
	return wanted, nil
}

// layer returns a first layer.
func (r *reader) layer(ctx context.Context, name string) (Layer, error) {
	found := Layer{Name: name, Releases: map[objects.ID]Release{}}
	layer, content := r.plan.PlannedLayer(name), r.world.Contents[name]
	switch {
	case layer == nil:
		return found, fmt.Errorf("no file of the folder has an AddonsLayer %s", name)
	case layer.Spec.Cluster != nil:
		return found, fmt.Errorf("layer %s is for another cluster (spec.cluster)", name)
	case content.Err != nil:
		return found, fmt.Errorf("layer %s: %w", name, content.Err)
	case content.Directory == nil:
		return found, fmt.Errorf("layer %s has another source than the folder stands for: say with --source which one it is", name)
	}
	listed, err := layers.Content(content.Directory, name, layer.Spec.Version, r.world.Scopes)
	if err != nil {
		return found, fmt.Errorf("layer %s: %w", name, err)
	}
	found.Objects = inOrder(listed, func(d dependents.Dependent) bool { return r.isFirst(d) })
	for _, each := range found.Objects {
		release, written := each.Object.Get()
		if !written || each.ID.GroupKind() != kinds.HelmReleaseKind {
			continue
		}
		if elsewhere, _, _ := unstructured.NestedMap(release.Object, "spec", "kubeConfig"); elsewhere != nil {
			return found, fmt.Errorf("layer %s: %s is for another cluster (spec.kubeConfig)", name, each.ID)
		}
		chart, err := r.plan.Load(ctx, r.renderer, r.world, r.written, release)
		if err != nil {
			return found, fmt.Errorf("layer %s: %s: %w", name, each.ID, err)
		}
		r.charts[each.ID] = chart
		found.Releases[each.ID] = Release{
			Chart: chart.Chart.Metadata.Name, Version: chart.Chart.Metadata.Version, Config: chartutil.DigestValues(digest.Canonical, chart.Values).String(),
		}
	}
	if len(found.Releases) == 0 {
		return found, fmt.Errorf("layer %s lists no HelmRelease in %s", name, layer.Spec.Source.Path)
	}
	return found, nil
}

// isFirst tells whether an object can be written before Flux and Strata are there. What is of
// kinds that come with a chart, and Flux's sources, are left to the layer, and so is what
// the controller or helm-controller would leave alone.
func (r *reader) isFirst(d dependents.Dependent) bool {
	gk := d.ID.GroupKind()
	object, written := d.Object.Get()
	if d.Mode == dependents.ModeObserve || !written || d.LeftAlone != "" {
		return false
	}
	if suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend"); suspended && gk == kinds.HelmReleaseKind {
		return false
	}
	return gk == kinds.HelmReleaseKind || r.world.Scopes[d.ID.ServedKind()] != objects.ScopeUnknown && !isFlux(gk)
}

func isFlux(gk schema.GroupKind) bool { return strings.HasSuffix(gk.Group, ".toolkit.fluxcd.io") }

// inOrder returns those of the objects that are meant, each after what it needs.
func inOrder(listed []dependents.Dependent, isMeant func(dependents.Dependent) bool) []dependents.Dependent {
	left := slices.DeleteFunc(slices.Clone(listed), func(d dependents.Dependent) bool { return !isMeant(d) })
	slices.SortStableFunc(left, func(a, b dependents.Dependent) int { return a.Stage - b.Stage })
	var ordered []dependents.Dependent
	for len(left) > 0 {
		next := slices.IndexFunc(left, func(d dependents.Dependent) bool {
			return !slices.ContainsFunc(left, func(other dependents.Dependent) bool { return slices.Contains(d.DependsOn, other.ID) })
		})
		// Circles among releases are refused where the layer is read.
		next = max(next, 0)
		ordered = append(ordered, left[next])
		left = slices.Delete(left, next, next+1)
	}
	return ordered
}

// objects returns what comes once Strata is there: the sources of layers, and then what the
// folder has of Strata's kinds.
func (r *reader) objects() []*unstructured.Unstructured {
	used := map[objects.ID]bool{}
	for _, layer := range r.plan.Planned {
		if !sources.IsOfBundle(layer) {
			used[r.plan.SourceOf(layer).ID()] = true
		}
	}
	var found []*unstructured.Unstructured
	seen := map[objects.ID]bool{}
	add := func(object *unstructured.Unstructured) {
		if id := objects.IDOf(object); !seen[id] {
			seen[id] = true
			found = append(found, object)
		}
	}
	for _, manifest := range r.written.Sources {
		if used[objects.IDOf(manifest.Object)] {
			add(manifest.Object)
		}
	}
	for _, manifest := range r.written.Strata {
		if manifest.Object.GetKind() != v1alpha1.HostClusterKind {
			add(manifest.Object)
		}
	}
	return found
}

// errNeedsFlux says that Strata cannot be brought alone.
var errNeedsFlux = errors.New("--install needs Flux, which the cluster lacks: name its manifests with --flux, as flux install --export prints them")
