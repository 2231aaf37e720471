// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
)

var meshInput = v1alpha1.BundleInput{Name: "mesh", Type: v1alpha1.InputBoolean}

func TestWhenGoesOffAndOn(t *testing.T) {
	b := withInputs(bundle("1.0.0", "", "base", "mesh base when:inputs.mesh", "apps mesh"), meshInput)
	w := newWorld(platform("p", "", inputs(`{"mesh": true}`)), b)
	w.settle(t)
	inputs(`{"mesh": false}`)(w.Platform)
	d := w.apply(t)
	if len(d.Delete) != 1 || d.Delete[0].Name != "p-mesh" {
		t.Errorf("%d layers are deleted", len(d.Delete))
	}
	if got := w.find("p-apps").Spec.Prereqs.DependsOn; !slices.Equal(got, []string{"p-base@1.0.0"}) {
		t.Errorf("without mesh apps depends on %v", got)
	}
	// It is wanted again before it is gone: it is made anew when it is.
	inputs(`{"mesh": true}`)(w.Platform)
	w.Platform.Spec.ServiceAccountName = "other"
	if d := w.apply(t); len(d.Write) != 2 || len(d.Delete) > 0 {
		t.Errorf("%d layers are written: those that are not being deleted are", len(d.Write))
	}
	if got, want := w.names(), "-p-mesh@1.0.0 p-apps@1.0.0 p-base@1.0.0"; got != want {
		t.Errorf("the layers are %s, not %s", got, want)
	}
	inputs(`{"mesh": false}`)(w.Platform)
	w.settle(t)
	inputs(`{"mesh": true}`)(w.Platform)
	w.settle(t)
	if got, want := w.names(), "p-apps@1.0.0 p-base@1.0.0 p-mesh@1.0.0"; got != want {
		t.Errorf("the layers are %s, not %s", got, want)
	}
}

func TestWhenIsUnknown(t *testing.T) {
	b := bundle("1.0.0", "", "base", `mesh base when:cluster.version.contains("31")`, "apps mesh")
	w := newWorld(platform("p", ""), b)
	w.Version = ""
	d := w.settle(t)
	if got, want := w.names(), "p-apps@1.0.0 p-base@1.0.0"; got != want {
		t.Errorf("the layers are %s, not %s", got, want)
	}
	if got := w.find("p-apps").Spec.Prereqs.DependsOn; !slices.Equal(got, []string{"p-mesh@1.0.0"}) {
		t.Errorf("apps does not wait for mesh: %v", got)
	}
	if got := said(d.Status); !strings.Contains(got, "waits for the version of the cluster") {
		t.Errorf("what is waited for is not said: %s", got)
	}
	w.Version = "v1.31.0"
	w.settle(t)
	w.Version = ""
	if d := w.apply(t); len(d.Write)+len(d.Delete) > 0 || w.find("p-mesh") == nil {
		t.Errorf("a layer is touched of which it is not known whether it is wanted")
	}
}

func TestPeopleKeepWhatTheyOwn(t *testing.T) {
	w := newWorld(platform("p", "", func(p *v1alpha1.Platform) {
		p.Labels = map[string]string{"team": "infra", "app.kubernetes.io/managed-by": "Helm", "kustomize.toolkit.fluxcd.io/name": "x"}
	}), bundle("1.0.0", "", "base"))
	w.settle(t)
	layer := w.find("p-base")
	want := map[string]string{
		"team": "infra", v1alpha1.PlatformLabel: "p", v1alpha1.PlatformClusterLabel: "", v1alpha1.PlatformLayerLabel: "base", v1alpha1.PlatformFamilyLabel: "base",
	}
	if diff := cmp.Diff(want, layer.Labels); diff != "" {
		t.Errorf("labels: %s", diff)
	}
	hour := &metav1.Duration{Duration: time.Hour}
	layer.Spec.Hold, layer.Spec.Interval, layer.Spec.OrphanGrace, layer.Spec.Rollback = true, hour, hour, true
	layer.Annotations["mine"], layer.Labels["mine"] = "yes", "yes"
	layer.Spec.Inputs.Raw = []byte(`{ }`)
	if d := w.apply(t); len(d.Write) > 0 {
		t.Errorf("what people own is written: %+v", d.Write[0])
	}
	layer.Spec.ServiceAccountName = "somebody"
	d := w.apply(t)
	got := w.find("p-base")
	if len(d.Write) != 1 || got.Spec.ServiceAccountName != "" || !got.Spec.Hold || got.Spec.Interval == nil || got.Annotations["mine"] != "yes" || got.Labels["mine"] != "yes" {
		t.Errorf("the layer is %+v %+v", got.ObjectMeta, got.Spec)
	}
}

