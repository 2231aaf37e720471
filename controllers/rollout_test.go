// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// rolloutGrace is the grace of the layer that loses objects in a rollout.
const rolloutGrace = time.Second

// rolloutPatience bounds each step of a rollout. Many run side by side.
const rolloutPatience = 5 * time.Minute

// rollout is the life of three layers: installed, changed by a revision with
// everything that a revision can bring, and deleted. Whoever looks after them
// may be disturbed in any way; what comes of it must be the same.
//
//	          first revision                       second revision
//	base      keep, change, gone, moved,           keep, change (changed), added (after change),
//	          old (Helm release shop),             new (Helm release shop), settings (changed)
//	          settings, dropped, a Namespace
//	apps      web; depends on base                 web, moved (from base)
//	tools     tool                                 nothing, which "next" allows
type rollout struct {
	*fixture
	*world
	// before is called before each step.
	before func(step int)
	// alive is called again and again while something is waited for.
	alive func()
	began map[string]types.UID
}

// newRollout prepares a rollout; whoever looks after it is yet to be started.
func newRollout(t *testing.T, o *onlooker) *rollout {
	t.Helper()
	f := newSerialBareFixture(t)
	return &rollout{fixture: f, world: o.world(f), before: func(int) {}, alive: func() {}}
}

// steps of a rollout, by name.
var steps = [3]string{"install", "change", "remove"}

// carryOut goes through all steps and holds what it finds against what must be.
func (r *rollout) carryOut() {
	r.Helper()
	for i, step := range [len(steps)]func(){r.install, r.change, r.remove} {
		r.before(i)
		step()
	}
}

func (r *rollout) install() {
	r.Helper()
	r.publish("main@sha1:1", map[string]string{
		"base/keep.yaml": r.helm("keep", "", "one"), "base/change.yaml": r.helm("change", "", "one"),
		"base/gone.yaml": r.helm("gone", "", "one"), "base/moved.yaml": r.helm("moved", "", "one"),
		"base/old.yaml":     r.helm("old", "releaseName: shop", "one"),
		"base/objects.yaml": r.configMap("settings", "one") + "---" + r.configMap("dropped", "one") + "---" + r.extraNamespace(),
		"apps/web.yaml":     r.helm("web", "", "one"),
		"tools/tool.yaml":   r.helm("tool", "", "one"),
	})
	r.layer("base", rolloutGrace)
	r.layer("apps", 0, "base")
	r.layer("tools", 0)
	r.settled("main@sha1:1", map[string][]string{
		"base":  {"keep", "change", "gone", "moved", "old", "ConfigMap settings", "ConfigMap dropped", "Namespace " + r.namespace + "-extra"},
		"apps":  {"web"},
		"tools": {"tool"},
	})
	r.uninstalls(nil)
	r.began = map[string]types.UID{}
	for _, name := range []string{"keep", "change", "moved", "web"} {
		r.began[name] = r.seen(r.id(name)).GetUID()
	}
}

func (r *rollout) change() {
	r.Helper()
	r.annotate("tools", v1alpha1.AllowEmptyAnnotation, v1alpha1.AllowNext)
	r.publish("main@sha1:2", map[string]string{
		"base/keep.yaml": r.helm("keep", "", "one"), "base/change.yaml": r.helm("change", "", "two"),
		"base/added.yaml":   r.helm("added", "dependsOn: [{name: change}]", "one"),
		"base/new.yaml":     r.helm("new", "releaseName: shop", "two"),
		"base/objects.yaml": r.configMap("settings", "two"),
		"apps/web.yaml":     r.helm("web", "", "two"), "apps/moved.yaml": r.helm("moved", "", "two"),
	})
	r.settled("main@sha1:2", map[string][]string{
		"base":  {"keep", "change", "added", "new", "ConfigMap settings"},
		"apps":  {"web", "moved"},
		"tools": {},
	})
	r.uninstalls([]string{"gone", "tool"})
	for name, uid := range r.began {
		if live := r.seen(r.id(name)); live.GetUID() != uid {
			r.Errorf("release %s was made anew", name)
		}
	}
	if generation := r.seen(r.id("keep")).GetGeneration(); generation != 1 {
		r.Errorf("a release that nobody has changed is at generation %d", generation)
	}
	r.await("what allowed one revision is used up", func() error {
		if value, left := r.seen(r.layerID("tools")).GetAnnotations()[v1alpha1.AllowEmptyAnnotation]; left {
			return fmt.Errorf("it is still there: %q", value)
		}
		return nil
	})
	if kept := r.seen(r.id("Namespace " + r.namespace + "-extra")); kept == nil || kept.GetLabels()[v1alpha1.OrphanedLabel] != "" {
		r.Errorf("the Namespace that is to be kept is %v", kept)
	}
}

