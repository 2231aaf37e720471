// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// sighting is one event of a watch, at the moment at which the test saw it.
type sighting struct {
	at     time.Time
	event  watch.EventType
	object client.Object
}

// revision returns the revision of the store that the event stands for. It
// orders events of all kinds exactly.
func (s sighting) revision() uint64 {
	revision, _ := strconv.ParseUint(s.object.GetResourceVersion(), 10, 64)
	return revision
}

// witness watches the layers and the releases of a fixture and remembers every
// event, so that nothing passes between two looks.
type witness struct {
	*fixture
	mu   sync.Mutex
	seen []sighting
}

// witness begins to watch; the watches end with the test.
func (f *fixture) witness() *witness {
	f.Helper()
	w := &witness{fixture: f}
	ctx, cancel := context.WithCancel(f.ctx)
	var watching sync.WaitGroup
	for list, opts := range map[client.ObjectList][]client.ListOption{
		&v1alpha1.AddonsLayerList{}: nil,
		&helmv2.HelmReleaseList{}:   {client.InNamespace(f.prefix)},
	} {
		events, err := stack.client.Watch(ctx, list, opts...)
		f.must(err)
		watching.Go(func() { w.follow(events) })
	}
	f.Cleanup(func() {
		cancel()
		watching.Wait()
	})
	return w
}

func (w *witness) follow(events watch.Interface) {
	defer events.Stop()
	for event := range events.ResultChan() {
		at := time.Now()
		object, ok := event.Object.(client.Object)
		if !ok {
			continue
		}
		if _, isLayer := object.(*v1alpha1.AddonsLayer); isLayer && !strings.HasPrefix(object.GetName(), w.prefix+"-") {
			continue
		}
		w.mu.Lock()
		w.seen = append(w.seen, sighting{at: at, event: event.Type, object: object})
		w.mu.Unlock()
	}
}

// all returns what was seen so far, in order.
func (w *witness) all() []sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]sighting(nil), w.seen...)
}

// first waits for the first event that matches.
func (w *witness) first(what string, matches func(sighting) bool) sighting {
	w.Helper()
	var found sighting
	w.eventually(what, func() error {
		for _, s := range w.all() {
			if matches(s) {
				found = s
				return nil
			}
		}
		return fmt.Errorf("none of %d events shows it", len(w.all()))
	})
	return found
}

// firstLayer waits for the first event of a layer that matches.
func (w *witness) firstLayer(name, what string, matches func(*v1alpha1.AddonsLayer) bool) sighting {
	w.Helper()
	return w.first("layer "+name+" "+what, func(s sighting) bool {
		layer, ok := s.object.(*v1alpha1.AddonsLayer)
		return ok && layer.Name == w.name(name) && matches(layer)
	})
}

// firstDeployed waits for the first event that shows a layer Deployed at a
// version and a revision.
func (w *witness) firstDeployed(name, version, revision string) sighting {
	w.Helper()
	return w.firstLayer(name, "has deployed "+version+" of "+revision, func(layer *v1alpha1.AddonsLayer) bool {
		return layer.Status.State == v1alpha1.StateDeployed && layer.Status.ObservedGeneration == layer.Generation &&
			layer.Status.Version == version && layer.Status.Revision == revision
	})
}

// firstRelease waits for the first event of a release that matches.
func (w *witness) firstRelease(name, what string, matches func(*helmv2.HelmRelease) bool) sighting {
	w.Helper()
	return w.first("release "+name+" "+what, func(s sighting) bool {
		release, ok := s.object.(*helmv2.HelmRelease)
		return ok && release.Name == name && matches(release)
	})
}

// created waits until a release has been seen.
func (w *witness) created(name string) sighting {
	w.Helper()
	return w.firstRelease(name, "is created", func(*helmv2.HelmRelease) bool { return true })
}

// ready waits for the first event that shows a release Ready at its own
// generation.
func (w *witness) ready(name string) sighting {
	w.Helper()
	return w.firstRelease(name, "is ready", func(release *helmv2.HelmRelease) bool {
		return release.Status.ObservedGeneration == release.Generation &&
			meta.IsStatusConditionTrue(release.Status.Conditions, "Ready")
	})
}

// holds waits for the first event that shows a release with the value of
// configMapRelease.
func (w *witness) holds(name, value string) sighting {
	w.Helper()
	return w.firstRelease(name, "holds the value "+value, func(release *helmv2.HelmRelease) bool {
		return release.Spec.Values != nil && strings.Contains(string(release.Spec.Values.Raw), strconv.Quote(value))
	})
}

