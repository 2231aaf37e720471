// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/charts"
	"github.com/strata-project/strata/internal/answers/preview"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/forecast"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
)

const (
	// rendersAtOnce is how many charts are rendered at once.
	rendersAtOnce = 4
	// maxLines is how many lines are shown of what changes of one object.
	maxLines = 20
)

// stepKey names a step of a forecast.
type stepKey struct {
	wave  int
	layer string
	verb  dependents.Verb
	id    objects.ID
}

func keyOf(step forecast.Step) stepKey {
	return stepKey{step.Wave, step.Layer, step.Verb, step.ID}
}

// NewRenderer returns what renders charts, which are kept in the user's own cache
// folder. Where offline says why, nothing is fetched.
func NewRenderer(offline string) (*charts.Renderer, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return charts.New(charts.Options{Dir: filepath.Join(dir, "strata", "charts"), Offline: offline})
}

// withCharts renders the charts of the releases that a forecast changes, and
// returns what each step changes. Where a layer waits for a kind that the chart of
// another release brings, the forecast is made again with that known.
func (g *Plan) withCharts(
	ctx context.Context,
	w forecast.World,
	made forecast.Forecast,
	o PreviewOptions,
) (forecast.Forecast, map[stepKey]*preview.Rendered, error) {
	offline := ""
	if g.isOffline() {
		offline = g.options.Charts.Offline("plan --offline")
	}
	renderer, err := NewRenderer(offline)
	if err != nil {
		return made, nil, err
	}
	r := &chartWork{Plan: g, renderer: renderer, world: w, tell: o.Say}
	defer r.say()
	names := o.Names
	rendered, err := r.all(ctx, made, names)
	if err != nil {
		return made, rendered, err
	}
	there := false
	if waitsForKinds(made) {
		brought := r.brought()
		r.assume(brought)
		there = len(r.unrendered) == 0 && g.takeAsThere(&w, brought)
	}
	if !there && len(r.failing) == 0 && (len(r.brings) == 0 || !waitsForKinds(made)) {
		return made, rendered, nil
	}
	w.Brings, w.Failing = r.brings, r.failing
	made = forecast.Make(w)
	rendered, err = r.all(ctx, made, names)
	return made, rendered, err
}

func waitsForKinds(f forecast.Forecast) bool {
	return slices.ContainsFunc(f.Ends, func(end forecast.End) bool {
		return slices.ContainsFunc(end.Causes, func(cause v1alpha1.Cause) bool { return cause.Reason == v1alpha1.ReasonKindNotServed })
	})
}

// chartWork renders the charts of a forecast.
type chartWork struct {
	*Plan
	renderer *charts.Renderer
	world    forecast.World
	// tell says how long the work gets on.
	tell func(format string, args ...any)

	mu     sync.Mutex
	done   int
	brings map[objects.ID][]forecast.Definition
	// unrendered are releases whose charts could not be rendered here, and may be by Flux.
	unrendered []objects.ID
	// failing holds releases that Flux will not render either.
	failing map[objects.ID]string
	// remarks are what is to be said below the plan.
	remarks map[string]bool
}

// brought returns the kinds that charts were seen to bring.
func (r *chartWork) brought() map[objects.ServedKind]bool {
	brought := map[objects.ServedKind]bool{}
	for _, definitions := range r.brings {
		for _, definition := range definitions {
			brought[objects.ServedKind{Cluster: definition.Cluster, GroupKind: definition.GroupKind()}] = true
		}
	}
	return brought
}

