// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package discoveries

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// observation has a discovery of Clusters with the label env=prod, and the objects given.
func observation(found ...Found) Observation {
	return Observation{
		Now: noon, MaxPrunePercent: 50, Found: found, Clusters: map[string]*v1alpha1.RemoteCluster{},
		Discovery: &v1alpha1.ClusterDiscovery{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod", Generation: 3},
			Spec: v1alpha1.ClusterDiscoverySpec{
				Kind: v1alpha1.DiscoveredCluster, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
			},
		},
	}
}

// cluster is an object that the discovery selects.
func cluster(name string, labels ...string) Found {
	found := Found{Name: name, UID: "uid-of-" + name, Secret: name + "-kubeconfig", Key: "value", Labels: map[string]string{"env": "prod"}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		found.Labels[key] = value
	}
	return found
}

// made returns an observation in which all that the one given makes is there and ready.
func made(o Observation) Observation {
	for _, one := range Decide(o).Make {
		one.UID = types.UID("rc-" + one.Name)
		one.Status.Conditions = []metav1.Condition{
			{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue}, {Type: v1alpha1.ReachableCondition, Status: metav1.ConditionTrue},
		}
		o.Clusters[one.Name] = one
	}
	return o
}

func conditionOf(t *testing.T, d Decision, kind string) metav1.Condition {
	t.Helper()
	found := meta.FindStatusCondition(d.Status.Conditions, kind)
	if found == nil {
		t.Fatalf("no condition %s in %v", kind, d.Status.Conditions)
	}
	return *found
}

// nothing checks that a decision makes, changes and deletes nothing.
func nothing(t *testing.T, d Decision) {
	t.Helper()
	if len(d.Make)+len(d.Change)+len(d.Delete) > 0 {
		t.Errorf("makes %d, changes %d and deletes %d RemoteClusters, want none", len(d.Make), len(d.Change), len(d.Delete))
	}
}

func TestEachSelectedClusterIsMade(t *testing.T) {
	other := cluster("other")
	other.Labels = map[string]string{"env": "test"}
	o := observation(cluster("b", "site=east"), cluster("a"), other)
	o.Discovery.Spec.Template = v1alpha1.RemoteClusterTemplate{Labels: map[string]string{"team": "edge", "site": "west"}}
	d := Decide(o)
	if len(d.Make) != 2 || d.Make[0].Name != "a" || d.Make[1].Name != "b" {
		t.Fatalf("makes %v, want a and b", d.Make)
	}
	b := d.Make[1]
	want := map[string]string{"env": "prod", "team": "edge", "site": "west", v1alpha1.DiscoveryLabel: "prod"}
	if !maps.Equal(b.Labels, want) {
		t.Errorf("labels are %v, want %v", b.Labels, want)
	}
	if b.Namespace != "fleet" || b.Spec.KubeConfig.SecretRef != (v1alpha1.SecretKeyReference{Name: "b-kubeconfig", Key: "value"}) {
		t.Errorf("it is %s with the Secret %v", b.Namespace, b.Spec.KubeConfig.SecretRef)
	}
	if b.Spec.DeletionPolicy != v1alpha1.ClusterDeletionAbandon {
		t.Errorf("deletionPolicy is %q, want Abandon", b.Spec.DeletionPolicy)
	}
	if ready := conditionOf(t, d, v1alpha1.ReadyCondition); ready.Status != metav1.ConditionUnknown {
		t.Errorf("is Ready before the RemoteClusters are there")
	}
	d = Decide(made(o))
	nothing(t, d)
	if ready := conditionOf(t, d, v1alpha1.ReadyCondition); ready.Status != metav1.ConditionTrue || ready.Message != "2 of 2 RemoteClusters are ready" {
		t.Errorf("Ready is %s: %s", ready.Status, ready.Message)
	}
	if d.Status.Selected != 2 || d.Status.Clusters != 2 || d.Status.Ready != 2 {
		t.Errorf("status is %+v", d.Status)
	}
}

// TestLabelsFollow shows that labels follow the object, that those of people stay, and that
// none is taken over that would say something wrong.
func TestLabelsFollow(t *testing.T) {
	o := made(observation(cluster("a", "site=east")))
	o.Clusters["a"].Labels["mine"] = "yes"
	o.Found = []Found{cluster("a", "zone=1",
		"kraan/layer=evil", "kraan.io/joined=x", "discovery.kraan.io/name=else", "orphaned=1", "app.kubernetes.io/instance=argo", "argocd.argoproj.io/instance=argo",
		"kustomize.toolkit.fluxcd.io/name=flux", "helm.sh/chart=c", "objectset.rio.cattle.io/hash=1")}
	d := Decide(o)
	if len(d.Change) != 1 {
		t.Fatalf("changes %d, want 1", len(d.Change))
	}
	after := d.Change[0].After
	want := map[string]string{"env": "prod", "zone": "1", "mine": "yes", v1alpha1.DiscoveryLabel: "prod"}
	if !maps.Equal(after.Labels, want) {
		t.Errorf("labels are %v, want %v", after.Labels, want)
	}
	o.Clusters["a"] = after
	nothing(t, Decide(o))
}