func (r *rollout) remove() {
	r.Helper()
	for _, name := range []string{"base", "apps", "tools"} {
		r.must(r.client.Delete(r.ctx, &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: r.name(name)}}))
	}
	r.await("the layers go", func() error {
		for _, name := range []string{"base", "apps", "tools"} {
			if layer := r.seen(r.layerID(name)); layer != nil {
				return fmt.Errorf("layer %s is there: %v", name, layer.Object["status"])
			}
		}
		return nil
	})
	for _, gvk := range []schema.GroupVersionKind{helmReleaseVersion, configMapVersion} {
		left := &metav1.PartialObjectMetadataList{}
		left.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		r.must(r.client.List(r.ctx, left, client.InNamespace(r.namespace), client.HasLabels{v1alpha1.LayerLabel}))
		for i := range left.Items {
			r.Errorf("left behind: %s %s", gvk.Kind, left.Items[i].Name)
		}
	}
	r.await("the onlooker has seen everything go", func() error {
		if left := r.owned(); len(left) > 0 {
			return fmt.Errorf("there are still %v", left)
		}
		return nil
	})
	r.uninstalls([]string{"gone", "tool", "keep", "change", "added", "shop", "web", "moved"})
	for _, problem := range r.unlisted() {
		r.Error(problem)
	}
	for _, problem := range r.early(rolloutGrace) {
		if !strings.Contains(problem, r.namespace+"/tool ") && !strings.Contains(problem, r.namespace+"/web ") && !strings.Contains(problem, r.namespace+"/moved ") {
			r.Error(problem)
		}
	}
}

// settled waits until every layer has deployed a revision, and has exactly the
// objects that it should: in its inventory, by their labels, and unmarked.
func (r *rollout) settled(revision string, want map[string][]string) {
	r.Helper()
	ids := map[objects.ID]string{}
	for layer, names := range want {
		for _, name := range names {
			ids[r.id(name)] = r.name(layer)
		}
	}
	r.await("the layers have deployed "+revision, func() error {
		listed := map[objects.ID]string{}
		for layer := range want {
			live := r.seen(r.layerID(layer))
			if live == nil {
				return fmt.Errorf("layer %s is not there", layer)
			}
			status, _, _ := unstructured.NestedMap(live.Object, "status")
			if status["state"] != string(v1alpha1.StateDeployed) || status["revision"] != revision {
				return fmt.Errorf("layer %s has the status %v", layer, status)
			}
			for id := range inventoryOf(live) {
				listed[id] = live.GetName()
			}
		}
		if !maps.Equal(listed, ids) {
			return fmt.Errorf("the inventories are %v", listed)
		}
		if owned := r.owned(); !maps.Equal(owned, ids) {
			return fmt.Errorf("the layers own %v", owned)
		}
		for id := range ids {
			live := r.seen(id)
			if live.GetLabels()[v1alpha1.OrphanedLabel] != "" || live.GetAnnotations()[v1alpha1.SupersededByAnnotation] != "" || objects.IsSuspended(live) {
				return fmt.Errorf("%s has the labels %v and annotations %v", id, live.GetLabels(), live.GetAnnotations())
			}
		}
		return nil
	})
}

// owned returns what has the label of a layer.
func (r *rollout) owned() map[objects.ID]string {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	found := map[objects.ID]string{}
	for id, live := range r.now {
		if layer := live.GetLabels()[v1alpha1.LayerLabel]; layer != "" {
			found[id] = layer
		}
	}
	return found
}

// uninstalls checks that these Helm releases were uninstalled, once each, and
// no others. The stand-in counts after the object has gone, so it may be a
// moment behind.
func (r *rollout) uninstalls(want []string) {
	r.Helper()
	expected := map[string]int{}
	for _, name := range want {
		expected[name] = 1
	}
	r.await("Helm has uninstalled what it should", func() error {
		r.world.mu.Lock()
		defer r.world.mu.Unlock()
		if !maps.Equal(r.uninstalled, expected) {
			return fmt.Errorf("uninstalled: %v, want %v", r.uninstalled, expected)
		}
		return nil
	})
}

// await waits for something that must happen.
func (r *rollout) await(what string, check func() error) {
	r.Helper()
	end := time.Now().Add(rolloutPatience)
	err := errors.New("it was not looked at")
	for err != nil {
		r.alive()
		if err = check(); err != nil && time.Now().After(end) {
			r.Fatalf("%s: %v\n%s", what, err, r.history())
		}
		if err != nil {
			<-time.After(20 * time.Millisecond)
		}
	}
}

