// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/charts"
	"github.com/strata-project/strata/internal/answers/drift"
	"github.com/strata-project/strata/internal/answers/preview"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/forecast"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/terminal"
)

const diffLong = `Show what on the cluster is not as it is wanted: what somebody has changed of a
layer's own objects, and what is missing of the objects that Helm made, or differs
from what the chart renders with the version and the values that are deployed.

Fields that others have added, such as what an API server fills in or a sidecar, are
no drift. Lines go from what is wanted to what is there. Values of Secrets, and what
a chart has made of them, are shown as *** only, unless --show-secrets is given.
Strata corrects its own objects by itself; objects of charts are corrected by Flux,
where spec.driftDetection of the HelmRelease asks for that.

A chart that cannot be rendered, and objects that you may not read or that are on
another cluster, are named, and nothing is said of them.

Exit codes:
  0  what could be compared is as it is wanted
  1  it cannot be compared
  2  something differs`

const diffExamples = `  # One layer
  kubectl strata diff base

  # All of them, for other programs
  kubectl strata diff -o json`

// layerDiff is what of a layer is not as it is wanted.
type layerDiff struct {
	Layer string `json:"layer"`
	// Objects that differ, of the layer itself and of its releases; Release is empty
	// for the layer's own.
	Objects []objectDiff `json:"objects"`
	// Unknown says what could not be compared, and why.
	Unknown []string `json:"unknown"`
}

type objectDiff struct {
	Release string `json:"release,omitempty"`
	preview.ObjectChange
}

// newDiff returns the command that shows drift.
func newDiff(t *tool) *cobra.Command {
	o := &planOptions{lenient: true}
	command := &cobra.Command{
		Use: "diff [LAYER...]", Short: "Show what on the cluster is not as it is wanted", Long: diffLong, Example: diffExamples,
		RunE: func(command *cobra.Command, names []string) error {
			o.names = names
			return t.diff(command.Context(), o)
		},
	}
	command.Flags().StringVar(&o.namespace, "runtime-namespace", "", "the namespace of sources that name none; read from the controller's Deployment where it may be")
	command.Flags().StringVarP(&o.selector, "selector", "l", "", "the layers with these labels, for example team=platform")
	o.charts.hostsFlag(command.Flags())
	o.charts.secretsFlag(command.Flags())
	outputFlag(command, &o.output, "json", "yaml")
	return command
}

func (t *tool) diff(ctx context.Context, o *planOptions) error {
	progress := t.progress()
	defer progress.Done()
	progress.Say("reading the cluster")
	g, err := t.gather(ctx, o)
	if err != nil {
		return err
	}
	if o, err = g.chosen(o); err != nil {
		return err
	}
	world, err := g.world(ctx)
	if err != nil {
		return err
	}
	renderer, err := newRenderer("")
	if err != nil {
		return err
	}
	work := &chartWork{gathering: g, renderer: renderer, world: world, progress: progress, options: o.charts}
	made := forecast.Make(world)
	found := []layerDiff{}
	for _, layer := range g.planned {
		if len(o.names) > 0 && !slices.Contains(o.names, layer.Name) {
			continue
		}
		progress.Say("comparing layer %s", layer.Name)
		diff, err := work.diff(ctx, made, layer)
		if err != nil {
			return err
		}
		found = append(found, diff)
	}
	progress.Done()
	return t.printDiff(found, o.output)
}