func TestOneThatGoesIsDeleted(t *testing.T) {
	for name, change := range map[string]func(*Observation){
		"gone":         func(o *Observation) { o.Found = nil },
		"deleting":     func(o *Observation) { o.Found[0].Deleting = true },
		"not selected": func(o *Observation) { o.Found[0].Labels = nil },
		"made anew":    func(o *Observation) { o.Found[0].UID = "another" },
	} {
		o := made(observation(cluster("a")))
		change(&o)
		d := Decide(o)
		if len(d.Delete) == 0 || d.Delete[0].Name != "a" || len(d.Make)+len(d.Change) > 0 {
			t.Errorf("%s: deletes %v, makes %v", name, d.Delete, d.Make)
		}
	}
}

// TestMadeAnew shows that nothing of a cluster is taken for one that has its name.
func TestMadeAnew(t *testing.T) {
	o := made(observation(cluster("a")))
	o.Found[0].UID = "another"
	if d := Decide(o); len(d.Delete) != 1 {
		t.Fatalf("deletes %d, want the one before, once", len(d.Delete))
	}
	o.Clusters["a"].DeletionTimestamp = &metav1.Time{Time: noon}
	d := Decide(o)
	nothing(t, d)
	if message := conditionOf(t, d, v1alpha1.ReconcilingCondition).Message; !strings.Contains(message, "being deleted") {
		t.Errorf("says %q", message)
	}
	delete(o.Clusters, "a")
	if d := Decide(o); len(d.Make) != 1 || d.Make[0].Annotations[v1alpha1.DiscoveredUIDAnnotation] != "another" {
		t.Errorf("makes %v", d.Make)
	}
}

// TestWhatOthersHaveStays shows that a RemoteCluster that somebody else has made is neither
// changed nor deleted, and that it is said how it can be taken.
func TestWhatOthersHaveStays(t *testing.T) {
	for by, labels := range map[string]map[string]string{
		"there already":                  nil,
		"made by ClusterDiscovery other": {v1alpha1.DiscoveryLabel: "other"},
		"made by layer infra":            {v1alpha1.LayerLabel: "infra"},
	} {
		o := observation(cluster("a"))
		o.Clusters["a"] = &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "a", Labels: labels}}
		d := Decide(o)
		nothing(t, d)
		stalled := conditionOf(t, d, v1alpha1.StalledCondition)
		if !strings.Contains(stalled.Message, "RemoteCluster a is "+by) || !strings.Contains(stalled.Message, "discovery.kraan.io/name=prod") {
			t.Errorf("%s: says %q", by, stalled.Message)
		}
		o.Found = nil
		nothing(t, Decide(o))
	}
	o := observation(cluster("a"))
	o.Clusters["a"] = &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "a", Labels: map[string]string{v1alpha1.DiscoveryLabel: "prod"}}}
	if d := Decide(o); len(d.Change) != 1 || d.Change[0].After.Annotations[v1alpha1.DiscoveredUIDAnnotation] != "uid-of-a" {
		t.Errorf("one that was handed over is not taken: %+v", d)
	}
}

// TestWhatCannotBeSeenIsNotGone shows that nothing goes where the objects were not read.
func TestWhatCannotBeSeenIsNotGone(t *testing.T) {
	for reason, change := range map[string]func(*Observation){
		v1alpha1.ReasonKindNotServed: func(o *Observation) { o.Unserved = true },
		v1alpha1.ReasonAccessDenied:  func(o *Observation) { o.Unread = "the controller may not list them" },
		v1alpha1.ReasonInvalidSpec: func(o *Observation) {
			o.Discovery.Spec.Selector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Like"}}}
		},
	} {
		o := made(observation(cluster("a")))
		o.Found = nil
		change(&o)
		d := Decide(o)
		nothing(t, d)
		if ready := conditionOf(t, d, v1alpha1.ReadyCondition); ready.Reason != reason || ready.Status != metav1.ConditionFalse {
			t.Errorf("Ready is %s for %s, want %s", ready.Status, ready.Reason, reason)
		}
		if d.Status.Clusters != 1 {
			t.Errorf("%s: counts %d RemoteClusters, want 1", reason, d.Status.Clusters)
		}
	}
}

