// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// readiness remembers everything that the Platforms of a fixture and their layers say of Ready.
type readiness struct {
	*fixture
	mu   sync.Mutex
	said map[string][]string
}

// readiness begins to watch at what there is now, and misses nothing until the test ends.
func (f *fixture) readiness() *readiness {
	f.Helper()
	r := &readiness{fixture: f, said: map[string][]string{}}
	ctx, cancel := context.WithCancel(f.ctx)
	var watching sync.WaitGroup
	for _, of := range []func() client.ObjectList{
		func() client.ObjectList { return &v1alpha1.PlatformList{} }, func() client.ObjectList { return &v1alpha1.AddonsLayerList{} },
	} {
		now := of()
		f.must(stack.client.List(f.ctx, now))
		f.must(meta.EachListItem(now, func(object runtime.Object) error { r.note(object); return nil }))
		watcher, err := toolswatch.NewRetryWatcherWithContext(ctx, now.GetResourceVersion(), &toolscache.ListWatch{
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return stack.client.Watch(ctx, of(), &client.ListOptions{Raw: &options})
			},
		})
		f.must(err)
		watching.Go(func() {
			for event := range watcher.ResultChan() {
				r.note(event.Object)
			}
		})
	}
	f.Cleanup(func() { cancel(); watching.Wait() })
	return r
}

// note remembers what an object says, where it is news.
func (r *readiness) note(object runtime.Object) {
	var kind string
	var conditions []metav1.Condition
	switch of := object.(type) {
	case *v1alpha1.Platform:
		kind, conditions = "Platform", of.Status.Conditions
	case *v1alpha1.AddonsLayer:
		kind, conditions = "layer", of.Status.Conditions
	default:
		return
	}
	name, ours := strings.CutPrefix(object.(client.Object).GetName(), r.prefix+"-")
	ready := meta.FindStatusCondition(conditions, v1alpha1.ReadyCondition)
	if !ours || ready == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key, text := kind+" "+name, fmt.Sprintf("%s %s: %s", ready.Status, ready.Reason, ready.Message)
	if said := r.said[key]; len(said) == 0 || said[len(said)-1] != text {
		r.said[key] = append(said, text)
	}
}

// of returns what an object has said, in order.
func (r *readiness) of(key string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.said[key]...)
}

// rests fails the test where an object has said anything but that it is ready.
func (r *readiness) rests(what string, keys ...string) {
	r.Helper()
	for _, key := range keys {
		said := r.of(key)
		if len(said) == 0 {
			r.Errorf("%s: %s has said nothing", what, key)
		}
		for _, text := range said {
			if !strings.HasPrefix(text, "True ") {
				r.Errorf("%s: %s has said %q", what, key, said)
				break
			}
		}
	}
}

// basedPlatforms makes the Platform lower with two layers, one for each input, and the Platform
// upper that depends on it, on one cluster, and waits until both are ready.
func (f *fixture) basedPlatforms(far *farCluster) {
	f.Helper()
	f.must(far.CreateNamespace(f.ctx, f.prefix))
	f.joined("north", far)
	f.application("app", "configmap", "1.0.0")
	f.bundle("1.0.0", `
  inputs: [{name: one, default: a}, {name: two, default: a}]
  layers:
  - name: base
    applications: [{name: base, application: PREFIX-app, version: 1.0.0, values: {data: {value: "${inputs.one}"}}}]
  - name: net
    dependsOn: [base]
    applications: [{name: net, application: PREFIX-app, version: 1.0.0, values: {data: {value: "${inputs.two}"}}}]
`)
	upper := &v1alpha1.ApplicationBundle{}
	f.written(upper, `
metadata: {name: PREFIX-upper}
spec:
  family: PREFIX-upper
  version: 1.0.0
  inputs: [{name: text, default: a}]
  layers:
  - {name: apps, applications: [{name: apps, application: PREFIX-app, version: 1.0.0, values: {data: {value: "${inputs.text}"}}}]}
`)
	f.Cleanup(func() { f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, upper))) })
	f.platform("lower", "  bundle: {family: PREFIX}\n  clusterSelector: {namespace: PREFIX}\n")
	f.platform("upper", "  bundle: {family: PREFIX-upper}\n  clusterSelector: {namespace: PREFIX}\n  dependsOn: [{name: PREFIX-lower}]\n")
	f.platformReady("lower", "1.0.0")
	f.platformReady("upper", "1.0.0")
}

