// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/repos"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// platform is layers and what their directories hold, as tests write it.
type platform struct {
	t      *testing.T
	layers []*v1alpha1.AddonsLayer
	files  fstest.MapFS
	world  World
}

func newPlatform(t *testing.T) *platform {
	return &platform{t: t, files: fstest.MapFS{}, world: World{
		Now: noon, Version: "v1.34.2",
		Settings: layers.Settings{Interval: time.Minute, Namespace: "flux-system", MaxPrunePercent: 50},
		Scopes: map[objects.ServedKind]objects.Scope{
			{GroupKind: kinds.HelmReleaseKind}:                             objects.ScopeNamespaced,
			{GroupKind: kinds.HelmRepositoryKind}:                          objects.ScopeNamespaced,
			{GroupKind: schema.GroupKind{Kind: "ConfigMap"}}:               objects.ScopeNamespaced,
			{GroupKind: schema.GroupKind{Kind: "Namespace"}}:               objects.ScopeCluster,
			{GroupKind: schema.GroupKind{Group: "ex.io", Kind: "Gateway"}}: objects.ScopeUnknown,
		},
	}}
}

func (p *platform) layer(name, version string, dependsOn ...string) *v1alpha1.AddonsLayer {
	layer := &v1alpha1.AddonsLayer{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, UID: "u", Finalizers: []string{"strata"}},
		Spec:       v1alpha1.AddonsLayerSpec{Version: version, Source: v1alpha1.SourceSpec{Name: "addons", Path: "./" + name}},
	}
	layer.Spec.Prereqs.DependsOn = dependsOn
	p.layers = append(p.layers, layer)
	return layer
}

// release writes a release into a layer's directory.
func (p *platform) release(layer, name, chart string, more ...string) {
	p.files[layer+"/"+name+".yaml"] = &fstest.MapFile{Data: []byte(fmt.Sprintf(`
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: %s, namespace: apps}
spec:
  interval: 1m
  chart: {spec: {chart: web, version: %s, sourceRef: {kind: HelmRepository, name: charts}}}
%s`, name, chart, strings.Join(more, "\n")))}
}

// make reads the directories and makes a forecast of what there is.
func (p *platform) make() Forecast {
	p.t.Helper()
	p.world.Layers, p.world.Contents = p.layers, p.contents(p.t)
	f := Make(p.world)
	if !f.Settled {
		p.t.Fatalf("the forecast does not come to rest: %v", texts(f))
	}
	return f
}

// contents reads the directories.
func (p *platform) contents(t testing.TB) map[string]Content {
	t.Helper()
	found := map[string]Content{}
	for _, layer := range p.layers {
		directory, err := repos.Parse(t.Context(), p.files, layer.Spec.Source.Path)
		content := Content{Directory: directory, Err: err, Source: &layers.Source{Generation: 1, ObservedGeneration: 1, Ready: true, Digest: "sha256:1", Revision: "main@sha1:1"}}
		if directory != nil {
			directory.Revision = "main@sha1:1"
		}
		found[layer.Name] = content
	}
	return found
}

// happens makes a forecast, and has it come true.
func (p *platform) happens() Forecast {
	p.t.Helper()
	f := p.make()
	p.layers, p.world.Objects = f.Layers, f.Objects
	p.world.Now = p.world.Now.Add(time.Hour)
	return f
}

func (p *platform) at(name string) *v1alpha1.AddonsLayer {
	p.t.Helper()
	for i, layer := range p.layers {
		if layer.Name == name {
			p.layers[i] = layer.DeepCopy()
			return p.layers[i]
		}
	}
	p.t.Fatalf("there is no layer %s", name)
	return nil
}

// version has a layer be at another version.
func (p *platform) version(name, version string) {
	layer := p.at(name)
	layer.Spec.Version = version
	layer.Generation++
}

func texts(f Forecast) []string {
	found := []string{}
	for _, step := range f.Steps {
		text := fmt.Sprintf("%d %s %s %s", step.Wave, step.Layer, step.Verb, step.ID.Name)
		if step.After > 0 {
			text += " after " + step.After.String()
		}
		if step.Owner != "" {
			text += " from " + step.Owner
		}
		found = append(found, text)
	}
	return found
}

