// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
)

// brings has a version of the ladder bring an application beside its own.
func (w *world) brings(bundle int, name, version string) {
	layer := &w.Bundles[bundle].Spec.Layers[0]
	layer.Applications = append(layer.Applications, v1alpha1.BundleApplication{Name: name, Version: version})
}

// picksOn returns what the layer of picked applications on a cluster of namespace fleet
// holds, "" for the cluster that Strata runs in; "-" where there is no such layer.
func (w *world) picksOn(cluster string) string {
	target := types.NamespacedName{}
	if cluster != "" {
		target = types.NamespacedName{Namespace: "fleet", Name: cluster}
	}
	for _, layer := range w.Layers {
		if layer.Labels[v1alpha1.PlatformClusterLabel] != clusterValue(target) || !strings.HasPrefix(layer.Labels[v1alpha1.PlatformLayerLabel], v1alpha1.PickedLayerPrefix) {
			continue
		}
		at := slices.IndexFunc(w.Bundles, func(b *v1alpha1.ApplicationBundle) bool { return b.Name == layer.Spec.Source.Name })
		if at < 0 {
			return "a bundle that is not there"
		}
		var names []string
		for _, application := range w.Bundles[at].Spec.Layers[0].Applications {
			names = append(names, application.Name)
		}
		return strings.Join(names, " ")
	}
	return "-"
}

// stages has the clusters c0 and c1, one after the other, and the second when somebody
// approves; 1.0.0 is approved.
func (w *world) stages() {
	for _, name := range []string{"c0", "c1"} {
		w.cluster(name, map[string]string{"ring": name})
	}
	w.Platform.Spec.Rollout.Stages = []v1alpha1.RolloutStage{
		{Name: "first", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"ring": "c0"}}},
		{Name: "second", Approval: true},
	}
	w.Platform.Annotations = map[string]string{v1alpha1.ApproveAnnotation: "second@1.0.0"}
}

// What the bundle brings counts as chosen: it is not installed again, and what is picked
// fits it.
func TestWhatTheBundleBringsCountsAsChosen(t *testing.T) {
	w := picked(picks("shop"))
	w.brings(0, "db", "1.0.0")
	d := w.settle(t)
	if conditionsOf(d.Status) != installed || locked(d.Status) != "shop@1.0.0" || w.picksOn("") != "shop" {
		t.Errorf("locked are %s, installed %s: %s", locked(d.Status), w.picksOn(""), said(d.Status))
	}

	// The very application that is picked: nothing is left to install.
	w = picked(picks("db@1.x"))
	w.brings(0, "db", "1.0.0")
	d = w.settle(t)
	if conditionsOf(d.Status) != installed || locked(d.Status) != "" || w.picksOn("") != "-" || len(w.made()) > 0 {
		t.Errorf("locked are %s, installed %s, %d bundles are made: %s", locked(d.Status), w.picksOn(""), len(w.made()), said(d.Status))
	}
}

// One that is picked for a namespace of its own is beside it, with values of its own. Values
// for what is there have no effect, and are complained of.
func TestAPickForANamespaceOfItsOwnIsBesideWhatIsThere(t *testing.T) {
	for namespace, want := range map[string]string{"own": "db", "db": "-", "": "-"} {
		w := picked(picks("db"))
		w.brings(0, "db", "1.0.0")
		w.Platform.Spec.Applications[0].Namespace = namespace
		d := w.settle(t)
		if conditionsOf(d.Status) != installed || w.picksOn("") != want {
			t.Errorf("namespace %q: installed %s: %s", namespace, w.picksOn(""), said(d.Status))
		}
		w.Platform.Spec.Applications[0].Values = jsonOf(`{"a":1}`)
		d = w.settle(t)
		complains := strings.Contains(said(d.Status), "the values of db have no effect; bundle base-1-0-0 brings db 1.0.0: give them there")
		if complains != (want == "-") || (conditionsOf(d.Status) == installed) == complains {
			t.Errorf("values, namespace %q: %s: %s", namespace, conditionsOf(d.Status), said(d.Status))
		}
	}
}