// history says what has happened, for a test that failed.
func (r *rollout) history() string {
	var text strings.Builder
	for _, h := range r.all() {
		state, _, _ := unstructured.NestedString(h.object.Object, "status", "state")
		fmt.Fprintf(&text, "%d %s %s labels %v annotations %v deleted %v %s\n", h.revision, h.event, h.id,
			h.object.GetLabels(), h.object.GetAnnotations(), h.object.GetDeletionTimestamp(), state)
	}
	return text.String()
}

// id returns the ID of a release, or of what is written as "Kind name".
func (r *rollout) id(name string) objects.ID {
	kind, other, found := strings.Cut(name, " ")
	switch {
	case !found:
		return objects.ID{Group: kinds.HelmReleaseKind.Group, Kind: kinds.HelmReleaseKind.Kind, Namespace: r.namespace, Name: name}
	case kind == "Namespace":
		return objects.ID{Kind: kind, Name: other}
	default:
		return objects.ID{Kind: kind, Namespace: r.namespace, Name: other}
	}
}

func (r *rollout) layerID(name string) objects.ID {
	return objects.ID{Group: layerVersion.Group, Kind: layerVersion.Kind, Name: r.name(name)}
}

// layer creates a layer that no interval rescues.
func (r *rollout) layer(name string, grace time.Duration, dependsOn ...string) {
	r.Helper()
	layer := &v1alpha1.AddonsLayer{
		ObjectMeta: metav1.ObjectMeta{Name: r.name(name), Labels: map[string]string{"test": r.namespace}},
		Spec: v1alpha1.AddonsLayerSpec{
			Version: "1.0.0", Source: v1alpha1.SourceSpec{Name: "addons", Path: "./" + name},
			Interval: &metav1.Duration{Duration: time.Hour}, OrphanGrace: &metav1.Duration{Duration: grace},
		},
	}
	for _, other := range dependsOn {
		layer.Spec.Prereqs.DependsOn = append(layer.Spec.Prereqs.DependsOn, r.name(other)+"@1.0.0")
	}
	r.must(r.client.Create(r.ctx, layer))
	r.Cleanup(func() {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		r.must(client.IgnoreNotFound(r.client.Patch(r.ctx, layer, patch)))
		r.must(client.IgnoreNotFound(r.client.Delete(r.ctx, layer)))
	})
}

func (r *rollout) annotate(layer, key, value string) {
	r.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value))
	r.must(r.client.Patch(r.ctx, &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: r.name(layer)}}, patch))
}

func (r *rollout) helm(name, more, value string) string {
	return fmt.Sprintf(`
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {namespace: %s, name: %s}
spec:
  interval: 1m
  %s
  chart: {spec: {chart: podinfo, sourceRef: {kind: HelmRepository, name: charts}}}
  values: {value: %s}
`, r.namespace, name, cmp.Or(more, "timeout: 5m"), value)
}

func (r *rollout) configMap(name, value string) string {
	return fmt.Sprintf("\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: %s, name: %s}\ndata: {value: %s}\n", r.namespace, name, value)
}

func (r *rollout) extraNamespace() string {
	return fmt.Sprintf("\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s-extra}\n", r.namespace)
}

// repeated returns deletions that were carried out more than once.
func repeated(lives []*mortal) []string {
	count := map[string]int{}
	for _, m := range lives {
		m.mu.Lock()
		for _, call := range m.done {
			if strings.HasPrefix(call.what, "DELETE ") && call.status < 300 {
				count[call.what]++
			}
		}
		m.mu.Unlock()
	}
	var found []string
	for _, what := range slices.Sorted(maps.Keys(count)) {
		if count[what] > 1 {
			found = append(found, fmt.Sprintf("%s, %d times", what, count[what]))
		}
	}
	return found
}

// sideBySide runs cases in subtests, a few at a time whatever the number of
// processors is: they wait for most of their time.
func sideBySide(t *testing.T, workers int, names []string, do func(t *testing.T, i int)) {
	t.Helper()
	next := make(chan int)
	ended := make(chan struct{})
	for range workers {
		go func() {
			defer func() { ended <- struct{}{} }()
			for i := range next {
				t.Run(names[i], func(t *testing.T) { do(t, i) })
			}
		}()
	}
	for i := range names {
		next <- i
	}
	close(next)
	for range workers {
		<-ended
	}
}
