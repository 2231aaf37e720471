// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

var (
	layerVersion     = v1alpha1.GroupVersion.WithKind(v1alpha1.AddonsLayerKind)
	configMapVersion = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
)

// onlooker watches the API server on its own, and remembers everything that
// happens to layers and to what they hold. It also stands in for
// helm-controller: here, Strata is looked at alone, and a release is Ready as
// soon as it is seen. The real one is in test/e2e.
type onlooker struct {
	*testing.T
	client client.WithWatch

	mu     sync.Mutex
	worlds map[string]*world
}

// happened is one change of one object.
type happened struct {
	revision uint64
	event    watch.EventType
	id       objects.ID
	object   *unstructured.Unstructured
}

// world is what happens in one test's namespace, and to its layers.
type world struct {
	mu     sync.Mutex
	events []happened
	now    map[objects.ID]*unstructured.Unstructured
	// uninstalled counts how often each Helm release was uninstalled.
	uninstalled map[string]int
	work        chan objects.ID
}

// newOnlooker watches until the test ends.
func newOnlooker(t *testing.T) *onlooker {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server")
	}
	c, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: newScheme()})
	if err != nil {
		t.Fatal(err)
	}
	o := &onlooker{T: t, client: c, worlds: map[string]*world{}}
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	for _, gvk := range []schema.GroupVersionKind{layerVersion, helmReleaseVersion, configMapVersion, namespaceVersion} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		watching, err := watchOn(ctx, c, list)
		if err != nil {
			cancel()
			t.Fatal(err)
		}
		following.Go(func() { o.follow(ctx, watching) })
	}
	t.Cleanup(func() {
		cancel()
		following.Wait()
	})
	return o
}

// watchOn watches a kind from now on, and goes on where the API server ends that: it does where
// it cannot deliver as fast as things change.
func watchOn(ctx context.Context, c client.WithWatch, list *unstructured.UnstructuredList) (watch.Interface, error) {
	if err := c.List(ctx, list, client.Limit(1)); err != nil {
		return nil, err
	}
	return toolswatch.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &toolscache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			of := &unstructured.UnstructuredList{}
			of.SetGroupVersionKind(list.GroupVersionKind())
			return c.Watch(ctx, of, &client.ListOptions{Raw: &options})
		},
	})
}

// world returns what happens in a namespace, and plays Flux there.
func (o *onlooker) world(f *fixture) *world {
	w := &world{
		now: map[objects.ID]*unstructured.Unstructured{}, uninstalled: map[string]int{}, work: make(chan objects.ID, 4096),
	}
	o.mu.Lock()
	o.worlds[f.namespace] = w
	o.mu.Unlock()
	ctx, cancel := context.WithCancel(f.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.playFlux(ctx, f)
	}()
	f.Cleanup(func() {
		cancel()
		<-ended
	})
	return w
}

func (o *onlooker) follow(ctx context.Context, watching watch.Interface) {
	defer watching.Stop()
	for event := range watching.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		switch {
		case ctx.Err() != nil:
			return
		case !ok:
			o.Errorf("a watch says %v", event.Object)
			continue
		}
		// The names of what has no namespace begin with the test's.
		namespace, _, _ := strings.Cut(cmp.Or(object.GetNamespace(), object.GetName()), "-")
		o.mu.Lock()
		w := o.worlds[namespace]
		o.mu.Unlock()
		if w != nil {
			w.record(event.Type, object)
		}
	}
	if ctx.Err() == nil {
		o.Error("a watch has ended")
	}
}

func (w *world) record(event watch.EventType, object *unstructured.Unstructured) {
	revision, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	id := objects.IDOf(object)
	w.mu.Lock()
	w.events = append(w.events, happened{revision, event, id, object})
	if event == watch.Deleted {
		delete(w.now, id)
	} else {
		w.now[id] = object
	}
	w.mu.Unlock()
	if id.GroupKind() == kinds.HelmReleaseKind {
		w.work <- id
	}
}

// seen returns an object as it was seen last, or nil.
func (w *world) seen(id objects.ID) *unstructured.Unstructured {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now[id]
}

// all returns everything that has happened, in the order of the store.
func (w *world) all() []happened {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := slices.Clone(w.events)
	slices.SortStableFunc(events, func(a, b happened) int { return cmp.Compare(a.revision, b.revision) })
	return events
}