func check(t *testing.T, what string, f Forecast, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), texts(f)); diff != "" {
		t.Errorf("%s, -want +got:\n%s\nends: %+v", what, diff, f.Ends)
	}
}

func end(t *testing.T, f Forecast, name string) End {
	t.Helper()
	at := slices.IndexFunc(f.Ends, func(e End) bool { return e.Layer == name })
	if at < 0 {
		t.Fatalf("layer %s has no end", name)
	}
	return f.Ends[at]
}

// base and apps are deployed.
func deployed(t *testing.T) *platform {
	p := newPlatform(t)
	p.layer("apps", "1.0.0", "base@1.0.0")
	p.layer("base", "1.0.0")
	p.release("base", "gateway", "1.0.0")
	p.release("base", "mesh", "1.0.0")
	p.release("apps", "shop", "1.0.0")
	p.release("apps", "cart", "1.0.0")
	check(t, "what is new is installed in order", p.happens(),
		"1 base Write gateway", "1 base Write mesh", "2 apps Write cart", "2 apps Write shop")
	check(t, "nothing is left to be done", p.make())
	return p
}

func TestInstall(t *testing.T) {
	p := deployed(t)
	for _, e := range p.make().Ends {
		if e.State != v1alpha1.StateDeployed || e.Version != "1.0.0" {
			t.Errorf("layer %s ends %s at %q: %s", e.Layer, e.State, e.Version, e.Message)
		}
	}
}

func TestUpgradeGoesInOrder(t *testing.T) {
	p := deployed(t)
	p.version("base", "1.1.0")
	p.version("apps", "1.1.0")
	p.at("apps").Spec.Prereqs.DependsOn = []string{"base@1.1.0"}
	p.release("base", "mesh", "1.1.0")
	p.release("apps", "shop", "1.1.0")
	f := p.make()
	check(t, "the base goes first, and what is as it was is left alone", f, "1 base Write mesh", "2 apps Write shop")
	was, _, _ := unstructured.NestedString(f.Steps[0].Before.Object, "spec", "chart", "spec", "version")
	is, _, _ := unstructured.NestedString(f.Steps[0].Done.Object, "spec", "chart", "spec", "version")
	if was != "1.0.0" || is != "1.1.0" {
		t.Errorf("the step goes from %q to %q", was, is)
	}
}

func TestUpgradeThatDependantsDoNotAllow(t *testing.T) {
	p := deployed(t)
	p.at("apps").Spec.Prereqs.DependsOn = []string{"base@>=1.0 <2"}
	p.version("base", "2.0.0")
	p.release("base", "mesh", "2.0.0")
	f := p.make()
	check(t, "apps allows no 2.0.0", f)
	if e := end(t, f, "base"); e.Reason != v1alpha1.ReasonWouldBreakDependants || e.Version != "1.0.0" {
		t.Errorf("base ends %+v", e)
	}
}

func TestPruneWaitsForItsGrace(t *testing.T) {
	p := deployed(t)
	delete(p.files, "apps/shop.yaml")
	check(t, "who might adopt it has a minute", p.make(), "1 apps Mark shop", "2 apps Delete shop after 1m1s")
}

func TestPruneBeyondTheHorizon(t *testing.T) {
	p := deployed(t)
	delete(p.files, "apps/shop.yaml")
	p.at("apps").Spec.OrphanGrace = &metav1.Duration{Duration: 48 * time.Hour}
	f := p.make()
	check(t, "what is later than the horizon is not waited for", f, "1 apps Mark shop")
	if e := end(t, f, "apps"); !e.Until.Equal(p.world.Now.Add(48*time.Hour + time.Second)) {
		t.Errorf("apps ends %+v, at %s", e, p.world.Now)
	}
}