func TestOwnershipConflict(t *testing.T) {
	w := newWorld(platform("p", ""), bundle("1.0.0", "", "base", "apps base"))
	if got := Names(w.Observation); !slices.Equal(got, []string{"p-apps", "p-base"}) {
		t.Errorf("the names are %v", got)
	}
	w.Taken = map[string]*v1alpha1.AddonsLayer{"p-base": {}}
	d := w.apply(t)
	if got := conditionsOf(d.Status); got != "Ready=False/OwnershipConflict Stalled=True/OwnershipConflict" || !strings.Contains(said(d.Status), "AddonsLayer p-base") {
		t.Errorf("the conditions are %s: %s", got, said(d.Status))
	}
	if got, want := w.names(), "p-apps@1.0.0"; got != want {
		t.Errorf("the layers are %s, not %s", got, want)
	}
}

func TestSomebodysLayerIsNotDeleted(t *testing.T) {
	w := newWorld(platform("p", ""), bundle("1.0.0", "", "base"))
	other := &v1alpha1.AddonsLayer{}
	other.Name, other.Labels = "other", map[string]string{v1alpha1.PlatformLabel: "p"}
	w.Layers = []*v1alpha1.AddonsLayer{other}
	d := w.apply(t)
	w.Platform.DeletionTimestamp = &metav1.Time{Time: w.Now}
	if gone := w.apply(t); len(d.Delete) > 0 || slices.ContainsFunc(gone.Delete, func(l *v1alpha1.AddonsLayer) bool { return l.Name == "other" }) {
		t.Error("a layer is deleted that somebody has labelled")
	}
}

func TestHold(t *testing.T) {
	w := newWorld(platform("p", "1.0.0"), bundle("1.0.0", "", "base"), bundle("1.1.0", "1.0.x", "base"))
	w.settle(t)
	w.Platform.Spec.Hold, w.Platform.Spec.Bundle.Version = true, "1.1.0"
	w.Platform.Spec.Applications = []v1alpha1.PlatformApplication{{Name: "app"}}
	d := w.apply(t)
	if got, want := conditionsOf(d.Status), "Ready=Unknown/Hold Held=True/Hold"; got != want || w.names() != "p-base@1.0.0" || d.StatusFirst || len(d.Bundles) > 0 {
		t.Errorf("%s %s", got, w.names())
	}
	w.Platform.DeletionTimestamp = &metav1.Time{Time: w.Now}
	if d := w.apply(t); len(d.Delete) != 1 {
		t.Error("a hold stops the deletion")
	}
}

