// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
)

// asked notes what the caches are asked for.
type asked struct {
	client.Client
	mu  sync.Mutex
	all []string
}

func (a *asked) note(obj any, format string, args ...any) {
	kind := fmt.Sprintf("%T", obj)
	if object, ok := obj.(client.Object); ok {
		if gvk, err := apiutil.GVKForObject(object, a.Scheme()); err == nil {
			kind = gvk.Kind
		}
	}
	if list, ok := obj.(client.ObjectList); ok {
		if gvk, err := apiutil.GVKForObject(list, a.Scheme()); err == nil {
			kind = gvk.Kind
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, kind+" "+fmt.Sprintf(format, args...))
}

func (a *asked) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	a.note(obj, "%s", key)
	return a.Client.Get(ctx, key, obj, opts...)
}

func (a *asked) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := client.ListOptions{}
	options.ApplyOptions(opts)
	a.note(list, "%v", options.FieldSelector)
	return a.Client.List(ctx, list, opts...)
}

// taken returns what was asked since the last call, each once.
func (a *asked) taken() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.all
	a.all = nil
	slices.Sort(found)
	return slices.Compact(found)
}

// dueOf returns when a layer's next look is due, which the controller may be changing.
func dueOf(l *lastLooks, layer string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byLayer[layer].due
}

// A look at a settled layer asks the caches for the versions of all that the
// last one has read, and decides anew when any of it is another.
func TestSettledLook(t *testing.T) {
	var r *AddonsLayerReconciler
	var caches *asked
	f := newSerialFixture(t, func(c client.Client) client.Client {
		caches = &asked{Client: c}
		return caches
	}, func(reconciler *AddonsLayerReconciler) {
		r = reconciler
		r.Settings.Interval = time.Hour
	})
	f.publish("main@sha1:1", map[string]string{
		"base/releases.yaml": f.release("ingress"), "middle/release.yaml": f.release("web"), "top/release.yaml": f.release("api"),
		"middle/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: " + f.namespace + ", name: settings}\ndata: {a: b}\n",
	})
	f.layer("base")
	f.layer("middle", "base")
	f.layer("top", "middle")
	for _, each := range [][2]string{{"base", "ingress"}, {"middle", "web"}, {"top", "api"}} {
		f.ready(each[1])
		f.deployed(each[0], "main@sha1:1")
	}
	f.settle()
	name := f.name("middle")
	looks := func() []string {
		t.Helper()
		caches.taken()
		result, err := r.Reconcile(f.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
		f.must(err)
		if result.RequeueAfter != 0 {
			t.Errorf("the queue has the layer in %s", result.RequeueAfter)
		}
		if after := time.Until(dueOf(r.lastLooks, name)); after < time.Hour-time.Minute || after > time.Hour+time.Hour/10 {
			t.Errorf("the next look is due in %s", after)
		}
		return caches.taken()
	}
	r.lastLooks.set(name, nil)
	f.taken()
	var whole []string
	f.eventually("two looks, and the caches tell of nothing in between", func() error {
		before := r.cacheEvents.Load()
		whole = looks()
		asked := looks()
		if r.cacheEvents.Load() != before {
			return errors.New("the caches have told of something")
		}
		if len(asked) != 1 || asked[0] != "AddonsLayer /"+name {
			t.Errorf("nothing was told, and the next look asks for %s", strings.Join(asked, ", "))
		}
		return nil
	})
	r.cacheEvents.Add(1)
	again := looks()
	if len(whole) < 8 {
		t.Errorf("a whole look asks for %s only", strings.Join(whole, ", "))
	}
	if diff := cmp.Diff(whole, again); diff != "" {
		t.Errorf("what a whole look asks for, and one at a settled layer (-whole +settled):\n%s", diff)
	}
	if requests, _ := f.taken(); len(requests) != 0 {
		t.Errorf("the looks made requests: %v", requests)
	}

	layer := f.get("middle")
	last := r.lastLooks.get(name)
	if last == nil {
		t.Fatal("the look was not remembered")
	}
	// The controller runs beside this test, and knows no layer of this name: it
	// leaves alone what is remembered of it.
	name += "-unknown"
	layer.Name = name
	counts := func(what string, change func(*lastLook), want bool) {
		t.Helper()
		changed := *last
		changed.events--
		changed.answers = maps.Clone(last.answers)
		change(&changed)
		r.lastLooks.set(name, &changed)
		if _, same := r.settled(f.ctx, layer); same != want {
			t.Errorf("%s: it counts as settled: %t", what, same)
		}
	}
	counts("nothing", func(*lastLook) {}, true)
	if events := r.lastLooks.eventsOf(r.lastLooks.get(name)); events != r.cacheEvents.Load() {
		t.Errorf("it would be compared again: %d of %d", events, r.cacheEvents.Load())
	}
	var source question
	for asked := range last.answers {
		if _, ofSource := asked.(sourceQuestion); ofSource {
			source = asked
			continue
		}
		counts(fmt.Sprintf("%T%+v", asked, asked), func(l *lastLook) { l.answers[asked] += "1" }, false)
	}
	if source == nil {
		t.Error("the source is not among the answers")
	}
	moved := func(l *lastLook) { l.answers[source] += "1" }
	counts("a source that holds something else", func(l *lastLook) { moved(l); l.digest += "1" }, false)
	counts("a source that is suspended", func(l *lastLook) { moved(l); l.source.Suspended = true }, false)
	counts("a source that has moved", func(l *lastLook) { moved(l); l.source.Revision = "main@sha1:0" }, true)
	if after, _ := r.settled(f.ctx, layer); after <= 0 || after > 2*layers.RevisionLag {
		t.Errorf("the name of a revision is written down in %s", after)
	}
	putOff := r.lastLooks.get(name)
	f.eventually("the time to write the revision down comes", func() error {
		if _, same := r.settled(f.ctx, layer); same && r.lastLooks.get(name) == putOff {
			return errors.New("it is still put off")
		}
		return nil
	})
	counts("the layer", func(l *lastLook) { l.layer = "1" }, false)
	counts("the cluster's version", func(l *lastLook) { l.cluster = "v1.0.0" }, false)
	counts("the kinds", func(l *lastLook) { l.kinds-- }, false)
	counts("a moment that has come", func(l *lastLook) { l.until = time.Now() }, false)
	counts("a moment to come", func(l *lastLook) { l.until = time.Now().Add(time.Minute) }, true)
	if after, _ := r.settled(f.ctx, layer); after < 50*time.Second || after > time.Minute {
		t.Errorf("a minute before a moment to come the queue has the layer in %s", after)
	}
	if due := dueOf(r.lastLooks, name); !due.IsZero() {
		t.Errorf("the queue has the layer, and the safety net as well, at %s", due)
	}
}

// A look that has written nothing but a status is the last one: the next would
// find the same.
func TestLookAfterStatus(t *testing.T) {
	var r *AddonsLayerReconciler
	f := newSerialFixture(t, func(c client.Client) client.Client { return c }, func(reconciler *AddonsLayerReconciler) {
		r = reconciler
		r.Settings.Interval = time.Hour
	})
	f.publish("main@sha1:1", map[string]string{"base/release.yaml": f.release("ingress")})
	f.layer("base")
	f.ready("ingress")
	f.deployed("base", "main@sha1:1")
	f.settle()
	f.publish("main@sha1:2", map[string]string{"base/release.yaml": f.release("ingress"), "README.md": "touches no layer"})
	f.eventually("the status names the revision, and the look is remembered", func() error {
		layer := f.get("base")
		if layer.Status.Revision != "main@sha1:2" {
			return fmt.Errorf("it names %s", layer.Status.Revision)
		}
		if last := r.lastLooks.get(layer.Name); last == nil || last.layer != layer.ResourceVersion || last.due.IsZero() {
			return fmt.Errorf("the look was not remembered: %+v of layer version %s", last, layer.ResourceVersion)
		}
		return nil
	})
}

// The safety net looks at a layer that is due when the caches have told of
// something, and at no other.
func TestSweep(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		due                    time.Duration
		queued, changed, full  bool
		wakes, again, stillDue bool
	}{
		"not due":                           {due: time.Second, changed: true},
		"due, and nothing has changed":      {again: true},
		"long due, and nothing has changed": {due: -time.Hour, again: true},
		"due, and something has changed":    {changed: true, wakes: true},
		"due, and too many are woken":       {changed: true, full: true, wakes: true, stillDue: true},
		"the queue has it":                  {queued: true, changed: true},
	} {
		t.Run(name, func(t *testing.T) {
			was := now.Add(c.due)
			if c.queued {
				was = time.Time{}
			}
			all := newLastLooks()
			last := &lastLook{due: was, interval: time.Minute}
			all.set("base", last)
			var woken []string
			all.sweep(now, func(*lastLook) bool { return !c.changed }, func(layer string) bool {
				woken = append(woken, layer)
				return !c.full
			})
			if (len(woken) == 1) != c.wakes {
				t.Errorf("woken: %v", woken)
			}
			next := last.due.Sub(now)
			switch {
			case c.again:
				if next < time.Minute || next > time.Minute+time.Minute/10 {
					t.Errorf("due again in %s", next)
				}
			case c.wakes && !c.stillDue:
				if !last.due.IsZero() {
					t.Errorf("it is woken, and due in %s", next)
				}
			case !last.due.Equal(was):
				t.Errorf("due at %s, and then at %s", was, last.due)
			}
		})
	}
}

