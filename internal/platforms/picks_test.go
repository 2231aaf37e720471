// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
)

// picks picks applications written as name@range.
func picks(written ...string) func(*v1alpha1.Platform) {
	return func(p *v1alpha1.Platform) {
		p.Spec.Applications = nil
		for _, text := range written {
			name, within, _ := strings.Cut(text, "@")
			p.Spec.Applications = append(p.Spec.Applications, v1alpha1.PlatformApplication{Name: name, Version: within})
		}
	}
}

func picked(changes ...func(*v1alpha1.Platform)) *world {
	w := newWorld(platform("p", "1.0.0", changes...), ladder()...)
	w.Catalogue["shop"] = application("shop", "1.0.0 db@1.x")
	w.Catalogue["db"] = application("db", "1.0.0")
	w.Catalogue["old"] = application("old", "1.0.0 db@0.x")
	return w
}

// locked returns what is in the lock.
func locked(status v1alpha1.PlatformStatus) string {
	if status.Lock == nil {
		return ""
	}
	var all []string
	for _, one := range status.Lock.Applications {
		all = append(all, one.Name+"@"+one.Version)
	}
	return strings.Join(all, " ")
}

// made returns the bundles that were made for platforms.
func (w *world) made() []*v1alpha1.ApplicationBundle {
	var all []*v1alpha1.ApplicationBundle
	for _, b := range w.Bundles {
		if b.Labels[v1alpha1.PlatformLabel] != "" {
			all = append(all, b)
		}
	}
	return all
}

func TestPicks(t *testing.T) {
	w := picked(picks("shop"))
	w.Platform.Spec.Applications[0].Namespace, w.Platform.Spec.Applications[0].Values = "shop", jsonOf(`{"a":1}`)
	d := w.apply(t)
	if got, want := locked(d.Status), "db@1.0.0 shop@1.0.0"; got != want || !d.StatusFirst || len(d.Bundles) != 1 {
		t.Errorf("locked are %s, not %s, status first: %v", got, want, d.StatusFirst)
	}
	made := d.Bundles[0]
	if problems := bundles.Check(made, w.Catalogue); len(problems) > 0 {
		t.Errorf("the bundle that was made cannot be installed: %v", problems)
	}
	shop := made.Spec.Layers[0].Applications[1]
	if shop.Name != "shop" || !slices.Equal(shop.DependsOn, []string{"db"}) || shop.Namespace != "shop" || string(shop.Values.Raw) != `{"a":1}` {
		t.Errorf("shop is %+v", shop)
	}
	if !metav1.IsControlledBy(made, w.Platform) || made.OwnerReferences[0].BlockOwnerDeletion != nil || made.Name != d.Status.Lock.Bundle {
		t.Errorf("the bundle is %+v", made.ObjectMeta)
	}
	layer := w.find("p-picked.applications")
	if got := layer.Spec.Prereqs.DependsOn; !slices.Equal(got, []string{"p-apps", "p-base"}) || layer.Spec.Source.Path != "./applications" {
		t.Errorf("the layer is %+v", layer.Spec)
	}
	if d = w.settle(t); conditionsOf(d.Status) != installed || d.StatusFirst {
		t.Errorf("%s: %s", conditionsOf(d.Status), said(d.Status))
	}
	w.Platform.Spec.Applications = nil
	if d = w.settle(t); w.names() != "p-apps@1.0.0 p-base@1.0.0" || len(w.made()) > 0 || d.Status.Lock != nil {
		t.Errorf("without picks there are %s, and %d bundles", w.names(), len(w.made()))
	}
}

