// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

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

// A Platform that selects no cluster, or fewer than it is to be on, is not Ready, also after
// its last cluster has gone; a selector with a typo is not green.
func TestNoClusters(t *testing.T) {
	selects := func(label string, least *int32) func(*v1alpha1.Platform) {
		return func(p *v1alpha1.Platform) {
			p.Spec.ClusterSelector = &v1alpha1.ClusterSelector{
				LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"ring": label}}, MinClusters: least,
			}
		}
	}
	lacks := "Ready=Unknown/" + v1alpha1.ReasonNoClusters + " Reconciling=True/" + v1alpha1.ReasonNoClusters
	w := newWorld(platform("p", "", selects("one", nil)), bundle("1.0.0", "", "base"))
	if d := w.settle(t); conditionsOf(d.Status) != lacks || !strings.Contains(said(d.Status), "ring=one") {
		t.Errorf("without a cluster it is %s: %s", conditionsOf(d.Status), said(d.Status))
	}
	w.cluster("eu", map[string]string{"ring": "one"})
	if d := w.settle(t); conditionsOf(d.Status) != installed {
		t.Errorf("with a cluster it is %s: %s", conditionsOf(d.Status), said(d.Status))
	}
	selects("one", ptr.To(int32(2)))(w.Platform)
	if d := w.settle(t); conditionsOf(d.Status) != lacks || !strings.Contains(said(d.Status), "1 cluster is selected") {
		t.Errorf("with too few it is %s: %s", conditionsOf(d.Status), said(d.Status))
	}
	selects("typo", nil)(w.Platform)
	if d := w.settle(t); conditionsOf(d.Status) != lacks || len(w.Layers) != 0 {
		t.Errorf("after its last cluster has gone it is %s: %s", conditionsOf(d.Status), said(d.Status))
	}
	selects("typo", ptr.To(int32(0)))(w.Platform)
	if d := w.settle(t); conditionsOf(d.Status) != installed {
		t.Errorf("where none is right it is %s: %s", conditionsOf(d.Status), said(d.Status))
	}
}

// What is wrong with inputs is said as soon as it is written, and not once there is a cluster: the
// API server cannot know the bundle that says which inputs there are.
func TestInputsAreJudgedWithoutClusters(t *testing.T) {
	selects := func(p *v1alpha1.Platform) {
		p.Spec.ClusterSelector = &v1alpha1.ClusterSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"ring": "one"}}}
	}
	takes := withInputs(bundle("1.0.0", "", "base"), v1alpha1.BundleInput{Name: "gpu", Enum: []string{"nvidia", "amd"}}, v1alpha1.BundleInput{Name: "domain", Required: true})
	for name, tc := range map[string]struct {
		inputs    string
		overrides []v1alpha1.InputsOverride
		want      string
	}{
		"right":                 {`{"gpu": "amd", "domain": "a"}`, nil, ""},
		"no such value":         {`{"gpu": "nvidai", "domain": "a"}`, nil, `input gpu is "nvidai", and must be one of nvidia, amd`},
		"missing":               {`{"gpu": "amd"}`, nil, "input domain is required, and has no value"},
		"of an override":        {`{"domain": "a"}`, []v1alpha1.InputsOverride{overridden("1", `{"gpu": "nvidai"}`)}, "must be one of nvidia, amd"},
		"left to the overrides": {`{"gpu": "amd"}`, []v1alpha1.InputsOverride{overridden("1", `{"domain": "a"}`)}, ""},
		"no such input":         {`{"gpus": "amd", "domain": "a"}`, nil, "spec.inputs.gpus: is no input of the bundle at 1.0.0"},
	} {
		w := newWorld(platform("p", "", selects), takes)
		w.Platform.Spec.Inputs, w.Platform.Spec.Overrides = jsonOf(tc.inputs), tc.overrides
		d := w.settle(t)
		stalled := strings.Contains(conditionsOf(d.Status), "Stalled=True/"+v1alpha1.ReasonInvalidSpec)
		if stalled != (tc.want != "") || !strings.Contains(said(d.Status), tc.want) {
			t.Errorf("%s: %s: %s", name, conditionsOf(d.Status), said(d.Status))
		}
	}
}

// Names of clusters and layers can run together to one, by chance or because somebody has
// chosen them so. The layer that is there keeps its name, and the next gets another one.
func TestNamesThatRunTogether(t *testing.T) {
	eu := types.NamespacedName{Namespace: "fleet", Name: "eu"}
	for reason, tc := range map[string]struct{ layer, cluster string }{
		"by chance":  {"west-base", "eu-west"},
		"on purpose": {digestOf("fleet/eu-x", 8) + "-base", "eu-x"},
	} {
		w := newWorld(platform("p", "", on(eu.Name)), bundle("1.0.0", "", "base", tc.layer))
		w.cluster(eu.Name, nil)
		w.cluster(tc.cluster, nil)
		w.settle(t)
		before := w.names()
		on(tc.cluster)(w.Platform)
		d := w.settle(t)
		if conditionsOf(d.Status) != installed || len(w.Layers) != 4 || !strings.Contains(w.names(), strings.Split(before, " ")[0]) {
			t.Errorf("%s: %s, and there are %s after %s", reason, said(d.Status), w.names(), before)
		}
		for _, layer := range w.Layers {
			if of := layer.Labels[v1alpha1.PlatformClusterLabel]; of != "fleet."+layer.Spec.Cluster.Name {
				t.Errorf("%s: %s of %s is on %s", reason, layer.Name, of, layer.Spec.Cluster.Name)
			}
		}
	}
}

// Clusters of one name in two namespaces, and layers of somebody else, leave a layer a name
// with a digest. It keeps it when the others are gone.
func TestNamesOfOthers(t *testing.T) {
	w := newWorld(platform("p", "", on("eu")), bundle("1.0.0", "", "base"))
	w.cluster("eu", nil)
	twin := w.Clusters[types.NamespacedName{Namespace: "fleet", Name: "eu"}].DeepCopy()
	twin.Namespace = "other"
	w.Clusters[types.NamespacedName{Namespace: "other", Name: "eu"}] = twin
	w.Platform.Spec.Clusters = append(w.Platform.Spec.Clusters, v1alpha1.ClusterReference{Namespace: "other", Name: "eu"})
	w.settle(t)
	hashed := "p-eu-" + digestOf("other/eu", 8) + "-base"
	if got := w.names(); got != sorted([]string{"p-eu-base@1.0.0", hashed + "@1.0.0"})[0]+" "+sorted([]string{"p-eu-base@1.0.0", hashed + "@1.0.0"})[1] {
		t.Errorf("of two clusters eu there are %s", got)
	}
	w.Platform.Spec.Clusters = w.Platform.Spec.Clusters[1:]
	w.settle(t)
	if got := w.names(); got != hashed+"@1.0.0" {
		t.Errorf("of the second alone there is %s", got)
	}

	w = newWorld(platform("p", "", on("eu")), bundle("1.0.0", "", "base"))
	w.cluster("eu", nil)
	foreign := &v1alpha1.AddonsLayer{}
	foreign.Name = "p-eu-base"
	if !slices.Contains(Names(w.Observation), foreign.Name) {
		t.Fatalf("nobody asks for %s", foreign.Name)
	}
	w.Taken = map[string]*v1alpha1.AddonsLayer{foreign.Name: foreign}
	d := w.settle(t)
	if got := w.names(); got != "p-eu-"+digestOf("fleet/eu", 8)+"-base@1.0.0" || conditionsOf(d.Status) != installed {
		t.Errorf("beside a layer of somebody else there is %s: %s", got, said(d.Status))
	}
}