func TestMoveBetweenLayers(t *testing.T) {
	p := deployed(t)
	p.files["base/shop.yaml"] = p.files["apps/shop.yaml"]
	delete(p.files, "apps/shop.yaml")
	for _, step := range p.make().Steps {
		if step.Verb == dependents.VerbDelete {
			t.Errorf("a release that moves is deleted: %v", texts(p.make()))
		}
	}
	f := p.happens()
	if owner := f.Objects[f.Steps[0].ID].GetLabels()[v1alpha1.LayerLabel]; owner != "base" {
		t.Errorf("the release belongs to %q: %v", owner, texts(f))
	}
}

// A forecast has a Namespace deleted where the controller deletes it: what was there
// before its layer stays, and the step says why.
func TestNamespacesThatWereThereStay(t *testing.T) {
	space := func(name, more string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {more: %q}, annotations: {kraan.io/prune: enabled, kraan.io/created-for: base}}\n", name, more))}
	}
	for name, wants := range map[string]dependents.Verb{"made": dependents.VerbDelete, "there": dependents.VerbRelease, "forgotten": dependents.VerbRelease} {
		t.Run(name, func(t *testing.T) {
			p := deployed(t)
			id := objects.ID{Kind: "Namespace", Name: name}
			if wants == dependents.VerbRelease {
				there := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "uid": "there"}}}
				if name == "forgotten" {
					there.SetAnnotations(map[string]string{v1alpha1.CreatedForAnnotation: "base"})
				}
				p.world.Objects[id] = there
			}
			for _, more := range []string{"", "x"} {
				p.files["base/space.yaml"] = space(name, more)
				f := p.happens()
				if origin := f.Objects[id].GetAnnotations()[v1alpha1.CreatedForAnnotation]; (origin == "base") != (wants == dependents.VerbDelete) {
					t.Errorf("it was created for %q", origin)
				}
			}
			delete(p.files, "base/space.yaml")
			f := p.make()
			last := f.Steps[len(f.Steps)-1]
			if last.ID != id || last.Verb != wants || (last.Spared != "") != (wants == dependents.VerbRelease) {
				t.Errorf("%v, spared because %q", texts(f), last.Spared)
			}
			if f.Objects[id] != nil && f.Objects[id].GetAnnotations()[v1alpha1.CreatedForAnnotation] != "" {
				t.Errorf("it is let go, and has %v", f.Objects[id].GetAnnotations())
			}
		})
	}
}

func TestMassRemovalWaitsToBeAllowed(t *testing.T) {
	p := deployed(t)
	delete(p.files, "base/gateway.yaml")
	delete(p.files, "base/mesh.yaml")
	f := p.make()
	check(t, "an empty directory prunes nothing", f)
	if e := end(t, f, "base"); e.State == v1alpha1.StateDeployed || e.Message == "" {
		t.Errorf("base ends %+v", e)
	}
	p.at("base").Annotations = map[string]string{v1alpha1.AllowEmptyAnnotation: v1alpha1.AllowNext}
	if got := strings.Join(texts(p.make()), ", "); !strings.Contains(got, "base Delete gateway") || !strings.Contains(got, "base Delete mesh") {
		t.Errorf("what is allowed is not done: %s", got)
	}
}

func TestHeldLayerStays(t *testing.T) {
	p := deployed(t)
	p.version("base", "1.0.1")
	p.release("base", "mesh", "1.0.1")
	layer := p.at("base")
	layer.Annotations = map[string]string{v1alpha1.HoldAnnotation: "freeze", v1alpha1.HoldUntilAnnotation: p.world.Now.Add(time.Hour).Format(time.RFC3339)}
	f := p.make()
	check(t, "a held layer is left alone", f)
	if e := end(t, f, "base"); e.State != v1alpha1.StateHold || e.Until.IsZero() || !strings.Contains(e.Message, "freeze") {
		t.Errorf("base ends %+v", e)
	}
}

