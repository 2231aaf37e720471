// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/platforms"
	"github.com/strata-project/strata/test/controlplane"
)

// Many Platforms of one bundle that are settled cost no request at all, however often
// they are looked at, and what happens to one of them costs the others none.
// STRATA_TEST_ALL=1 makes 200 of them.
func TestCostOfManyPlatforms(t *testing.T) {
	const period = 2 * time.Second
	count := 20
	if os.Getenv("STRATA_TEST_ALL") != "" {
		count = 200
	}
	f := newSerialBareFixture(t)
	f.startFleet(period, func(r *AddonsLayerReconciler) { r.Concurrent = 16 })
	f.bundleOf("one", "1.0.0", settings)
	name := func(i int) string { return fmt.Sprintf("p%03d", i) }
	began := time.Now()
	f.each(count, func(i int) error {
		return f.client.Create(f.ctx, &v1alpha1.Platform{
			ObjectMeta: metav1.ObjectMeta{Name: f.name(name(i)), Labels: map[string]string{"test": f.namespace}},
			Spec:       v1alpha1.PlatformSpec{Bundle: &v1alpha1.PlatformBundle{Family: f.namespace}},
		})
	})
	f.allInstalled(count)
	f.settle()
	requests, _ := f.taken()
	told, _ := requestsOf(requests, "PATCH /apis/kraan.io/v1alpha1/platforms/")
	events, _ := requestsOf(requests, "POST /apis/events.k8s.io/")
	t.Logf("%d platforms are installed after %s, with %d requests, %d of them patches of Platforms, and %d events",
		count, time.Since(began).Round(time.Millisecond), len(requests)-events, told, events)
	f.costOfAnother(count)

	looked := f.platformLooks()
	versions := 0
	f.eventually("each is looked at twice", func() error {
		requests, more := f.taken()
		if len(requests) > 0 {
			t.Fatalf("%d requests while nothing happens, such as %v", len(requests), requests[:min(5, len(requests))])
		}
		versions += more
		if looked := f.platformLooks() - looked; looked < 2*count || versions < 2 {
			return fmt.Errorf("there were %d looks at Platforms, and %d questions for the version", looked, versions)
		}
		return nil
	})

	f.patchPlatform(name(7), `{"spec":{"inputs":{"text":"other"}}}`)
	f.text(f.name(name(7)+"-last"), "text", "other")
	f.installed(name(7), "1.0.0", 3)
	f.settle()
	f.costs("a change of one Platform", f.name(name(7)))

	f.bundleOf("none", "9.0.0", settings, func(b *v1alpha1.ApplicationBundle) { b.Spec.Family += "-other" })
	f.application("other", func(*v1alpha1.HelmApplicationVersion) {})
	f.settle()
	f.costs("what is not installed", f.name("none"), f.name("other"))
}

// costOfAnother installs one more Platform of three layers, and counts what that takes:
// the layers, their objects and their statuses alone are 14 requests.
func (f *fixture) costOfAnother(there int) {
	f.Helper()
	began := time.Now()
	f.must(f.client.Create(f.ctx, &v1alpha1.Platform{
		ObjectMeta: metav1.ObjectMeta{Name: f.name("another"), Labels: map[string]string{"test": f.namespace}},
		Spec:       v1alpha1.PlatformSpec{Bundle: &v1alpha1.PlatformBundle{Family: f.namespace}},
	}))
	f.allInstalled(there + 1)
	took := time.Since(began)
	// The bundle counts it a moment later.
	f.must(controlplane.WaitFor(f.ctx, patience, func(context.Context) error {
		bundle := &v1alpha1.ApplicationBundle{}
		if err := f.client.Get(f.ctx, client.ObjectKey{Name: f.name("one")}, bundle); err != nil {
			return err
		}
		if int(bundle.Status.Platforms) != there+1 {
			return fmt.Errorf("the bundle counts %d Platforms", bundle.Status.Platforms)
		}
		return nil
	}))
	f.settle()
	requests, _ := f.taken()
	events, _ := requestsOf(requests, "POST /apis/events.k8s.io/")
	// How it gets on is told at intervals, so that a slow machine is told of more often.
	most := 20 + int(took/platforms.ProgressLag)
	if got := len(requests) - events; got > most || got < 14 {
		f.Errorf("one more Platform costs %d requests beside events, want at most %d: %v", got, most, requests)
	} else {
		f.Logf("one more Platform costs %d requests, and %d events", got, events)
	}
}

// platformLooks returns how often controllers of this process have looked at a
// Platform.
func (f *fixture) platformLooks() int {
	f.Helper()
	families, err := metrics.Registry.Gather()
	f.must(err)
	looks := 0
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if family.GetName() == "controller_runtime_reconcile_total" && label.GetName() == "controller" && label.GetValue() == "platform" {
					looks += int(metric.GetCounter().GetValue())
				}
			}
		}
	}
	return looks
}

// costs checks that the requests since the last look are all for objects whose names
// begin with one of the given.
func (f *fixture) costs(what string, names ...string) {
	f.Helper()
	requests, _ := f.taken()
	if len(requests) == 0 {
		f.Errorf("%s makes no request: the test shows nothing", what)
	}
	for _, request := range requests {
		allowed := strings.HasSuffix(request.what, "/events")
		for _, name := range names {
			allowed = allowed || strings.Contains(request.what, "/"+name)
		}
		if !allowed {
			f.Errorf("%s costs others %v", what, request)
		}
	}
	f.Logf("%s: %d requests", what, len(requests))
}

// allInstalled waits until so many Platforms of the test are well.
func (f *fixture) allInstalled(count int) {
	f.Helper()
	err := controlplane.WaitFor(f.ctx, manyPatience, func(context.Context) error {
		list := &v1alpha1.PlatformList{}
		if err := f.client.List(f.ctx, list, client.MatchingLabels{"test": f.namespace}); err != nil {
			return err
		}
		well := 0
		for i := range list.Items {
			if count := list.Items[i].Status.Clusters; count.Total == 1 && count.Ready == 1 {
				well++
			}
		}
		if well != count {
			return fmt.Errorf("%d of %d are", well, count)
		}
		return nil
	})
	if err != nil {
		f.Fatalf("all Platforms are well: %v", err)
	}
}