func TestPicksAlone(t *testing.T) {
	w := picked(picks("shop"), func(p *v1alpha1.Platform) { p.Spec.Bundle = nil })
	d := w.settle(t)
	if got := d.Status; conditionsOf(got) != installed || got.Clusters.Ready != 1 || got.Layers.Deployed != 1 || got.Rollout != nil {
		t.Errorf("%s: %s: %+v", conditionsOf(got), said(got), got)
	}
	if got, want := said(d.Status), "1 layer is deployed"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

func TestBundleIsTakenAway(t *testing.T) {
	w := picked(picks("shop"))
	w.settle(t)
	w.Platform.Spec.Bundle = nil
	d := w.settle(t)
	if len(w.Layers) != 1 || conditionsOf(d.Status) != installed || len(w.Layers[0].Spec.Prereqs.DependsOn) > 0 {
		t.Errorf("%s: %s", w.names(), said(d.Status))
	}
}

func TestLockStays(t *testing.T) {
	w := picked(picks("shop"))
	w.settle(t)
	w.Catalogue["shop"], w.Catalogue["db"] = application("shop", "1.0.0 db@1.x", "1.1.0 db@1.x"), application("db", "1.0.0", "1.2.0")
	if d := w.settle(t); locked(d.Status) != "db@1.0.0 shop@1.0.0" || len(d.Bundles) > 0 {
		t.Errorf("a new version in the catalogue changes the lock: %s", locked(d.Status))
	}
	w.Platform.Spec.Applications[0].Values = jsonOf(`{"b": 2}`)
	if d := w.apply(t); locked(d.Status) != "db@1.0.0 shop@1.0.0" || len(d.Bundles) != 1 || !d.StatusFirst || len(d.DeleteBundles) > 0 {
		t.Errorf("other values: %s, %d bundles", locked(d.Status), len(d.Bundles))
	}
	w.settle(t)
	if len(w.made()) != 1 {
		t.Errorf("there are %d bundles", len(w.made()))
	}
	delete(w.Catalogue, "db")
	if d := w.settle(t); len(w.made()) != 1 || locked(d.Status) != "db@1.0.0 shop@1.0.0" {
		t.Errorf("what leaves the catalogue changes the lock: %s", locked(d.Status))
	}
	w.Catalogue["db"] = application("db", "1.0.0", "1.2.0")
	picks("shop", "db@>=1.1")(w.Platform)
	if d := w.settle(t); locked(d.Status) != "db@1.2.0 shop@1.0.0" || conditionsOf(d.Status) != installed {
		t.Errorf("other picks: %s: %s", locked(d.Status), said(d.Status))
	}
}

func TestUnsatisfiablePicksKeepTheOldLock(t *testing.T) {
	w := picked(picks("shop"))
	w.settle(t)
	picks("shop", "old")(w.Platform)
	d := w.settle(t)
	if got, want := conditionsOf(d.Status), "Ready=False/Unsatisfiable Stalled=True/Unsatisfiable"; got != want || locked(d.Status) != "db@1.0.0 shop@1.0.0" || w.find("p-picked.applications") == nil {
		t.Errorf("%s: %s: %s", got, locked(d.Status), said(d.Status))
	}
	if got := said(d.Status); !strings.Contains(got, "old 1.0.0") || !strings.HasPrefix(got, "spec.applications: no versions fit together") {
		t.Errorf("it is not said why: %s", got)
	}
}

func TestAutoUpgradesPicksWithinWindows(t *testing.T) {
	w := picked(picks("shop"), auto)
	w.settle(t)
	w.Platform.Spec.Upgrade.MaintenanceWindows = []v1alpha1.UpgradeWindow{{Start: "22:00", Duration: metav1.Duration{Duration: time.Hour}}}
	w.Catalogue["db"] = application("db", "1.0.0", "1.2.0", "2.0.0")
	d := w.apply(t)
	opens := time.Date(2026, 3, 4, 22, 0, 0, 0, time.UTC)
	if locked(d.Status) != "db@1.0.0 shop@1.0.0" || !d.Until.Equal(opens) {
		t.Errorf("outside a window: %s, until %s", locked(d.Status), d.Until)
	}
	w.Now = opens
	if d := w.apply(t); locked(d.Status) != "db@1.2.0 shop@1.0.0" {
		t.Errorf("in a window: %s: %s", locked(d.Status), said(d.Status))
	}
}

func TestPicksFitAllClusters(t *testing.T) {
	w := picked(picks("db"), on("a", "b", "c"))
	app := application("db", "1.0.0", "1.1.0")
	app.Spec.Versions[1].KubeVersion = ">=1.31"
	w.Catalogue["db"] = app
	w.cluster("a", nil)
	w.cluster("b", nil).Status.Version = "v1.30.1"
	w.cluster("c", nil).Status.Version = ""
	if d := w.apply(t); locked(d.Status) != "db@1.0.0" {
		t.Errorf("chosen is %s", locked(d.Status))
	}
}

func TestManyPicks(t *testing.T) {
	w := picked()
	var names []string
	for i := range 60 {
		name := fmt.Sprintf("app%02d", i)
		needs := "1.0.0"
		if i > 0 {
			needs += fmt.Sprintf(" app%02d@1.x", i-1)
		}
		w.Catalogue[name] = application(name, needs)
		names = append(names, name)
	}
	picks(names[59])(w.Platform)
	d := w.settle(t)
	made := w.made()
	if problems := bundles.Check(made[0], w.Catalogue); len(problems) > 0 || len(made[0].Spec.Layers) != 2 {
		t.Errorf("%d layers, %v", len(made[0].Spec.Layers), problems)
	}
	if conditionsOf(d.Status) != installed || w.find("p-picked.applications-2") == nil {
		t.Errorf("%s: %s", w.names(), said(d.Status))
	}
}

// TestStatusDoesNotGrow has a fleet in which everything is wrong. What a look at it costs grows
// as the fleet does.
func TestStatusDoesNotGrow(t *testing.T) {
	look := func(clusters int) (d Decision, allocated uint64) {
		w := picked(picks("shop"))
		for i := range clusters {
			name := fmt.Sprintf("c%03d", i)
			w.cluster(name, nil)
			w.answers(name, i%2 == 0)
			on(name)(w.Platform)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		d = w.apply(t)
		runtime.ReadMemStats(&after)
		return d, after.Mallocs - before.Mallocs
	}
	_, few := look(100)
	d, many := look(300)
	if many > 4*few {
		t.Errorf("a look at 300 clusters allocates %d times, and one at 100 of them %d times", many, few)
	}
	t.Logf("a look at 300 clusters allocates %d times, and one at 100 of them %d times", many, few)
	if len(d.Status.Worst) != mostWorst || d.Status.Clusters.Total != 300 || len(said(d.Status)) > maxMessage {
		t.Errorf("%+v", d.Status)
	}
}
