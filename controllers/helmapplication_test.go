// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// startCatalogue runs the controllers of HelmApplications and ApplicationBundles.
func (f *fixture) startCatalogue() {
	f.Helper()
	counted := plane.Config()
	counted.Wrap(f.count)
	mgr, reconciler := f.assemble(counted, managerOptions(), time.Minute)
	ctx, cancel := context.WithCancel(f.ctx)
	f.cancel = cancel
	f.must(setupIndexes(ctx, mgr.GetFieldIndexer()))
	f.must(reconciler.setupSeal(ctx))
	f.must((&HelmApplicationReconciler{Process: reconciler.Process}).SetupWithManager(mgr))
	f.must((&ApplicationBundleReconciler{Process: reconciler.Process}).SetupWithManager(mgr))
	go func() { f.ended <- mgr.Start(ctx) }()
	f.Cleanup(func() {
		cancel()
		f.stopped()
	})
}

// application makes a HelmApplication whose first version needs others.
func (f *fixture) application(name string, change func(*v1alpha1.HelmApplicationVersion)) *v1alpha1.HelmApplication {
	f.Helper()
	app := &v1alpha1.HelmApplication{ObjectMeta: metav1.ObjectMeta{Name: f.name(name), Labels: map[string]string{"test": f.namespace}}}
	app.Spec.Versions = []v1alpha1.HelmApplicationVersion{{
		Version: "1.0.0", ApplicationContent: v1alpha1.ApplicationContent{
			Chart: v1alpha1.ChartSource{Repository: &v1alpha1.ChartRepository{URL: "https://charts.example.com", Chart: "podinfo"}},
		},
	}}
	change(&app.Spec.Versions[0])
	f.must(f.client.Create(f.ctx, app))
	f.Cleanup(func() { f.must(client.IgnoreNotFound(f.client.Delete(f.ctx, app))) })
	return app
}

// applicationSays waits until a HelmApplication is Ready for a reason, and its
// message has some words.
func (f *fixture) applicationSays(name, reason, words string) *v1alpha1.HelmApplication {
	f.Helper()
	app := &v1alpha1.HelmApplication{}
	f.eventually(fmt.Sprintf("HelmApplication %s says %s %q", name, reason, words), func() error {
		if err := f.client.Get(f.ctx, types.NamespacedName{Name: f.name(name)}, app); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(app.Status.Conditions, v1alpha1.ReadyCondition)
		if ready == nil || ready.Reason != reason || !strings.Contains(ready.Message, words) || app.Status.ObservedGeneration != app.Generation {
			return fmt.Errorf("it is %+v", app.Status)
		}
		return nil
	})
	return app
}

// An entry of the catalogue says what is wrong with it, and is looked at again
// when that is mended elsewhere.
func TestCatalogue(t *testing.T) {
	f := newBareFixture(t)
	f.startCatalogue()
	needs := func(name string) func(*v1alpha1.HelmApplicationVersion) {
		return func(v *v1alpha1.HelmApplicationVersion) {
			v.DependsOn = []v1alpha1.ApplicationRequirement{{Name: f.name(name), Range: "^1"}}
		}
	}
	f.application("shop", needs("db"))
	f.applicationSays("shop", v1alpha1.ReasonProblems, "there is no HelmApplication "+f.name("db"))
	f.application("db", needs("disk"))
	f.applicationSays("shop", v1alpha1.ReasonPublished, "1 version, the latest is 1.0.0")
	f.applicationSays("db", v1alpha1.ReasonProblems, "there is no HelmApplication "+f.name("disk"))
	disk := f.application("disk", needs("shop"))
	for _, name := range []string{"shop", "db", "disk"} {
		f.applicationSays(name, v1alpha1.ReasonProblems, "it needs itself: "+f.name(name)+" -> ")
	}
	f.must(f.client.Delete(f.ctx, disk))
	f.applicationSays("shop", v1alpha1.ReasonPublished, "")
	f.applicationSays("db", v1alpha1.ReasonProblems, "there is no HelmApplication "+f.name("disk"))
}

// What the API server cannot see is held against what was published; a settled
// catalogue is neither read nor written.
func TestCatalogueKeepsWhatWasPublished(t *testing.T) {
	f := newSerialBareFixture(t)
	f.startCatalogue()
	values := func(raw string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(raw)} }
	f.application("shop", func(v *v1alpha1.HelmApplicationVersion) { v.Values = values(`{"replicas": 1}`) })
	app := f.applicationSays("shop", v1alpha1.ReasonPublished, "the latest is 1.0.0")
	f.settle()
	f.taken()
	app.Spec.Versions[0].Values = values(`{"replicas": 2}`)
	f.must(f.client.Update(f.ctx, app))
	app = f.applicationSays("shop", v1alpha1.ReasonContentChanged, "version 1.0.0 was published with other content")
	if !meta.IsStatusConditionTrue(app.Status.Conditions, v1alpha1.StalledCondition) || app.Status.Latest != "" {
		t.Errorf("its status is %+v", app.Status)
	}
	app.Spec.Versions[0].Values = values(`{"replicas": 1}`)
	end := metav1.NewTime(time.Now().Add(2 * time.Second).Truncate(time.Second))
	app.Spec.Versions[0].EndOfLife = &end
	f.must(f.client.Update(f.ctx, app))
	f.applicationSays("shop", v1alpha1.ReasonPublished, "none that is chosen by itself")
	if time.Now().Before(end.Time) {
		t.Errorf("its life has ended before %s", end)
	}
	requests, _ := f.taken()
	writes := slices.DeleteFunc(requests, func(r request) bool { return strings.HasPrefix(r.what, "GET ") })
	// Changed, put back with an end that is yet to come, and ended.
	if len(writes) < 2 || len(writes) > 3 {
		t.Errorf("%d writes: %v", len(writes), writes)
	}
	f.settle()
	if requests, _ := f.taken(); len(requests) > 0 {
		t.Errorf("a settled catalogue is asked for: %v", requests)
	}
}