func TestInputsPrecedence(t *testing.T) {
	text := func(name string) v1alpha1.BundleInput { return v1alpha1.BundleInput{Name: name} }
	fallback := text("d")
	fallback.Default = jsonOf(`"default"`)
	b := withInputs(bundle("1.0.0", "", "base"), text("a"), text("b"), text("c"), fallback, v1alpha1.BundleInput{Name: "n", Type: v1alpha1.InputInteger})
	w := newWorld(platform("p", "", inputs(`{"a": "own"}`), func(p *v1alpha1.Platform) {
		p.Spec.InputsFrom = []v1alpha1.InputsReference{{Name: "one"}, {Name: "two", Namespace: "other"}, {Name: "three", Optional: true}}
	}), b)
	w.ConfigMaps[types.NamespacedName{Namespace: "strata-system", Name: "one"}] = map[string]string{"a": "one", "b": "one", "c": "one", "n": "7"}
	d := w.apply(t)
	if got := conditionsOf(d.Status); got != "Ready=Unknown/InputsNotFound Reconciling=True/InputsNotFound" || len(d.Write) > 0 {
		t.Errorf("a ConfigMap is missing, and it is %s: %s", got, said(d.Status))
	}
	other := types.NamespacedName{Namespace: "other", Name: "two"}
	w.ConfigMaps[other] = map[string]string{"b": "two"}
	w.settle(t)
	if got, want := string(w.find("p-base").Spec.Inputs.Raw), `{"a":"own","b":"two","c":"one","d":"default","n":7}`; got != want {
		t.Errorf("the inputs are %s, not %s", got, want)
	}
	for _, test := range []struct {
		reason, raw, want string
		err               error
	}{
		{"one that no version has", `{"x": 1}`, "Ready=False/InvalidSpec Stalled=True/InvalidSpec", nil},
		{"one of another type", `{"n": "seven"}`, "Ready=False/InvalidSpec Stalled=True/InvalidSpec", nil},
		{"a ConfigMap that cannot be read", `{}`, "Ready=Unknown/InputsNotFound Reconciling=True/InputsNotFound", errors.New("forbidden")},
	} {
		inputs(test.raw)(w.Platform)
		w.ConfigMapErrors = map[types.NamespacedName]error{other: test.err}
		d := w.apply(t)
		if got := conditionsOf(d.Status); got != test.want {
			t.Errorf("%s: %s: %s", test.reason, got, said(d.Status))
		}
		if test.err == nil && !strings.Contains(said(d.Status), "spec.inputs") {
			t.Errorf("%s: the field is not named: %s", test.reason, said(d.Status))
		}
		if test.reason != "one that no version has" && len(d.Write)+len(d.Delete) > 0 {
			t.Errorf("%s: layers are touched", test.reason)
		}
	}
}

func TestDeletion(t *testing.T) {
	w := newWorld(platform("p", ""), bundle("1.0.0", "", "base", "apps base"))
	w.settle(t)
	w.Bundles, w.Catalogue = nil, nil
	w.Platform.DeletionTimestamp = &metav1.Time{Time: w.Now}
	w.Platform.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan
	w.Platform.Spec.ClusterSelector = &v1alpha1.ClusterSelector{LabelSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Operator: "wrong"}}}}
	d := w.apply(t)
	if len(d.Write) != 2 || d.Write[0].Spec.DeletionPolicy != v1alpha1.DeletionPolicyOrphan || len(d.Delete) != 2 || d.Gone {
		t.Errorf("%d written, %d deleted, gone: %v", len(d.Write), len(d.Delete), d.Gone)
	}
	d = w.apply(t)
	if got := said(d.Status); !strings.Contains(got, "waits for 2 layers to be removed: p-apps (") || d.Gone || len(d.Write)+len(d.Delete) > 0 {
		t.Errorf("%s", got)
	}
	w.engine()
	w.engine()
	if d = w.apply(t); !d.Gone {
		t.Errorf("nothing is left: %s", said(d.Status))
	}
}

func TestDeleteAfter(t *testing.T) {
	w := newWorld(platform("p", "", inputs(`{"mesh": true}`)), withInputs(bundle("1.0.0", "", "cni after:apps,mesh", "apps cni", "mesh apps when:inputs.mesh"), meshInput))
	if d := w.settle(t); conditionsOf(d.Status) != installed {
		t.Fatal(said(d.Status))
	}
	if got := w.find("p-cni").Spec.TeardownAfter; !slices.Equal(got, []string{"p-apps", "p-mesh"}) {
		t.Errorf("cni is deleted after %v", got)
	}
	inputs(`{"mesh": false}`)(w.Platform)
	w.settle(t)
	if got := w.find("p-cni").Spec.TeardownAfter; !slices.Equal(got, []string{"p-apps"}) {
		t.Errorf("without mesh cni is deleted after %v", got)
	}
	first := newWorld(platform("p", ""), bundle("1.0.0", "", "cni", "apps cni after:cni"))
	first.Bundles[0].Spec.Layers[0].TeardownAfter = []string{}
	first.settle(t)
	if got := first.find("p-cni").Spec.TeardownAfter; !slices.Equal(got, []string{"p-cni"}) {
		t.Errorf("what goes first is deleted after %v, and so after what depends on it", got)
	}
}