func TestWhatDoesNotFitWhatTheBundleBringsIsToldOf(t *testing.T) {
	for name, pick := range map[string]string{"a dependency": "shop", "the pick itself": "db@<2"} {
		w := picked(picks(pick))
		w.Catalogue["db"] = application("db", "1.0.0", "2.0.0")
		w.brings(0, "db", "2.0.0")
		d := w.settle(t)
		if conditionsOf(d.Status) != "Ready=False/Unsatisfiable Stalled=True/Unsatisfiable" || !strings.Contains(said(d.Status), "; bundle base-1-0-0 brings db 2.0.0") || w.picksOn("") != "-" {
			t.Errorf("%s: %s: %s", name, conditionsOf(d.Status), said(d.Status))
		}
	}
}

// A version of the bundle that brings what was picked before takes it over, cluster by
// cluster, as the roll-out goes.
func TestAVersionThatBringsWhatWasPickedTakesItOver(t *testing.T) {
	w := picked(picks("shop"), on("c0", "c1"))
	w.brings(1, "db", "1.0.0")
	w.stages()
	if d := w.settle(t); w.picksOn("c0") != "db shop" || w.picksOn("c1") != "db shop" || conditionsOf(d.Status) != installed {
		t.Fatalf("%s and %s: %s", w.picksOn("c0"), w.picksOn("c1"), said(d.Status))
	}
	w.Platform.Spec.Bundle.Version = "1.1.0"
	d := w.settle(t)
	if w.versionsOf() == "" || w.picksOn("c0") != "shop" || w.picksOn("c1") != "db shop" || locked(d.Status) != "db@1.0.0 shop@1.0.0" {
		t.Errorf("half way: %s and %s, locked are %s: %s", w.picksOn("c0"), w.picksOn("c1"), locked(d.Status), said(d.Status))
	}
	for _, made := range w.made() {
		if problems := bundles.Check(made, w.Catalogue); len(problems) > 0 {
			t.Errorf("%s cannot be installed: %v", made.Name, problems)
		}
	}
	w.Platform.Annotations = map[string]string{v1alpha1.ApproveAnnotation: "second@1.1.0"}
	d = w.settle(t)
	if w.picksOn("c0") != "shop" || w.picksOn("c1") != "shop" || locked(d.Status) != "shop@1.0.0" || conditionsOf(d.Status) != installed || len(w.made()) != 1 {
		t.Errorf("in the end: %s and %s, locked are %s, %d bundles: %s", w.picksOn("c0"), w.picksOn("c1"), locked(d.Status), len(w.made()), said(d.Status))
	}
}

// Where clusters have several versions, what is picked fits them all.
func TestSeveralVersionsThatTheBundleBringsMustFit(t *testing.T) {
	w := picked(picks("shop"), on("c0", "c1"))
	w.Catalogue["db"] = application("db", "1.0.0", "1.1.0", "2.0.0")
	w.Catalogue["shop"] = application("shop", "1.0.0 db@1.0.x", "1.1.0 db@1.x")
	w.brings(0, "db", "1.0.0")
	w.brings(1, "db", "1.1.0")
	w.stages()
	w.settle(t)
	w.Platform.Spec.Bundle.Version = "1.1.0"
	if d := w.settle(t); locked(d.Status) != "shop@1.1.0" {
		t.Errorf("locked are %s: %s", locked(d.Status), said(d.Status))
	}
	w.Platform.Spec.Applications[0].Version = "1.0.0"
	d := w.settle(t)
	if conditionsOf(d.Status) != "Ready=False/Unsatisfiable Stalled=True/Unsatisfiable" || !strings.Contains(said(d.Status), "bundle base-1-1-0 brings db 1.1.0") || locked(d.Status) != "shop@1.1.0" {
		t.Errorf("locked are %s, %s: %s", locked(d.Status), conditionsOf(d.Status), said(d.Status))
	}
}

// theirs is a layer of a bundle that is not the platform's.
func (w *world) theirs(name, path, cluster string, bundle *v1alpha1.ApplicationBundle) *v1alpha1.AddonsLayer {
	layer := &v1alpha1.AddonsLayer{}
	layer.Name, layer.CreationTimestamp = name, metav1.NewTime(testNow)
	layer.Spec.Version = bundle.Spec.Version
	layer.Spec.Source = v1alpha1.SourceSpec{Kind: v1alpha1.ApplicationBundleKind, Name: bundle.Name, Path: "./" + path}
	if cluster != "" {
		layer.Spec.Cluster = &v1alpha1.ClusterReference{Namespace: "fleet", Name: cluster}
	}
	w.Others = append(w.Others, layer)
	return layer
}

