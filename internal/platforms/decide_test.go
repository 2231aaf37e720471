// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
)

const installed = "Ready=True/" + v1alpha1.ReasonInstalled

func TestInstall(t *testing.T) {
	w := newWorld(platform("p", ""), bundle("1.0.0", "", "base", "mesh base", "apps mesh"))
	first := w.apply(t)
	if !first.StatusFirst || first.Status.Version != "1.0.0" {
		t.Errorf("the beginning of a roll-out is not stored first: %+v", first.Status)
	}
	if got, want := w.names(), "p-apps@1.0.0 p-base@1.0.0 p-mesh@1.0.0"; got != want {
		t.Errorf("the layers are %s, not %s", got, want)
	}
	d := w.settle(t)
	if got := conditionsOf(d.Status); got != installed {
		t.Errorf("the conditions are %s: %s", got, said(d.Status))
	}
	if got := w.find("p-apps").Spec.Prereqs.DependsOn; len(got) != 1 || got[0] != "p-mesh@1.0.0" {
		t.Errorf("apps depends on %v", got)
	}
}

func TestUpgradesStepByStep(t *testing.T) {
	w := newWorld(platform("p", "1.0.0"), bundle("1.0.0", "", "base", "old base"))
	w.settle(t)
	w.Bundles = append(w.Bundles, bundle("1.1.0", ">=1.0 <1.1", "base", "new base"), bundle("1.2.0", ">=1.1 <1.2", "base", "new base"))
	if d := w.settle(t); d.Status.Version != "1.0.0" || d.Status.Available != "1.2.0" {
		t.Errorf("at %s, and %s is available", d.Status.Version, d.Status.Available)
	}
	w.Platform.Spec.Bundle.Version = "1.2.0"
	w.apply(t)
	if got, want := w.names(), "-p-old@1.0.0 p-base@1.1.0 p-new@1.1.0"; got != want {
		t.Errorf("the layers are %s, not %s", got, want)
	}
	w.apply(t)
	w.engine()
	w.apply(t)
	if got, want := w.find("p-base").Spec.Version, "1.1.0"; got != want {
		t.Errorf("base went on to %s before new was deployed", got)
	}
	d := w.settle(t)
	if got, want := w.names(), "p-base@1.2.0 p-new@1.2.0"; got != want || conditionsOf(d.Status) != installed {
		t.Errorf("the layers are %s, not %s: %s", got, want, said(d.Status))
	}
}

func TestClusters(t *testing.T) {
	w := newWorld(platform("p", "", on("eu", "us")), bundle("1.0.0", "", "base"))
	w.cluster("eu", nil)
	d := w.settle(t)
	if got := d.Status.Clusters; got.Ready != 1 || got.Unreachable != 1 || got.Total != 2 {
		t.Errorf("clusters: %+v", got)
	}
	w.cluster("us", nil)
	d = w.settle(t)
	if got := d.Status.Clusters; got.Ready != 2 || conditionsOf(d.Status) != installed {
		t.Errorf("clusters: %+v: %s", got, said(d.Status))
	}
	w.Platform.Spec.Clusters = w.Platform.Spec.Clusters[:1]
	d = w.apply(t)
	if len(d.Delete) != 1 || len(w.Layers) != 2 {
		t.Errorf("of a cluster that is named no more %d layers are deleted", len(d.Delete))
	}
	if d = w.settle(t); len(w.Layers) != 1 || conditionsOf(d.Status) != installed {
		t.Errorf("the layers are %s: %s", w.names(), said(d.Status))
	}
}

// Names of clusters and layers can be chosen so that two come to one name. The one that
// is there stays as it is, and the platform says which they are.
func TestNamesThatRunTogether(t *testing.T) {
	eu := types.NamespacedName{Namespace: "fleet", Name: "eu"}
	second := types.NamespacedName{Namespace: "fleet", Name: "eu-" + digestOf(eu.String(), 8)}
	twin := digestOf(second.String(), 8) + "-base"
	if one, other := layerName("p", eu, twin), layerName("p", second, "base"); one != other {
		t.Fatalf("%s and %s are not the same", one, other)
	}
	w := newWorld(platform("p", "", on(eu.Name)), bundle("1.0.0", "", "base", twin))
	w.cluster(eu.Name, nil)
	w.cluster(second.Name, nil)
	w.settle(t)
	before := w.find(layerName("p", eu, twin)).DeepCopy()
	on(second.Name)(w.Platform)
	d := w.settle(t)
	if after := w.find(before.Name); placeOf(after) != placeOf(before) || after.Spec.Cluster.Name != eu.Name {
		t.Errorf("%s is now %s", placeOf(before), placeOf(after))
	}
	want := "layer " + twin + " of cluster fleet.eu and layer base of cluster fleet." + second.Name + " both come to AddonsLayer " + before.Name + ": rename one of them"
	if got := said(d.Status); !strings.Contains(got, want) || !strings.Contains(conditionsOf(d.Status), v1alpha1.ReasonOwnershipConflict) {
		t.Errorf("the platform says %s: %s, and not %s", conditionsOf(d.Status), got, want)
	}
}