// layerOf returns the name of a layer of a Platform, without the fixture's prefix.
func (f *fixture) layerOf(platform, layer string) string {
	f.Helper()
	list := &v1alpha1.AddonsLayerList{}
	f.must(stack.client.List(f.ctx, list, client.MatchingLabels{v1alpha1.PlatformLabel: f.name(platform), v1alpha1.PlatformLayerLabel: layer}))
	if len(list.Items) != 1 {
		f.Fatalf("Platform %s has %d layers %s", platform, len(list.Items), layer)
	}
	return strings.TrimPrefix(list.Items[0].Name, f.prefix+"-")
}

// holdsOn waits until the ConfigMap of an application holds a value.
func (f *fixture) holdsOn(on client.Client, name, value string) {
	f.Helper()
	f.eventually(name+" holds "+value, func() error {
		if data, err := f.configMapOn(on, f.prefix, name); err != nil || data["value"] != value {
			return fmt.Errorf("it has %v: %w", data, err)
		}
		return nil
	})
}

// Other inputs of a Platform do not make one that depends on it, and of which nothing changes,
// look as if it were under way. What is to be changed of both comes in order.
func TestPlatformRestsWhileAnotherOneChanges(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	f.basedPlatforms(far)
	apps, net := f.layerOf("upper", "apps"), f.layerOf("lower", "net")
	seen := f.readiness()
	for _, inputs := range []struct{ text, one, two string }{
		{`{"one":"b"}`, "b", "a"}, {`{"one":"b","two":"b"}`, "b", "b"}, {`{"one":"c","two":"c"}`, "c", "c"},
	} {
		f.editPlatform("lower", `{"spec":{"inputs":`+inputs.text+`}}`)
		f.holdsOn(far.client, "base", inputs.one)
		f.holdsOn(far.client, "net", inputs.two)
		f.platformReady("lower", "1.0.0")
	}
	if said := strings.Join(seen.of("layer "+net), "\n"); !strings.Contains(said, "Unknown ") {
		t.Errorf("the layer that changes has never been under way: the test shows nothing:\n%s", said)
	}
	seen.rests("while the other one changed", "Platform upper", "layer "+apps)

	// Its own news wait for what is under way below it.
	w := f.witness()
	f.editPlatform("lower", `{"spec":{"inputs":{"one":"d","two":"d"}}}`)
	f.eventually("the lower one is under way", func() error {
		if f.get(net).Generation == f.get(net).Status.ObservedGeneration && f.get(net).Status.State == v1alpha1.StateDeployed {
			return errors.New("it is not")
		}
		return nil
	})
	f.editPlatform("upper", `{"spec":{"inputs":{"text":"d"}}}`)
	f.holdsOn(far.client, "apps", "d")
	f.platformReady("upper", "1.0.0")
	written := func(app string) sighting {
		return w.first(app+" is written", func(s sighting) bool {
			release, is := s.object.(interface{ GetValues() map[string]any })
			return is && strings.Contains(s.object.GetName(), "-"+app+"-") && strings.Contains(fmt.Sprint(release.GetValues()), "value:d]")
		})
	}
	w.after(written("apps"), written("net"), "what depends on it")
}

// A restart of the controller is nothing that happens to Platforms on other clusters.
func TestPlatformsRestWhileTheControllerRestarts(t *testing.T) {
	f := newSerialFixture(t)
	far := f.far(0)
	f.basedPlatforms(far)
	seen := f.readiness()
	f.must(stack.controller.Stop(30 * time.Second))
	f.must(stack.controller.Start(f.ctx))
	// It has looked at all of it once a change has come through.
	f.editPlatform("lower", `{"spec":{"inputs":{"one":"b"}}}`)
	f.holdsOn(far.client, "base", "b")
	f.platformReady("lower", "1.0.0")
	seen.rests("over the restart", "Platform upper", "layer "+f.layerOf("upper", "apps"))
}