// diff compares what a layer has.
func (r *chartWork) diff(ctx context.Context, made forecast.Forecast, layer *v1alpha1.AddonsLayer) (layerDiff, error) {
	found := layerDiff{Layer: layer.Name, Objects: []objectDiff{}, Unknown: []string{}}
	if err := r.away[layers.SourceOf(layer, r.settings.Namespace)]; err != nil {
		found.Unknown = append(found.Unknown, fmt.Sprintf("the layer's own objects: %v", err))
	}
	for _, step := range made.Steps {
		if step.Layer != layer.Name || !step.Correction {
			continue
		}
		// What is there is what a correction begins with.
		for _, change := range changesOf(charts.Diff(bare(step.Done), bare(step.Before))) {
			found.Objects = append(found.Objects, objectDiff{ObjectChange: change})
		}
	}
	if cluster := layers.PlaceOf(layer, r.settings.Namespace); cluster.Name != "" {
		found.Unknown = append(found.Unknown, fmt.Sprintf("what the releases have made is on RemoteCluster %s, which is not asked", cluster))
		return found, ctx.Err()
	}
	for _, entry := range layers.Inventory(layer.Status.Resources, nil) {
		release := r.Objects[entry.ID]
		if entry.ID.GroupKind() != layers.HelmReleaseKind || release == nil || entry.Status == dependents.StatusOrphaned {
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
		if !r.options.showSecrets {
			shown, unnamed := drift.Masked(differs, hidden)
			differs = rendering.Masked(shown)
			if unnamed > 0 {
				found.Unknown = append(found.Unknown, fmt.Sprintf("HelmRelease %s: the names of %d objects that differ depend on values of Secrets (--show-secrets)", name, unnamed))
			}
		}
		for _, change := range changesOf(differs) {
			found.Objects = append(found.Objects, objectDiff{Release: name, ObjectChange: change})
		}
		for _, id := range dependents.SortIDs(keysOf(unknown)) {
			found.Unknown = append(found.Unknown, fmt.Sprintf("HelmRelease %s: you may not get %s", name, id))
		}
	}
	return found, ctx.Err()
}

// renderHidden renders a release as it is deployed, and returns what of that depends on
// values of Secrets: what is another thing with stand-ins in their place. Only the
// chart itself sees the values, and what it makes of them is not shown.
func (r *chartWork) renderHidden(ctx context.Context, release *unstructured.Unstructured, layer string) (*charts.Rendering, []charts.Change, error) {
	if r.options.showSecrets {
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

func keysOf(ids map[dependents.ID]bool) []dependents.ID {
	found := make([]dependents.ID, 0, len(ids))
	for id := range ids {
		found = append(found, id)
	}
	return found
}

// readRendered reads what is there of objects that were rendered, at the versions
// that they were rendered in.
func (r *chartWork) readRendered(ctx context.Context, rendered []*unstructured.Unstructured) (live map[dependents.ID]*unstructured.Unstructured, unknown map[dependents.ID]bool) {
	live, unknown = map[dependents.ID]*unstructured.Unstructured{}, map[dependents.ID]bool{}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, object := range rendered {
		id := dependents.IDOf(object)
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

func (t *tool) printDiff(found []layerDiff, output string) error {
	differs := slices.ContainsFunc(found, func(diff layerDiff) bool { return len(diff.Objects) > 0 })
	if output != "" {
		if err := t.printAs(output, found); err != nil {
			return err
		}
	} else {
		for _, diff := range found {
			t.printLayerDiff(diff)
		}
		if !differs {
			say(t.out, "What could be compared is as it is wanted.")
		}
	}
	if differs {
		return errDiffers
	}
	return nil
}

func (t *tool) printLayerDiff(diff layerDiff) {
	if len(diff.Objects)+len(diff.Unknown) == 0 {
		return
	}
	verdict := fmt.Sprintf("%d objects differ", len(diff.Objects))
	switch len(diff.Objects) {
	case 0:
		verdict = "nothing differs of what could be compared"
	case 1:
		verdict = "1 object differs"
	}
	for _, line := range t.screen.Wrap("layer "+diff.Layer+": "+verdict, "  ") {
		say(t.out, "%s", t.screen.Paint(terminal.Strong, line))
	}
	for _, object := range diff.Objects {
		for _, line := range object.Lines {
			role := map[byte]terminal.Role{'-': terminal.Bad, '~': terminal.Warning}[(line + " ")[0]]
			text := "  " + strings.TrimRight(terminal.Safe(line), " ")
			if object.Verb == charts.Delete {
				text += " is missing"
			}
			if object.Release != "" {
				text += " (release " + object.Release + ")"
			}
			for _, wrapped := range (terminal.Screen{Width: max(0, t.screen.Width-2)}).Wrap(text, "  ") {
				say(t.out, "%s", t.screen.Paint(role, "  "+wrapped))
			}
		}
	}
	for _, unknown := range diff.Unknown {
		say(t.out, "%s", "  "+strings.Join((terminal.Screen{Width: max(0, t.screen.Width-2)}).Wrap("? "+terminal.Safe(unknown), "  "), "\n  "))
	}
}