func TestKindThatAChartBrings(t *testing.T) {
	p := newPlatform(t)
	p.layer("base", "1.0.0")
	p.release("base", "gateway", "1.0.0")
	p.files["base/edge.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: ex.io/v1\nkind: Gateway\nmetadata: {name: edge, namespace: apps}\n")}
	f := p.make()
	check(t, "nobody knows that the chart brings the kind", f, "1 base Write gateway")
	if e := end(t, f, "base"); e.State == v1alpha1.StateDeployed {
		t.Errorf("base ends %+v", e)
	}
	kind := Definition{Scope: objects.ScopeNamespaced}
	kind.Group, kind.Version, kind.Kind = "ex.io", "v1", "Gateway"
	p.world.Brings = map[objects.ID][]Definition{f.Steps[0].ID: {kind}}
	check(t, "what the chart brings can be written", p.make(), "1 base Write gateway", "2 base Write edge")
}

func TestDriftIsCorrected(t *testing.T) {
	p := deployed(t)
	for id, obj := range p.world.Objects {
		if id.Name == "shop" {
			obj = obj.DeepCopy()
			_ = unstructured.SetNestedField(obj.Object, "9m", "spec", "interval")
			obj.SetGeneration(obj.GetGeneration() + 1)
			p.world.Objects[id] = obj
		}
	}
	f := p.make()
	check(t, "what somebody has changed is put back", f, "1 apps Write shop")
	if !f.Steps[0].Correction {
		t.Errorf("the step is no correction: %+v", f.Steps[0])
	}
}

// A number of replicas that leaves git becomes the API server's default where it was Strata's,
// and stays where others have set it.
func TestReplicasThatLeaveGit(t *testing.T) {
	deployment := func(replicas string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: apps}\nspec: {" + replicas +
			"selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: c}]}}}\n")}
	}
	for manager, want := range map[string]int64{"strata": 1, "kube-controller-manager": 3} {
		p := newPlatform(t)
		p.world.Scopes[objects.ServedKind{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}}] = objects.ScopeNamespaced
		p.layer("apps", "1.0.0")
		p.files["apps/web.yaml"] = deployment("replicas: 3, ")
		p.happens()
		id := objects.ID{Group: "apps", Kind: "Deployment", Namespace: "apps", Name: "web"}
		live := p.world.Objects[id].DeepCopy()
		live.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
		}})
		p.world.Objects[id] = live
		p.files["apps/web.yaml"] = deployment("minReadySeconds: 5, ")
		p.version("apps", "1.1.0")
		f := p.make()
		check(t, manager, f, "1 apps Write web")
		got, _, _ := unstructured.NestedInt64(f.Steps[0].Done.Object, "spec", "replicas")
		if got != want || f.Steps[0].DefaultReplicas != (manager == "strata") {
			t.Errorf("set by %s: replicas become %d, as a default %t", manager, got, f.Steps[0].DefaultReplicas)
		}
	}
}

func TestFailingReleaseStaysSo(t *testing.T) {
	p := deployed(t)
	for id, obj := range p.world.Objects {
		if id.Name == "mesh" {
			obj = obj.DeepCopy()
			_ = unstructured.SetNestedSlice(obj.Object, []any{
				map[string]any{"type": "Ready", "status": "False", "reason": "UpgradeFailed", "message": "no such image", "observedGeneration": obj.GetGeneration()},
				map[string]any{"type": "Stalled", "status": "True", "reason": "RetriesExceeded", "message": "no such image", "observedGeneration": obj.GetGeneration()},
			}, "status", "conditions")
			p.world.Objects[id] = obj
		}
	}
	p.version("apps", "1.0.1")
	p.release("apps", "shop", "1.0.1")
	f := p.make()
	if e := end(t, f, "base"); e.State != v1alpha1.StateFailed || !strings.Contains(e.Message, "no such image") {
		t.Errorf("a release that nobody changes mends itself: %+v", e)
	}
	p.release("base", "mesh", "1.0.1")
	if e := end(t, p.make(), "base"); e.State != v1alpha1.StateDeployed {
		t.Errorf("what is changed is taken to be mended: %+v", e)
	}
}