// TestMostDoNotGoAtOnce shows that a wrong selector, or a definition that is deleted with
// all objects, takes nothing along until somebody says that it is meant.
func TestMostDoNotGoAtOnce(t *testing.T) {
	var found []Found
	for i := range 6 {
		found = append(found, cluster(fmt.Sprintf("c%d", i)))
	}
	o := made(observation(found...))
	o.Found = found[:2]
	d := Decide(o)
	nothing(t, d)
	if stalled := conditionOf(t, d, v1alpha1.StalledCondition); stalled.Reason != v1alpha1.ReasonMassPrune ||
		stalled.Message != `4 of the 6 RemoteClusters would go, more than 50%: if that is meant set the annotation kraan.io/allow-prune to "next"` {
		t.Errorf("%s: %s", stalled.Reason, stalled.Message)
	}
	o.Discovery.Annotations = map[string]string{v1alpha1.AllowPruneAnnotation: v1alpha1.AllowNext}
	if d := Decide(o); len(d.Delete) != 4 || !d.Consume {
		t.Errorf("deletes %d, uses the annotation up: %v", len(d.Delete), d.Consume)
	}
	o.Discovery.Annotations = nil
	o.Found = found[:3]
	if d := Decide(o); len(d.Delete) != 3 {
		t.Errorf("deletes %d of 6, want the 3 that may always go", len(d.Delete))
	}
}

// TestGoneAndSilentIsAbandoned shows that a RemoteCluster does not wait for ever for a
// cluster that was deleted, and that one which answers, exists or is to be waited for does.
func TestGoneAndSilentIsAbandoned(t *testing.T) {
	for name, tc := range map[string]struct {
		policy    v1alpha1.ClusterDeletionPolicy
		reachable metav1.ConditionStatus
		there     bool
		want      bool
	}{
		"a status alone says so": {v1alpha1.ClusterDeletionDelete, metav1.ConditionFalse, false, false},
		"gone and silent":        {v1alpha1.ClusterDeletionDelete, metav1.ConditionFalse, false, true},
		"gone, to be left":       {v1alpha1.ClusterDeletionOrphan, metav1.ConditionFalse, false, true},
		"gone, and it answers":   {v1alpha1.ClusterDeletionDelete, metav1.ConditionTrue, false, false},
		"not known":              {v1alpha1.ClusterDeletionDelete, metav1.ConditionUnknown, false, false},
		"the object is there":    {v1alpha1.ClusterDeletionDelete, metav1.ConditionFalse, true, false},
		"people wait for it":     {v1alpha1.ClusterDeletionWait, metav1.ConditionFalse, false, false},
		"it is given up anyway":  {v1alpha1.ClusterDeletionAbandon, metav1.ConditionFalse, false, false},
	} {
		o := made(observation(cluster("a")))
		is := o.Clusters["a"]
		is.DeletionTimestamp = &metav1.Time{Time: noon}
		is.Spec.DeletionPolicy = tc.policy
		is.Status.Conditions[1].Status = tc.reachable
		o.Silent = map[string]bool{"a": name != "a status alone says so" && tc.reachable == metav1.ConditionFalse}
		if tc.there {
			o.Found[0].Deleting = true
		} else {
			o.Found = nil
		}
		d := Decide(o)
		if got := len(d.Change) == 1 && d.Change[0].After.Spec.DeletionPolicy == v1alpha1.ClusterDeletionAbandon; got != tc.want {
			t.Errorf("%s: abandons %v, want %v", name, got, tc.want)
		}
		if len(d.Delete)+len(d.Make) > 0 {
			t.Errorf("%s: deletes %v and makes %v", name, d.Delete, d.Make)
		}
	}
}

func TestProblemsAreBounded(t *testing.T) {
	var found []Found
	for i := range 30 {
		found = append(found, cluster(fmt.Sprintf("c%02d-%s", i, strings.Repeat("x", 70))))
	}
	d := Decide(observation(found...))
	if got := d.Status.Problems; len(got) != 10 || got[9] != "and 21 more" || !strings.Contains(got[0], "at most 63 characters") {
		t.Errorf("problems are %q", got)
	}
	nothing(t, d)
}

