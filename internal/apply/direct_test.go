// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/objects"
)

// withDefaults returns a release of which the API server adds fields: how a
// chart is looked at, and its version.
func (f *fixture) withDefaults() *unstructured.Unstructured {
	release := f.release("podinfo")
	unstructured.RemoveNestedField(release.Object, "spec", "chart", "spec", "reconcileStrategy")
	unstructured.RemoveNestedField(release.Object, "spec", "chart", "spec", "version")
	release.SetLabels(map[string]string{"team": "platform"})
	return release
}

// saw tells the executor of a release that is on the cluster.
func (f *fixture) saw(release *unstructured.Unstructured) {
	d := writeOf(owner, release).Wanted
	f.executor.Saw([]*dependents.Dependent{d}, map[objects.ID]*unstructured.Unstructured{d.ID: f.live(release)})
}

// One request is enough for a change of git, and for what somebody else has
// changed; where it is not, the outcome is the same as with all of them.
func TestOneRequestWhereThatIsEnough(t *testing.T) {
	one, all := []string{"PATCH"}, []string{"GET", "PATCH", "PATCH"}
	tests := map[string]struct {
		change func(f *fixture, release *unstructured.Unstructured)
		want   []string
	}{
		"a value in git": {func(_ *fixture, release *unstructured.Unstructured) {
			set(release, int64(7), "spec", "values", "replicas")
		}, one},
		"a field that git adds": {func(_ *fixture, release *unstructured.Unstructured) {
			set(release, "5m", "spec", "timeout")
			set(release, "on", "spec", "values", "metrics", "enabled")
		}, one},
		"a value that others changed": {func(f *fixture, release *unstructured.Unstructured) {
			f.patch(release, "kubectl-edit", `{"spec":{"interval":"9m","values":{"replicas":9}}}`)
		}, one},
		"a field that others removed": {func(f *fixture, release *unstructured.Unstructured) {
			f.patch(release, "kubectl-edit", `{"spec":{"values":{"service":null}}}`)
		}, one},
		"a list that others put in a value's place": {func(f *fixture, release *unstructured.Unstructured) {
			f.patch(release, "kubectl-edit", `{"spec":{"values":{"service":[1]}}}`)
		}, one},
		"suspended by hand": {func(f *fixture, release *unstructured.Unstructured) {
			f.patch(release, "flux", `{"spec":{"suspend":true}}`)
			set(release, int64(7), "spec", "values", "replicas")
		}, one},
		"a status": {func(f *fixture, release *unstructured.Unstructured) {
			live := f.live(release)
			set(live, int64(1), "status", "observedGeneration")
			f.must(f.others.Status().Update(f.ctx, live, client.FieldOwner("helm-controller")))
			set(release, int64(7), "spec", "values", "replicas")
		}, one},
		"a field that git removes": {func(_ *fixture, release *unstructured.Unstructured) {
			unstructured.RemoveNestedField(release.Object, "spec", "values", "service")
		}, all},
		"a label that git removes": {func(_ *fixture, release *unstructured.Unstructured) { release.SetLabels(nil) }, all},
		"a field that others added": {func(f *fixture, release *unstructured.Unstructured) {
			f.patch(release, "kubectl-edit", `{"spec":{"timeout":"9m","values":{"extra":{"deep":[1]}}}}`)
		}, all},
		"another applier": {func(f *fixture, release *unstructured.Unstructured) {
			obj := parse("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec: {timeout: 9m, values: {extra: {deep: true}}}\n")
			obj.SetNamespace(f.namespace)
			obj.SetName(release.GetName())
			f.apply(obj, "kustomize-controller")
		}, all},
		"a default that others changed": {func(f *fixture, release *unstructured.Unstructured) {
			f.patch(release, "kubectl-edit", `{"spec":{"chart":{"spec":{"reconcileStrategy":"Revision"}}}}`)
		}, all},
		"marked as orphaned": {func(f *fixture, release *unstructured.Unstructured) {
			f.patch(release, dependents.MarksManager, `{"metadata":{"labels":{"orphaned":"1"}}}`)
		}, all},
		"superseded": {func(f *fixture, release *unstructured.Unstructured) {
			f.patch(release, dependents.MarksManager, `{"metadata":{"annotations":{"kraan.io/superseded-by":"x"}}}`)
		}, all},
		"nobody's": {func(f *fixture, release *unstructured.Unstructured) {
			f.patch(release, "kubectl-edit", `{"metadata":{"labels":{"kraan/layer":null}}}`)
		}, all},
		"after a restart": {func(f *fixture, release *unstructured.Unstructured) {
			f.executor.Known = &Known{}
			set(release, int64(7), "spec", "values", "replicas")
		}, all},
		"after a restart, when it has been seen as it was left": {func(f *fixture, release *unstructured.Unstructured) {
			f.executor.Known = &Known{}
			f.saw(release)
			set(release, int64(7), "spec", "values", "replicas")
		}, one},
		"seen once, and then changed by others": {func(f *fixture, release *unstructured.Unstructured) {
			f.executor.Known = &Known{}
			f.saw(release)
			f.patch(release, "kubectl-edit", `{"spec":{"timeout":"9m"}}`)
			f.saw(release) // what is known is not forgotten for it
		}, all},
		"without a cache": {func(f *fixture, release *unstructured.Unstructured) {
			f.executor.Seen = nil
			set(release, int64(7), "spec", "values", "replicas")
		}, all},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			release := f.withDefaults()
			defaults := f.written(release)
			test.change(f, release)
			before := f.live(release)
			f.requests.taken()
			live := f.rewritten(release)
			if diff := cmp.Diff(test.want, f.requests.taken()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			want := ownedBy(owner, release)
			set(want, "ChartVersion", "spec", "chart", "spec", "reconcileStrategy")
			set(want, field(defaults, "spec", "chart", "spec", "version"), "spec", "chart", "spec", "version")
			want.Object["spec"].(map[string]any)["chart"] = defaults.Object["spec"].(map[string]any)["chart"]
			if suspended, _, _ := unstructured.NestedBool(before.Object, "spec", "suspend"); suspended {
				set(want, true, "spec", "suspend")
			}
			if diff := cmp.Diff(want.Object["spec"], live.Object["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want.GetLabels(), live.GetLabels()); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if len(live.GetAnnotations()) != 0 {
				t.Errorf("annotations %v are left", live.GetAnnotations())
			}
			// What was found out is remembered.
			f.requests.taken()
			set(release, int64(8), "spec", "values", "replicas")
			f.rewritten(release)
			if diff := cmp.Diff(one, f.requests.taken()); diff != "" && f.executor.Seen != nil {
				t.Errorf("requests of the next change (-want +got):\n%s", diff)
			}
		})
	}
}

