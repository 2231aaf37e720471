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
)

// nested is a bundle that makes a cluster and puts a layer on it.
func nested(when string) *v1alpha1.ApplicationBundle {
	b := withInputs(bundle("1.0.0", "", "base", "inner", "gpu"), v1alpha1.BundleInput{Name: "nested", Type: v1alpha1.InputBoolean})
	b.Spec.Layers[1] = v1alpha1.BundleLayer{Name: "inner", DependsOn: []string{"base"}, When: "inputs.nested", RemoteCluster: &v1alpha1.BundleCluster{
		KubeConfig: v1alpha1.BundleKubeConfig{SecretRef: v1alpha1.TemplatedSecretKey{Name: "${instance.name}-kubeconfig", Namespace: "fleet"}},
	}}
	b.Spec.Layers[2].On, b.Spec.Layers[2].When = "inner", when
	return b
}

func TestLayersOnAClusterOfTheBundle(t *testing.T) {
	w := newWorld(platform("p", "", inputs(`{"nested": true}`)), nested(""))
	w.apply(t)
	layer := w.find("p-gpu")
	if layer == nil || layer.Spec.Cluster == nil || layer.Spec.Cluster.Namespace != "fleet" || !slices.Equal(layer.Spec.Prereqs.DependsOn, []string{"p-inner@1.0.0"}) {
		t.Fatalf("the layer is %+v", layer)
	}
	if layer.Labels[v1alpha1.PlatformClusterLabel] != "" || layer.Spec.Instance != "p" {
		t.Errorf("it is of the installation on %q, %s", layer.Labels[v1alpha1.PlatformClusterLabel], layer.Spec.Instance)
	}
	w.settle(t)
	inputs(`{"nested": false}`)(w.Platform)
	d := w.settle(t)
	if got, want := w.names(), "p-base@1.0.0"; got != want || conditionsOf(d.Status) != installed {
		t.Errorf("without the cluster there are %s, not %s: %s", got, want, said(d.Status))
	}
}

func TestWhenOnAClusterThatIsNotThereYet(t *testing.T) {
	w := newWorld(platform("p", "", inputs(`{"nested": true}`)), nested("'gpu' in cluster.labels"))
	d := w.settle(t)
	if got, want := w.names(), "p-base@1.0.0 p-inner@1.0.0"; got != want || !strings.Contains(said(d.Status), "which does not exist") {
		t.Errorf("there are %s, not %s: %s", got, want, said(d.Status))
	}
	made := w.cluster("x", map[string]string{"gpu": "yes"})
	plan, err := lay(w.Observation, newNamer(w.Observation), w.Bundles[0], "", map[string]any{"nested": true}, types.NamespacedName{})
	if err != nil {
		t.Fatal(err)
	}
	place := plan[2].place
	w.Clusters[place] = made
	w.settle(t)
	if w.find("p-gpu") == nil {
		t.Errorf("the cluster is there, and there are %s", w.names())
	}
	// What is not known any more takes nothing away.
	delete(w.Clusters, place)
	if d := w.apply(t); len(d.Delete) > 0 {
		t.Errorf("%s is deleted", d.Delete[0].Name)
	}
}

func TestStaleStatusIsNoFailure(t *testing.T) {
	w := newWorld(platform("p", ""), bundle("1.0.0", "", "base"))
	w.settle(t)
	layer := w.state(w.find("p-base"), v1alpha1.StateFailed, "it broke")
	w.Layers = []*v1alpha1.AddonsLayer{layer}
	if d := w.apply(t); d.Status.Clusters.Failed != 1 || !strings.Contains(said(d.Status), "layer p-base: it broke") {
		t.Errorf("%+v: %s", d.Status.Clusters, said(d.Status))
	}
	layer.Generation++
	if d := w.apply(t); d.Status.Clusters.Progressing != 1 {
		t.Errorf("what a status says of an earlier generation counts: %+v", d.Status.Clusters)
	}
}