// What is deployed and not well keeps the cluster from going on, and fails it.
func TestLayerThatIsNotWell(t *testing.T) {
	w := newWorld(platform("p", ""), bundle("1.0.0", "", "base"))
	w.settle(t)
	layer := w.find("p-base").DeepCopy()
	layer.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Message: "is deployed; Deployment a/b is not ready"},
		{Type: v1alpha1.HealthyCondition, Status: metav1.ConditionFalse},
	}
	w.Layers = []*v1alpha1.AddonsLayer{layer}
	d := w.apply(t)
	if d.Status.Clusters.Failed != 1 || d.Status.Layers.Deployed != 1 || !strings.Contains(said(d.Status), "layer p-base is not well: is deployed; Deployment a/b is not ready") {
		t.Errorf("%+v: %s", d.Status.Clusters, said(d.Status))
	}
}

func TestLayerTemplate(t *testing.T) {
	b := bundle("1.0.0", "", "base", "data base")
	b.Spec.Layers[1].Timeout = &metav1.Duration{Duration: time.Hour}
	w := newWorld(platform("p", ""), b)
	w.settle(t)
	people := w.find("p-base").DeepCopy()
	people.Spec.OrphanGrace, people.Spec.Interval = &metav1.Duration{Duration: 7}, &metav1.Duration{Duration: 8}
	w.put(t, people)
	releases := &v1alpha1.ReleaseSettings{DriftDetection: v1alpha1.DriftDetectionWarn}
	w.Platform.Spec.LayerTemplate = &v1alpha1.LayerTemplate{
		Labels: map[string]string{"team": "edge", "helm.sh/chart": "x"}, Interval: &metav1.Duration{Duration: 1}, Timeout: &metav1.Duration{Duration: 2},
		Releases: releases,
	}
	w.settle(t)
	got := w.find("p-base")
	if got.Spec.Interval.Duration != 1 || got.Spec.OrphanGrace.Duration != 7 || got.Spec.Timeout.Duration != 2 || *got.Spec.Releases != *releases {
		t.Errorf("the layer is %+v", got.Spec)
	}
	if got.Labels["team"] != "edge" || got.Labels["helm.sh/chart"] != "" || got.Spec.CommonMetadata.Labels["team"] != "edge" || len(got.Spec.CommonMetadata.Labels) != 1 {
		t.Errorf("its labels are %v, and of its objects %v", got.Labels, got.Spec.CommonMetadata)
	}
	if got := w.find("p-data").Spec.Timeout.Duration; got != time.Hour {
		t.Errorf("the bundle's timeout is now %s", got)
	}
}

func TestInputsThatTheirSchemaForbids(t *testing.T) {
	pools := v1alpha1.BundleInput{Name: "pools", Type: v1alpha1.InputArray, Schema: jsonOf(`{"items": {"type": "object", "required": ["name"]}}`)}
	w := newWorld(platform("p", "", inputs(`{"pools": [{}]}`)), withInputs(bundle("1.0.0", "", "base"), pools))
	d := w.apply(t)
	if want := "input pools does not match its schema: pools[0].name: Required value"; len(d.Write) > 0 || !strings.Contains(said(d.Status), want) {
		t.Errorf("%d layers are written: %s", len(d.Write), said(d.Status))
	}
	inputs(`{"pools": [{"name": "a"}]}`)(w.Platform)
	if d := w.apply(t); len(d.Write) != 1 {
		t.Errorf("%d layers are written: %s", len(d.Write), said(d.Status))
	}
}