// A cache that lags, or that lacks what is there, leads to more requests and to
// nothing else.
func TestCacheThatIsWrong(t *testing.T) {
	type see func(context.Context, objects.ID) (*unstructured.Unstructured, error)
	tests := map[string]func(f *fixture, release *unstructured.Unstructured) see{
		"it lags": func(f *fixture, release *unstructured.Unstructured) see {
			old := f.live(release)
			f.patch(release, "kubectl-edit", `{"spec":{"timeout":"9m"}}`)
			return func(context.Context, objects.ID) (*unstructured.Unstructured, error) { return old, nil }
		},
		"it lacks a field": func(f *fixture, release *unstructured.Unstructured) see {
			f.patch(release, "kubectl-edit", `{"spec":{"timeout":"9m"}}`)
			return func(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error) {
				live, err := f.seen(ctx, id)
				unstructured.RemoveNestedField(live.Object, "spec", "timeout")
				return live, err
			}
		},
		"it lacks the object": func(*fixture, *unstructured.Unstructured) see {
			return func(context.Context, objects.ID) (*unstructured.Unstructured, error) { return nil, nil }
		},
		"it fails": func(*fixture, *unstructured.Unstructured) see {
			return func(context.Context, objects.ID) (*unstructured.Unstructured, error) {
				return nil, fmt.Errorf("no cache")
			}
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			release := f.withDefaults()
			f.written(release)
			f.executor.Seen = prepare(f, release)
			set(release, int64(7), "spec", "values", "replicas")
			live := f.rewritten(release)
			if field(live, "spec", "timeout") != "" || field(live, "spec", "values", "replicas") != "7" {
				t.Errorf("spec is %v", live.Object["spec"])
			}
		})
	}
	t.Run("a plan that is outdated", func(t *testing.T) {
		f := newFixture(t)
		release := f.withDefaults()
		old := f.written(release)
		f.executor.Seen = func(context.Context, objects.ID) (*unstructured.Unstructured, error) { return old, nil }
		f.patch(release, "kubectl-edit", `{"spec":{"timeout":"9m"}}`)
		set(release, int64(7), "spec", "values", "replicas")
		f.requests.taken()
		f.done(seen(writeOf(owner, release), old))
		if diff := cmp.Diff([]string{"PATCH", "GET", "PATCH", "PATCH"}, f.requests.taken()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if live := f.live(release); field(live, "spec", "timeout") != "" || field(live, "spec", "values", "replicas") != "7" {
			t.Errorf("spec is %v", live.Object["spec"])
		}
	})
}

func TestWhatIsBeside(t *testing.T) {
	wanted := parse("apiVersion: v1\nkind: A\nmetadata: {labels: {a: x}}\nspec: {a: 1, b: {c: 2}, list: [1], none: null}\n")
	live := parse(`
apiVersion: v1
kind: A
metadata:
  labels: {a: y, team: z}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", note: hm}
  finalizers: [f]
spec: {a: 2, b: {c: 3, d: {e: [1]}}, list: [2, 3], none: 1, suspend: true, more: null}
status: {a: b}
`)
	want := "metadata.annotations/note=\"hm\"\nmetadata.labels/team=\"z\"\nspec/b/d={\"e\":[1]}\nspec/more=null"
	if diff := cmp.Diff(want, whatIsBeside(live, wanted)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := whatIsBeside(wanted, wanted); got != "" {
		t.Errorf("beside itself it holds %s", got)
	}
}

func TestBesideIsBounded(t *testing.T) {
	b, obj := &Known{}, newConfigMap("", "a")
	obj.SetUID("u")
	id := objects.IDOf(obj)
	for i := range maxBeside {
		b.remember(objects.ID{Name: fmt.Sprint(i)}, obj, obj)
	}
	b.remember(id, obj, obj)
	if _, known := b.of(id, "u"); !known || len(b.objects) != 1 {
		t.Errorf("%d objects are remembered", len(b.objects))
	}
	if _, known := b.of(id, types.UID("v")); known {
		t.Error("another object of the same name is known")
	}
	b.forget(id)
	if _, known := b.of(id, "u"); known {
		t.Error("what was forgotten is known")
	}
	var none *Known
	none.remember(id, obj, obj)
	none.forget(id)
	if _, known := none.of(id, "u"); known {
		t.Error("nobody knows something")
	}
}