// What no event has told a layer of is found by the safety net, an interval
// after the last look.
func TestSafetyNet(t *testing.T) {
	var r *AddonsLayerReconciler
	f := newSerialFixture(t, func(c client.Client) client.Client { return c }, func(reconciler *AddonsLayerReconciler) {
		r = reconciler
		r.Settings.Interval = time.Second
	})
	f.publish("main@sha1:1", map[string]string{"base/release.yaml": f.release("ingress")})
	f.layer("base")
	f.ready("ingress")
	f.deployed("base", "main@sha1:1")
	name := f.name("base")
	atRest := func() error {
		r.lastLooks.mu.Lock()
		defer r.lastLooks.mu.Unlock()
		if last := r.lastLooks.byLayer[name]; last == nil || last.due.IsZero() {
			return errors.New("the safety net does not have it")
		}
		return nil
	}
	f.eventually("the layer is at rest", atRest)
	lie := func(change func(*lastLook)) *lastLook {
		r.lastLooks.mu.Lock()
		defer r.lastLooks.mu.Unlock()
		lied := *r.lastLooks.byLayer[name]
		lied.answers = maps.Clone(lied.answers)
		for asked := range lied.answers {
			if object, is := asked.(objectQuestion); is && object.id.GroupKind() == kinds.HelmReleaseKind {
				lied.answers[asked] += "1"
			}
		}
		change(&lied)
		r.lastLooks.byLayer[name] = &lied
		return &lied
	}
	for what, change := range map[string]func(*lastLook){
		"a change":                func(l *lastLook) { l.events-- },
		"another cluster version": func(l *lastLook) { l.cluster = "v1.0.0" },
		"other kinds":             func(l *lastLook) { l.kinds-- },
	} {
		lied := lie(change)
		f.eventually(what+" that nobody was woken for leads to a look", func() error {
			if r.lastLooks.get(name) == lied {
				return errors.New("it is as it was")
			}
			return atRest()
		})
	}
}
