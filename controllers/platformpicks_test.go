// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// watched watches objects of the test from now on. What it returns gives all events
// until then, in order.
func (f *fixture) watched(list client.ObjectList) func() []watch.Event {
	f.Helper()
	watching, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: newScheme()})
	f.must(err)
	ctx, cancel := context.WithCancel(f.ctx)
	f.Cleanup(cancel)
	found, err := watching.Watch(ctx, list, client.MatchingLabels{"test": f.namespace})
	f.must(err)
	var mu sync.Mutex
	var all []watch.Event
	go func() {
		for event := range found.ResultChan() {
			mu.Lock()
			all = append(all, event)
			mu.Unlock()
		}
	}()
	return func() []watch.Event {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// firstRevision returns the resourceVersion of the first event that is right, by which
// the API server orders objects of all kinds; 0 where there was none.
func firstRevision[O client.Object](t *testing.T, events []watch.Event, right func(watch.EventType, O) bool) int {
	t.Helper()
	for _, event := range events {
		obj, isObject := event.Object.(O)
		if isObject && right(event.Type, obj) {
			revision, err := strconv.Atoi(obj.GetResourceVersion())
			if err != nil {
				t.Fatal(err)
			}
			return revision
		}
	}
	return 0
}

// lockOf returns what a lock holds.
func lockOf(platform *v1alpha1.Platform) string {
	if platform.Status.Lock == nil {
		return ""
	}
	var all []string
	for _, locked := range platform.Status.Lock.Applications {
		all = append(all, locked.Name+"@"+locked.Version)
	}
	return strings.Join(all, " ")
}

// picksFixture has an application shop of two versions that needs db, and a bundle.
func picksFixture(t *testing.T) *fixture {
	t.Helper()
	f := newBareFixture(t)
	f.startFleet(time.Minute)
	f.bundleOf("one", "1.0.0", settings)
	here := &v1alpha1.ApplicationNamespace{Name: f.namespace}
	f.application("db", func(v *v1alpha1.HelmApplicationVersion) { v.Namespace = here })
	shop := f.application("shop", func(v *v1alpha1.HelmApplicationVersion) {
		v.Namespace, v.DependsOn = here, []v1alpha1.ApplicationRequirement{{Name: f.name("db"), Range: "^1"}}
	})
	next := *shop.Spec.Versions[0].DeepCopy()
	next.Version, next.DependsOn[0].Range = "2.0.0", "^2"
	shop.Spec.Versions = append(shop.Spec.Versions, next)
	f.must(f.client.Update(f.ctx, shop))
	f.applicationSays("shop", v1alpha1.ReasonProblems, f.name("db"))
	return f
}

// Versions that were chosen are written down before anything is made of them, and
// all that was made goes with what was picked.
func TestPicksAreLockedFirst(t *testing.T) {
	f := picksFixture(t)
	platforms, bundles, layers := f.watched(&v1alpha1.PlatformList{}), f.watched(&v1alpha1.ApplicationBundleList{}), f.watched(&v1alpha1.AddonsLayerList{})
	f.platform("own", "  bundle: {family: NAMESPACE}\n  applications: [{name: NAMESPACE-shop, values: {host: \"${instance.name}\"}}]\n")
	f.indexed()
	f.ready(f.name("db"))
	f.ready(f.name("shop"))
	platform := f.installed("own", "1.0.0", 4)
	want := f.name("db") + "@1.0.0 " + f.name("shop") + "@1.0.0"
	if got := lockOf(platform); got != want {
		t.Errorf("locked are %s, want %s", got, want)
	}
	made := platform.Status.Lock.Bundle
	if !strings.HasPrefix(made, f.name("own")+"-apps-") {
		t.Errorf("the bundle of the picks is %s", made)
	}
	locked := firstRevision(t, platforms(), func(_ watch.EventType, p *v1alpha1.Platform) bool { return lockOf(p) == want })
	bundled := firstRevision(t, bundles(), func(_ watch.EventType, b *v1alpha1.ApplicationBundle) bool { return b.Name == made })
	layered := firstRevision(t, layers(), func(_ watch.EventType, l *v1alpha1.AddonsLayer) bool { return l.Spec.Source.Name == made })
	if locked == 0 || bundled <= locked || layered <= bundled {
		t.Errorf("the lock was written at %d, the bundle at %d, and its layer at %d", locked, bundled, layered)
	}
	release := &helmv2.HelmRelease{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: f.name("shop")}, release))
	if got, want := string(release.Spec.Values.Raw), `{"host":"`+f.name("own")+`"}`; got != want {
		t.Errorf("the values of what was picked are %s, want %s", got, want)
	}

	f.patchLayer("own-picked.applications", `{"spec":{"orphanGrace":"0s"}}`)
	f.patchPlatform("own", `{"spec":{"applications":null}}`)
	platform = f.installed("own", "1.0.0", 3)
	if platform.Status.Lock != nil {
		t.Errorf("without picks the lock is %+v", platform.Status.Lock)
	}
	f.isGone(&v1alpha1.AddonsLayer{}, "own-picked.applications")
	f.isGone(&v1alpha1.ApplicationBundle{}, strings.TrimPrefix(made, f.name("")))
}

// Where no versions fit, what was chosen stays, and the reason is told in the words
// of who looked for them.
func TestPicksThatDoNotFit(t *testing.T) {
	f := picksFixture(t)
	f.platform("own", "  applications: [{name: NAMESPACE-shop, version: 2.0.0}]\n")
	platform := f.platformSays("own", v1alpha1.ReasonUnsatisfiable, "spec.applications: no versions fit together", f.name("db"), "^2")
	if platform.Status.Lock != nil {
		t.Errorf("the lock is %+v", platform.Status.Lock)
	}
	f.patchPlatform("own", `{"spec":{"applications":[{"name":"`+f.name("shop")+`"}]}}`)
	f.indexed()
	f.ready(f.name("db"))
	f.ready(f.name("shop"))
	before := f.installed("own", "", 1)

	f.patchPlatform("own", `{"spec":{"applications":[{"name":"`+f.name("shop")+`","version":">=2"}]}}`)
	after := f.platformSays("own", v1alpha1.ReasonUnsatisfiable, "spec.applications: no versions fit together", f.name("db"), "^2")
	if got, want := lockOf(after), lockOf(before); got != want {
		t.Errorf("locked are %s, want %s", got, want)
	}
	f.settle()
	if got := f.get("own-picked.applications").Spec.Source.Name; got != before.Status.Lock.Bundle {
		t.Errorf("the layer is of bundle %s, want %s", got, before.Status.Lock.Bundle)
	}

	db := &v1alpha1.HelmApplication{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Name: f.name("db")}, db))
	next := *db.Spec.Versions[0].DeepCopy()
	next.Version = "2.1.0"
	db.Spec.Versions = append(db.Spec.Versions, next)
	f.must(f.client.Update(f.ctx, db))
	f.eventually("other versions are chosen when the catalogue has them", func() error {
		if got, want := lockOf(f.getPlatform("own")), f.name("db")+"@2.1.0 "+f.name("shop")+"@2.0.0"; got != want {
			return fmt.Errorf("locked are %s, want %s", got, want)
		}
		return nil
	})
	f.isGone(&v1alpha1.ApplicationBundle{}, strings.TrimPrefix(before.Status.Lock.Bundle, f.name("")))
}