// playFlux installs, and uninstalls what is deleted unless it is suspended.
func (w *world) playFlux(ctx context.Context, f *fixture) {
	for {
		select {
		case <-ctx.Done():
			return
		case id := <-w.work:
			if live := w.seen(id); live != nil {
				if err := w.reconcile(ctx, f, live); client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
					f.Errorf("the stand-in for Flux: %v", err)
				}
			}
		}
	}
}

const fluxFinalizer = "finalizers.fluxcd.io"

func (w *world) reconcile(ctx context.Context, f *fixture, live *unstructured.Unstructured) error {
	merge := func(patch string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(patch)) }
	stub := live.DeepCopy()
	finalized := slices.Contains(live.GetFinalizers(), fluxFinalizer)
	ready, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	switch {
	case live.GetDeletionTimestamp() != nil && finalized:
		if err := f.client.Patch(ctx, stub, merge(`{"metadata":{"finalizers":null}}`)); err != nil {
			return err
		}
		if !objects.IsSuspended(live) {
			w.mu.Lock()
			w.uninstalled[helmName(live)]++
			w.mu.Unlock()
		}
		return nil
	case live.GetDeletionTimestamp() != nil:
		return nil
	case !finalized:
		return f.client.Patch(ctx, stub, merge(`{"metadata":{"finalizers":["`+fluxFinalizer+`"]}}`))
	case objects.IsSuspended(live) || ready == live.GetGeneration():
		return nil
	}
	return f.client.Status().Patch(ctx, stub, merge(fmt.Sprintf(
		`{"status":{"observedGeneration":%d,"conditions":[{"type":"Ready","status":"True","reason":"InstallSucceeded","message":"installed","observedGeneration":%d,"lastTransitionTime":%q}]}}`,
		live.GetGeneration(), live.GetGeneration(), time.Now().UTC().Format(time.RFC3339))))
}

// helmName returns the name of the Helm release that a HelmRelease stands for.
func helmName(live *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(live.Object, "spec", "releaseName")
	return cmp.Or(name, live.GetName())
}

// inventoryOf returns what a layer's status lists.
func inventoryOf(layer *unstructured.Unstructured) map[objects.ID]bool {
	listed := map[objects.ID]bool{}
	resources, _, _ := unstructured.NestedSlice(layer.Object, "status", "resources")
	for _, item := range resources {
		resource, _ := item.(map[string]any)
		text := func(key string) string { s, _ := resource[key].(string); return s }
		gk := kinds.ParseResourceKind(text("kind"))
		listed[objects.ID{Group: gk.Group, Kind: gk.Kind, Namespace: text("namespace"), Name: text("name")}] = true
	}
	return listed
}

// unlisted goes through history and returns each moment at which an object
// belonged to a layer whose inventory did not know of it.
func (w *world) unlisted() []string {
	inventories := map[string]map[objects.ID]bool{}
	owned := map[objects.ID]string{}
	var problems []string
	for _, h := range w.all() {
		if h.id.GroupKind() == layerVersion.GroupKind() {
			inventories[h.id.Name] = inventoryOf(h.object)
		} else {
			owned[h.id] = h.object.GetLabels()[v1alpha1.LayerLabel]
			if h.event == watch.Deleted {
				delete(owned, h.id)
			}
		}
		for id, layer := range owned {
			if layer != "" && !inventories[layer][id] {
				problems = append(problems, fmt.Sprintf("revision %d: %s is layer %s's, which does not list it", h.revision, id, layer))
			}
		}
	}
	return problems
}

// early returns the objects that were deleted before their grace was over.
func (w *world) early(grace time.Duration) []string {
	var problems []string
	seen := map[types.UID]bool{}
	marked := map[types.UID]time.Time{}
	for _, h := range w.all() {
		uid := h.object.GetUID()
		if value := h.object.GetLabels()[v1alpha1.OrphanedLabel]; value != "" {
			moment, err := time.Parse("2006-01-02T15.04.05Z", value)
			if err != nil {
				problems = append(problems, err.Error())
			}
			marked[uid] = moment
		}
		deleted := h.object.GetDeletionTimestamp()
		if deleted == nil && h.event != watch.Deleted || seen[uid] || h.id.GroupKind() == layerVersion.GroupKind() {
			continue
		}
		seen[uid] = true
		if h.object.GetAnnotations()[v1alpha1.SupersededByAnnotation] != "" {
			continue
		}
		// What has no finalizer goes without a word of when.
		if since, known := marked[uid]; !known || deleted != nil && deleted.Sub(since) < grace {
			problems = append(problems, fmt.Sprintf("%s was marked at %s and deleted at %s", h.id, since, deleted))
		}
	}
	return problems
}