func TestReleaseThatCannotBeRendered(t *testing.T) {
	p := deployed(t)
	p.version("base", "1.0.1")
	p.at("apps").Spec.Prereqs.DependsOn = []string{"base@>=1"}
	p.release("base", "mesh", "7.0.0")
	p.release("apps", "shop", "1.0.1")
	mesh := objects.ID{Group: kinds.HelmReleaseKind.Group, Kind: kinds.HelmReleaseKind.Kind, Namespace: "apps", Name: "mesh"}
	p.world.Failing = map[objects.ID]string{mesh: "there is no chart 7.0.0"}
	f := p.make()
	check(t, "who depends on it waits", f, "1 base Write mesh")
	if e := end(t, f, "base"); e.State != v1alpha1.StateFailed || !strings.Contains(e.Message, "there is no chart 7.0.0") {
		t.Errorf("base ends %+v", e)
	}
}

func TestFixedLayersKeepWhatIsTheirs(t *testing.T) {
	p := deployed(t)
	p.files["base/shop.yaml"] = p.files["apps/shop.yaml"]
	p.make()
	content := p.world.Contents["apps"]
	content.Fixed, content.Directory = true, nil
	p.world.Contents["apps"] = content
	f := Make(p.world)
	if e := end(t, f, "base"); e.Reason != v1alpha1.ReasonOwnershipConflict {
		t.Errorf("base takes what apps has: %+v, %v", e, texts(f))
	}
	if len(f.Ends) != 1 {
		t.Errorf("a layer that stays as it is has an end: %+v", f.Ends)
	}
}

func TestDeletedLayerGoesAfterItsDependants(t *testing.T) {
	p := deployed(t)
	now := metav1.NewTime(p.world.Now)
	for _, name := range []string{"base", "apps"} {
		p.at(name).DeletionTimestamp = &now
	}
	f := p.make()
	got := texts(f)
	if at := func(name string) int {
		return slices.IndexFunc(got, func(text string) bool { return strings.Contains(text, "Delete "+name) })
	}; at("shop") < 0 || at("mesh") < at("shop") || !end(t, f, "base").Gone {
		t.Errorf("%v, %+v", got, f.Ends)
	}
}

func TestForecastChangesNothingOfItsWorld(t *testing.T) {
	p := deployed(t)
	p.release("base", "mesh", "1.0.1")
	delete(p.files, "apps/shop.yaml")
	p.make()
	before := fmt.Sprint(p.world.Objects, p.world.Scopes, p.world.Contents)
	first := Make(p.world)
	if after := fmt.Sprint(p.world.Objects, p.world.Scopes, p.world.Contents); after != before {
		t.Error("the world is another than it was")
	}
	for range 5 {
		if diff := cmp.Diff(texts(first), texts(Make(p.world))); diff != "" {
			t.Fatalf("the same world has another future:\n%s", diff)
		}
	}
}

// BenchmarkMake plans a first installation of 200 layers in chains of ten, of five
// releases each, and a second plan in which nothing changes.
func BenchmarkMake(b *testing.B) {
	p := newPlatform(nil)
	for l := range 200 {
		name, on := fmt.Sprintf("layer-%03d", l), []string{}
		if l%10 > 0 {
			on = append(on, fmt.Sprintf("layer-%03d@>=1", l-1))
		}
		p.layer(name, "1.0.0", on...)
		for r := range 5 {
			p.release(name, fmt.Sprintf("%s-%d", name, r), "1.0.0")
		}
	}
	p.world.Layers, p.world.Contents = p.layers, p.contents(b)
	var f Forecast
	b.Run("install", func(b *testing.B) {
		for b.Loop() {
			f = Make(p.world)
		}
		if len(f.Steps) != 1000 || !f.Settled {
			b.Fatalf("%d steps, settled: %v", len(f.Steps), f.Settled)
		}
	})
	p.world.Layers, p.world.Objects = f.Layers, f.Objects
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			f = Make(p.world)
		}
		if len(f.Steps) != 0 {
			b.Fatalf("%d steps", len(f.Steps))
		}
	})
}