// otherBundle is of another family, with one layer of one application.
func otherBundle(name, application, version string) *v1alpha1.ApplicationBundle {
	b := &v1alpha1.ApplicationBundle{Spec: v1alpha1.ApplicationBundleSpec{Family: "other", Version: "1.0.0"}}
	b.Name = name
	b.Spec.Layers = []v1alpha1.BundleLayer{{Name: "apps", Applications: []v1alpha1.BundleApplication{{Name: application, Version: version}}}}
	return b
}

// What others have put on a cluster counts as chosen there, too, and comes before what
// needs it. What is being deleted brings nothing new, and stays as long as it is needed.
func TestWhatOthersBringCountsAsChosen(t *testing.T) {
	w := picked(picks("shop"), on("c0", "c1"))
	w.cluster("c0", nil)
	w.cluster("c1", nil)
	other := otherBundle("other", "db", "1.0.0")
	w.Bundles = append(w.Bundles, other)
	theirs := w.theirs("their-db", "apps", "c0", other)
	d := w.settle(t)
	if w.picksOn("c0") != "shop" || w.picksOn("c1") != "db shop" || locked(d.Status) != "db@1.0.0 shop@1.0.0" {
		t.Errorf("%s and %s, locked are %s: %s", w.picksOn("c0"), w.picksOn("c1"), locked(d.Status), said(d.Status))
	}
	after := func(cluster string) bool {
		name := layerName("p", types.NamespacedName{Namespace: "fleet", Name: cluster}, v1alpha1.PickedLayerPrefix+appsLayer)
		return slices.Contains(w.find(name).Spec.Prereqs.DependsOn, "their-db")
	}
	if !after("c0") || after("c1") {
		t.Errorf("it waits for what others bring: %t and %t", after("c0"), after("c1"))
	}
	theirs.DeletionTimestamp = &metav1.Time{Time: testNow}
	w.settle(t)
	if w.picksOn("c0") != "shop" || !after("c0") {
		t.Errorf("when theirs is to go, and is needed: %s", w.picksOn("c0"))
	}
	w.cluster("c2", nil)
	on("c2")(w.Platform)
	going := w.theirs("going", "apps", "c2", other)
	going.DeletionTimestamp = &metav1.Time{Time: testNow}
	w.settle(t)
	if w.picksOn("c2") != "db shop" {
		t.Errorf("what is going brings nothing new: %s", w.picksOn("c2"))
	}

	other.Spec.Layers[0].Applications[0].Version = "2.0.0"
	theirs.DeletionTimestamp = nil
	if d = w.settle(t); !strings.Contains(said(d.Status), "AddonsLayer their-db brings db 2.0.0") {
		t.Errorf("%s: %s", conditionsOf(d.Status), said(d.Status))
	}
}

// Of two Platforms that have picked the same application, the older layer keeps it.
func TestOfTwoThatPickTheSameTheOlderKeepsIt(t *testing.T) {
	for name, test := range map[string]struct {
		age  time.Duration
		want string
	}{"ours is older": {time.Hour, "db shop"}, "theirs is older": {-time.Hour, "shop"}} {
		w := picked(picks("shop"))
		w.settle(t)
		for _, layer := range w.Layers {
			layer.CreationTimestamp = metav1.NewTime(testNow)
		}
		other := otherBundle("other", "db", "1.0.0")
		w.Bundles = append(w.Bundles, other)
		theirs := w.theirs("q-picked.applications", "apps", "", other)
		theirs.CreationTimestamp = metav1.NewTime(testNow.Add(test.age))
		theirs.Labels = map[string]string{v1alpha1.PlatformLabel: "q", v1alpha1.PlatformLayerLabel: v1alpha1.PickedLayerPrefix + appsLayer}
		d := w.settle(t)
		if w.picksOn("") != test.want || conditionsOf(d.Status) != installed {
			t.Errorf("%s: it has %s: %s", name, w.picksOn(""), said(d.Status))
		}
		if slices.Contains(w.find("p-picked.applications").Spec.Prereqs.DependsOn, theirs.Name) {
			t.Errorf("%s: it waits for what another Platform has picked", name)
		}
	}
}