func TestRollbackGoesBackAllSteps(t *testing.T) {
	w := fleet(t, 1, "1.0.0")
	w.Platform.Spec.Rollout.OnFailure = v1alpha1.RolloutRollback
	w.breaks[layerName("p", types.NamespacedName{Namespace: "fleet", Name: "c0"}, "apps")+"@1.2.0"] = true
	w.Platform.Spec.Bundle.Version = "1.2.0"
	if d := w.settle(t); w.versionsOf() != "1.0.0" {
		t.Errorf("the cluster is at %s: %s", w.versionsOf(), said(d.Status))
	}
}

func TestSentTo(t *testing.T) {
	layer := func(version, from string, at time.Duration) *v1alpha1.AddonsLayer {
		l := &v1alpha1.AddonsLayer{}
		l.Spec.Version, l.Labels = version, map[string]string{v1alpha1.PlatformFamilyLabel: "base"}
		l.Annotations = record{before: from, target: "x", from: from, moved: testNow.Add(at)}.annotations()
		return l
	}
	deleted := layer("3.0.0", "2.0.0", time.Hour)
	deleted.DeletionTimestamp = &metav1.Time{Time: testNow}
	plain := layer("1.0.0", "", 0)
	plain.Annotations = map[string]string{v1alpha1.PlatformMovedAnnotation: "what is this", v1alpha1.PlatformBeforeAnnotation: "nor this"}
	for _, test := range []struct {
		reason, want, from string
		layers             []*v1alpha1.AddonsLayer
	}{
		{"nothing", "", "", nil},
		{"half way up", "2.0.0", "1.0.0", []*v1alpha1.AddonsLayer{layer("1.0.0", "", 0), layer("2.0.0", "1.0.0", time.Minute)}},
		{"half way back", "1.0.0", "2.0.0", []*v1alpha1.AddonsLayer{layer("1.0.0", "2.0.0", time.Minute), layer("2.0.0", "1.0.0", 0)}},
		{"what is being deleted", "1.0.0", "", []*v1alpha1.AddonsLayer{deleted, layer("1.0.0", "", 0)}},
		{"no records", "1.0.0", "", []*v1alpha1.AddonsLayer{plain}},
	} {
		if got, r := sentTo(test.layers, "base"); got != test.want || r.from != test.from {
			t.Errorf("%s: sent to %q from %q, not to %q from %q", test.reason, got, r.from, test.want, test.from)
		}
	}
	if got, _ := sentTo([]*v1alpha1.AddonsLayer{plain}, "other"); got != "" {
		t.Errorf("of another family it is sent to %s", got)
	}
	now := testNow.Add(-time.Hour)
	if next := (record{moved: testNow}).move("1.0.0", "2.0.0", now); !next.moved.After(testNow) {
		t.Errorf("a clock that goes back makes a move of %s", next.moved)
	}
}

func TestNames(t *testing.T) {
	cluster := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	long := strings.Repeat("long", 15)
	for _, test := range []struct{ reason, a, b string }{
		{"dashes between cluster and layer", layerNames("p", cluster("n", "a-b"), "c")[1], layerNames("p", cluster("n", "a"), "b-c")[1]},
		{"clusters of one name", layerNames("p", cluster("n", "a"), "c")[1], layerNames("p", cluster("m", "a"), "c")[1]},
		{"what is cut", layerName("p", cluster("n", long), "a"), layerName("p", cluster("n", long), "b")},
		{"instances with dashes", instanceOf("p", cluster("a-b", "c")), instanceOf("p", cluster("a", "b-c"))},
		{"values of labels", clusterValue(cluster("a", "b.c")), clusterValue(cluster("a", "b-c"))},
		{"long values of labels", clusterValue(cluster(long, "a")), clusterValue(cluster(long, "b"))},
	} {
		if test.a == test.b || len(test.a) > maxLabel || len(test.b) > maxLabel {
			t.Errorf("%s: %s and %s", test.reason, test.a, test.b)
		}
	}
	if got, want := layerNames("p", cluster("fleet", "eu"), "base")[1], "p-eu-"+digestOf("fleet/eu", 8)+"-base"; got != want {
		t.Errorf("%s is not stable: %s", got, want)
	}
}