// deleting waits for the first event that shows a release being deleted.
func (w *witness) deleting(name string) sighting {
	w.Helper()
	return w.firstRelease(name, "is being deleted", func(release *helmv2.HelmRelease) bool {
		return !release.DeletionTimestamp.IsZero()
	})
}

// gone waits for the event of a release's end.
func (w *witness) gone(name string) sighting {
	w.Helper()
	return w.first("release "+name+" is gone", func(s sighting) bool {
		_, ok := s.object.(*helmv2.HelmRelease)
		return ok && s.event == watch.Deleted && s.object.GetName() == name
	})
}

// layerGone waits for the event of a layer's end.
func (w *witness) layerGone(name string) sighting {
	w.Helper()
	return w.first("layer "+name+" is gone", func(s sighting) bool {
		_, ok := s.object.(*v1alpha1.AddonsLayer)
		return ok && s.event == watch.Deleted && s.object.GetName() == w.name(name)
	})
}

// statuses returns every status of a layer that was seen so far.
func (w *witness) statuses(name string) []v1alpha1.AddonsLayerStatus {
	var found []v1alpha1.AddonsLayerStatus
	for _, s := range w.all() {
		if layer, ok := s.object.(*v1alpha1.AddonsLayer); ok && layer.Name == w.name(name) {
			found = append(found, layer.Status)
		}
	}
	return found
}

// after fails the test unless one event came after another.
func (w *witness) after(later, earlier sighting, what string) {
	w.Helper()
	if later.revision() <= earlier.revision() {
		w.Errorf("%s: %s of %s (%d) came before %s of %s (%d)", what,
			later.event, later.object.GetName(), later.revision(), earlier.event, earlier.object.GetName(), earlier.revision())
	}
}

// follows fails the test unless an effect came after its cause, and at once.
func (w *witness) follows(effect, cause sighting, what string) {
	w.Helper()
	w.after(effect, cause, what)
	took := effect.at.Sub(cause.at)
	w.Logf("%s: after %s", what, took.Round(time.Millisecond))
	if took > promptly {
		w.Errorf("%s: it took %s", what, took)
	}
}

// releaseDependingOn returns the manifest of configMapRelease for a release
// that depends on others.
func (f *fixture) releaseDependingOn(name, value string, others ...string) string {
	names := make([]string, 0, len(others))
	for _, other := range others {
		names = append(names, "{name: "+other+"}")
	}
	return strings.Replace(f.configMapRelease(name, value), "  interval: 1h\n",
		"  interval: 1h\n  dependsOn: ["+strings.Join(names, ", ")+"]\n", 1)
}

// releaseWithoutChart returns the manifest of configMapRelease for a version of
// the chart that does not exist.
func (f *fixture) releaseWithoutChart(name, value string) string {
	return strings.Replace(f.configMapRelease(name, value), "version: 1.0.0", "version: 9.9.9", 1)
}

// condition returns a condition of a layer, or an empty one.
func condition(layer *v1alpha1.AddonsLayer, kind string) metav1.Condition {
	if found := meta.FindStatusCondition(layer.Status.Conditions, kind); found != nil {
		return *found
	}
	return metav1.Condition{}
}

// written says when, and by whom, an object was last written, but for its
// status: Flux's controllers may be a moment behind with that.
func written(obj client.Object) string {
	var writes []string
	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource == "" {
			writes = append(writes, fmt.Sprintf("%s %s %s", entry.Manager, entry.Operation, entry.Time))
		}
	}
	slices.Sort(writes)
	return fmt.Sprintf("%s generation %d: %s", obj.GetUID(), obj.GetGeneration(), strings.Join(writes, ", "))
}

// versions says of the fixture's releases by name how they were last written.
func (f *fixture) versions() map[string]string {
	f.Helper()
	list := &helmv2.HelmReleaseList{}
	f.must(stack.client.List(f.ctx, list, client.InNamespace(f.prefix)))
	found := make(map[string]string, len(list.Items))
	for i := range list.Items {
		found[list.Items[i].Name] = written(&list.Items[i])
	}
	return found
}

// helmRevisions returns how many revisions Helm has stored of a release; 0 for
// one that is not installed.
func (f *fixture) helmRevisions(name string) int {
	f.Helper()
	list := &corev1.SecretList{}
	f.must(stack.client.List(f.ctx, list, client.InNamespace(f.prefix), client.MatchingLabels{"owner": "helm", "name": name}))
	return len(list.Items)
}