func TestParse(t *testing.T) {
	parse := func(apiVersion, kind string, rest map[string]any, secrets map[string][]string) Found {
		rest["apiVersion"], rest["kind"] = apiVersion, kind
		rest["metadata"] = map[string]any{"name": "a", "uid": "u", "labels": map[string]any{"env": "prod"}}
		return Parse(&unstructured.Unstructured{Object: rest}, Secrets{Profiles: secrets})
	}
	got := parse("cluster.x-k8s.io/v1beta2", "Cluster", map[string]any{"spec": map[string]any{"topology": map[string]any{"version": "v1.36.3"}}}, nil)
	if got.Secret != "a-kubeconfig" || got.Key != "value" || got.Version != "v1.36.3" || got.UID != "u" {
		t.Errorf("a Cluster is %+v", got)
	}
	profile := map[string]any{"status": map[string]any{
		"version": map[string]any{"kubernetes": "v1.36.1"},
		"properties": []any{
			map[string]any{"name": "location", "value": "east"},
			map[string]any{"name": "env", "value": "forged"},
			map[string]any{"name": "url", "value": "https://x.example"},
			map[string]any{"name": "not a name", "value": "x"},
			"no map",
		},
	}}
	got = parse("multicluster.x-k8s.io/v1alpha2", "ClusterProfile", profile, nil)
	if !maps.Equal(got.Labels, map[string]string{"env": "prod", "location": "east"}) || got.Version != "v1.36.1" || got.Secret != "a-kubeconfig" || got.Key != "" {
		t.Errorf("a ClusterProfile is %+v", got)
	}
	got = parse("multicluster.x-k8s.io/v1alpha1", "ClusterProfile", map[string]any{}, map[string][]string{"a": {"creds"}, "b": {"else"}})
	if got.Secret != "creds" {
		t.Errorf("the labelled Secret is not taken: %+v", got)
	}
	got = parse("multicluster.x-k8s.io/v1alpha1", "ClusterProfile", map[string]any{}, map[string][]string{"a": {"two", "one"}})
	if !strings.Contains(got.Ambiguous, "2 Secrets have the label x-k8s.io/cluster-profile=a (one, two)") {
		t.Errorf("two Secrets: %+v", got)
	}
	o := observation(got)
	o.Found[0].Labels = map[string]string{"env": "prod"}
	nothing(t, Decide(o))
	for _, odd := range []map[string]any{{"status": "text"}, {"status": map[string]any{"properties": "text", "version": 3}}, {"spec": []any{}}} {
		for _, kind := range []string{"Cluster", "ClusterProfile"} {
			got := parse("cluster.x-k8s.io/v1beta2", kind, maps.Clone(odd), nil)
			if got.Version != "" || !slices.Equal(slices.Collect(maps.Keys(got.Labels)), []string{"env"}) {
				t.Errorf("%v is %+v", odd, got)
			}
		}
	}
}

// A HostCluster is known by the ID of its cluster. While it tells of none, nothing is made
// of it, and what there is stays: what cannot be seen is not gone.
func TestHostClusterThatTellsOfNoCluster(t *testing.T) {
	object := func(id string) Found {
		// What its status says, whoever has written it, is not asked.
		obj := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"id": "fleet/edge/forged", "kubeConfig": "forged", "version": "v9"}}}
		obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.HostClusterKind))
		obj.SetName("edge")
		obj.SetLabels(map[string]string{"env": "prod"})
		return Parse(obj, Secrets{Handed: map[string]Handed{"edge": {ID: id, Version: "v1.36.3"}}})
	}
	for _, coming := range []Found{object("")} {
		o := observation(coming)
		o.Discovery.Spec.Kind = v1alpha1.DiscoveredHostCluster
		d := Decide(o)
		nothing(t, d)
		if ready := conditionOf(t, d, v1alpha1.ReadyCondition); ready.Status != metav1.ConditionUnknown || ready.Message != "HostCluster edge has no cluster yet" {
			t.Errorf("Ready is %s: %s", ready.Status, ready.Message)
		}
	}
	o := observation(object("fleet/edge/1"))
	o.Discovery.Spec.Kind = v1alpha1.DiscoveredHostCluster
	o = made(o)
	if made := o.Clusters["edge"]; made == nil || made.Spec.KubeConfig.SecretRef != (v1alpha1.SecretKeyReference{Name: "edge-kubeconfig", Key: "value"}) {
		t.Fatalf("%+v", made)
	}
	nothing(t, Decide(o))
	o.Found = []Found{object("")}
	nothing(t, Decide(o))
	o.Found = []Found{object("fleet/edge/2")}
	if d := Decide(o); len(d.Delete) != 1 {
		t.Errorf("deletes %v, want the RemoteCluster of the cluster before", d.Delete)
	}
}