// assume has kinds that no chart is seen to bring come with those that could not be
// rendered: a plan that says when they are given up would say what nobody knows. A note
// says which kinds these are.
func (r *chartWork) assume(brought map[objects.ServedKind]bool) {
	if len(r.unrendered) == 0 {
		return
	}
	assumed := map[forecast.Definition]bool{}
	var names []string
	for _, content := range r.world.Contents {
		if content.Directory == nil {
			continue
		}
		for i := range content.Directory.Manifests {
			manifest := &content.Directory.Manifests[i]
			kind := manifest.ID().ServedKind()
			if r.world.Scopes[kind] != objects.ScopeUnknown || brought[kind] || manifest.Observed {
				continue
			}
			definition := forecast.Definition{Scope: objects.ScopeCluster}
			if manifest.ID().Namespace != "" {
				definition.Scope = objects.ScopeNamespaced
			}
			definition.Cluster, definition.GroupVersionKind = kind.Cluster, manifest.Object.GroupVersionKind()
			assumed[definition] = true
			if name := kind.String(); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(assumed) == 0 {
		return
	}
	slices.Sort(names)
	r.note("it is not known what brings %s: they are taken to come with a chart that could not be rendered", strings.Join(names, ", "))
	for _, id := range r.unrendered {
		for definition := range assumed {
			r.brings[id] = append(r.brings[id], definition)
		}
	}
}

// all renders the steps of the layers that are named, or of all of them.
func (r *chartWork) all(ctx context.Context, f forecast.Forecast, names []string) (map[stepKey]*preview.Rendered, error) {
	found := map[stepKey]*preview.Rendered{}
	r.done, r.unrendered, r.brings, r.failing = 0, nil, map[objects.ID][]forecast.Definition{}, map[objects.ID]string{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(rendersAtOnce)
	for _, step := range f.Steps {
		if step.Verb != dependents.VerbWrite && step.Verb != dependents.VerbDelete || !isContent(step) {
			continue
		}
		// A chart of a layer that is not shown may bring kinds for one that is.
		shown := len(names) == 0 || slices.Contains(names, step.Layer)
		if !shown && step.Done == nil {
			continue
		}
		group.Go(func() error {
			result := r.step(ctx, f, step)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.done++
			r.tell("rendered %d charts", r.done)
			found[keyOf(step)] = result
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return found, nil
}

// isContent tells whether a step changes more than who has an object.
func isContent(step forecast.Step) bool {
	return step.Before == nil || step.Done == nil || step.Done.GetGeneration() == 0 || step.Before.GetGeneration() != step.Done.GetGeneration()
}

// ownChanges returns what a step changes of the object itself.
func ownChanges(step forecast.Step) []charts.Change {
	changes := charts.Diff(bare(step.Before), bare(step.Done))
	for i := range changes {
		for j := range changes[i].Fields {
			field := &changes[i].Fields[j]
			field.Default = step.DefaultReplicas && field.Path == "spec.replicas"
		}
	}
	return changes
}

// step returns what a step changes.
func (r *chartWork) step(ctx context.Context, f forecast.Forecast, step forecast.Step) *preview.Rendered {
	own := &preview.Rendered{Changes: r.changesOf(ownChanges(step), step.Decrypted)}
	if step.ID.GroupKind() != kinds.HelmReleaseKind {
		return own
	}
	before, err := r.render(ctx, r.world.Objects, step.Before, step.Layer, false, r.secrets(false))
	var after *charts.Rendering
	if err == nil {
		after, err = r.render(ctx, f.Objects, step.Done, step.Layer, true, r.secrets(true))
		r.judge(step.ID, err)
	}
	if after != nil {
		r.remember(step.ID, after)
	}
	if err != nil {
		if step.Before != nil && step.Done != nil {
			return &preview.Rendered{Problem: err.Error(), Changes: own.Changes}
		}
		return &preview.Rendered{Problem: err.Error()}
	}
	made := &preview.Rendered{Changes: r.changesOf(charts.Diff(renderedBy(before), renderedBy(after)), step.Decrypted), Objects: len(renderedBy(after))}
	// A release that changes, and makes the same, says what it is that changes; and so does
	// one that Flux installs anew.
	_, again := kinds.ReinstallOf(step.Before, step.Done, kinds.Charts{Wanted: f.Find})
	if step.Before != nil && step.Done != nil && (again || len(made.Changes) == 0) {
		made.Changes = slices.Concat(own.Changes, made.Changes)
	}
	return made
}

// withoutCharts returns what changes of the HelmReleases themselves.
func (g *Plan) withoutCharts(f forecast.Forecast) map[stepKey]*preview.Rendered {
	found := map[stepKey]*preview.Rendered{}
	for _, step := range f.Steps {
		if step.Verb == dependents.VerbWrite && step.Before != nil && step.Done != nil && step.ID.GroupKind() == kinds.HelmReleaseKind && isContent(step) {
			found[keyOf(step)] = &preview.Rendered{Changes: g.changesOf(charts.Diff(bare(step.Before), bare(step.Done)), step.Decrypted)}
		}
	}
	return found
}

// judge remembers a release that Flux will find as wrong as it was found here. A
// chart that only cannot be had from here says nothing of that.
func (r *chartWork) judge(id objects.ID, err error) {
	var problem *charts.Problem
	if errors.As(err, &problem) && (problem.Reason == charts.ChartNotFound || problem.Reason == charts.RenderFailed) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.failing[id] = problem.Error()
		return
	}
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.unrendered = append(r.unrendered, id)
	}
}

// remember remembers which kinds a release brings.
func (r *chartWork) remember(id objects.ID, rendering *charts.Rendering) {
	var definitions []forecast.Definition
	for _, object := range slices.Concat(rendering.CRDs, rendering.Objects) {
		if object.GetKind() == "CustomResourceDefinition" {
			definitions = append(definitions, forecast.DefinitionsOf(object, "")...)
		}
	}
	if len(definitions) > 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.brings[id] = definitions
	}
}

// render renders a release; nil where there is none.
func (r *chartWork) render(
	ctx context.Context,
	objs map[objects.ID]*unstructured.Unstructured,
	release *unstructured.Unstructured,
	layer string,
	planned bool,
	secrets charts.Secrets,
) (*charts.Rendering, error) {
	if release == nil {
		return nil, nil
	}
	if !planned {
		release = asDeployed(release)
	}
	request := charts.Request{Release: release, KubeVersion: r.versionFor(layer), Revision: 1, Secrets: secrets}
	request.Trust = func(source *unstructured.Unstructured) charts.Trust { return r.trust(ctx, source) }
	request.Find = func(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error) {
		return r.find(ctx, objs, id)
	}
	request.Files = func(_ context.Context, source objects.ID) (fs.FS, error) {
		if planned && r.repository != nil && source == r.source.ID() {
			return r.artifact, nil
		}
		return nil, nil
	}
	rendering, err := r.renderer.Render(ctx, request)
	switch {
	case err != nil:
		return nil, refusedStandIns(err)
	case rendering.FromSecrets && secrets.True:
		r.remark(trueValuesNote)
	case rendering.FromSecrets:
		r.remark(standInsNote)
	}
	return rendering, nil
}

// asDeployed returns a release with the version of the chart that it has, where it
// asks for a range.
func asDeployed(release *unstructured.Unstructured) *unstructured.Unstructured {
	history, _, _ := unstructured.NestedSlice(release.Object, "status", "history")
	if len(history) == 0 {
		return release
	}
	last, _ := history[0].(map[string]any)
	version, _ := last["chartVersion"].(string)
	wanted, found, _ := unstructured.NestedString(release.Object, "spec", "chart", "spec", "version")
	if version == "" || !found || wanted == version {
		return release
	}
	release = release.DeepCopy()
	_ = unstructured.SetNestedField(release.Object, version, "spec", "chart", "spec", "version") // it is a map
	return release
}

// versionFor returns the Kubernetes version of a layer's cluster.
func (r *chartWork) versionFor(layer string) string {
	if planned := r.PlannedLayer(layer); planned != nil {
		if cluster := r.Cluster(placement.Of(planned, r.settings.Namespace)); cluster != nil && cluster.Status.Version != "" {
			return cluster.Status.Version
		}
	}
	return r.Version
}

func renderedBy(rendering *charts.Rendering) []*unstructured.Unstructured {
	if rendering == nil {
		return nil
	}
	return slices.Concat(rendering.CRDs, rendering.Objects)
}

// bare returns an object without what the API server and controllers write.
func bare(object *unstructured.Unstructured) []*unstructured.Unstructured {
	if object == nil {
		return nil
	}
	object = object.DeepCopy()
	delete(object.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "finalizers", "ownerReferences"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	return []*unstructured.Unstructured{object}
}

// changesOf returns changes as a plan shows them: those of objects that were decrypted
// without any value.
func (g *Plan) changesOf(changes []charts.Change, decrypted bool) []preview.ObjectChange {
	found := make([]preview.ObjectChange, 0, len(changes))
	for _, change := range changes {
		change.Fields = g.masked(change.Fields, decrypted)
		shown := preview.ObjectChange{Verb: change.Verb, Object: preview.Object(change.ID), Lines: change.Lines(maxLines)}
		for _, field := range change.Fields {
			shown.Fields = append(shown.Fields, preview.Field{Path: field.Path, From: field.From, To: field.To, Default: field.Default})
		}
		found = append(found, shown)
	}
	return found
}
