// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
)

// shared are three names of one cluster, of which one is home, and one of another.
var shared = TwinsOf(map[string]string{"": "one", "fleet/prod": "one", "team/prod": "one", "fleet/lab": "two", "fleet/new": ""})

func TestTwins(t *testing.T) {
	want := Twins{"": {"fleet/prod", "team/prod"}, "fleet/prod": {"", "team/prod"}, "team/prod": {"", "fleet/prod"}}
	if diff := cmp.Diff(want, shared); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for identity, want := range map[string][]string{
		"apps/shop": {"apps/shop", "fleet/strata-kubeconfig-prod/apps/shop", "team/strata-kubeconfig-prod/apps/shop"},
		"fleet/strata-kubeconfig-prod/apps/shop": {
			"fleet/strata-kubeconfig-prod/apps/shop", "apps/shop", "team/strata-kubeconfig-prod/apps/shop",
		},
		"fleet/strata-kubeconfig-lab/apps/shop": {"fleet/strata-kubeconfig-lab/apps/shop"},
		"fleet/somebodys/apps/shop":             {"fleet/somebodys/apps/shop"},
	} {
		if diff := cmp.Diff(want, shared.Identities(identity)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", identity, diff)
		}
	}
	id := objects.ID{Kind: "ConfigMap", Namespace: "apps", Name: "flags"}
	if diff := cmp.Diff([]objects.ID{id.On("team/prod"), id, id.On("fleet/prod")}, shared.IDs(id.On("team/prod"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What a HelmRelease is called by each name of a cluster is what Place makes of it.
func TestIdentitiesAreThoseOfPlace(t *testing.T) {
	identity := func(place placement.Place) string {
		put, err := place.Put(directoriestest.Of(newRevision, directoriestest.HelmRelease("a")))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range put.Manifests {
			if m.ID().GroupKind() == kinds.HelmReleaseKind {
				return kinds.HelmReleaseIdentity(m.Object)
			}
		}
		t.Fatal("there is no release")
		return ""
	}
	home := kinds.HelmReleaseIdentity(directoriestest.HelmRelease("a").Object)
	other := identity(placement.Place{Layer: "base", Cluster: types.NamespacedName{Namespace: "team", Name: "prod"}})
	if diff := cmp.Diff([]string{identity(prod), home, other}, shared.Identities(identity(prod))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A release that a layer at home, or of another name, has is refused with all names.
func TestTwinsAreOneForConflicts(t *testing.T) {
	home := live("a", of("mesh"))
	mesh := layer(named("mesh"))
	o := observation(layer(), directoriestest.Of(newRevision, directoriestest.HelmRelease("a")), onProd(remoteCluster(metav1.ConditionTrue, metav1.ConditionTrue, time.Hour)), lives(home))
	o.Twins = shared
	exclusive := ""
	for found := range ListingOf(o.Directory).Exclusive {
		exclusive = found
	}
	o.Exclusive[exclusive] = []objects.ID{objects.IDOf(home)}
	o.Others = dependents.Others{
		Listed: map[objects.ID][]dependents.Claim{}, Exclusive: map[string][]dependents.Claim{}, Existing: map[string]bool{}, Unreadable: map[string]bool{},
	}
	o.AddOther(&o.Others, mesh)
	o.AddClaims(&o.Others, "mesh", ListingOf(directoriestest.Of(newRevision, directoriestest.HelmRelease("a"))))
	d := Decide(o)
	if d.Reason != v1alpha1.ReasonOwnershipConflict || !d.Stalled || d.Plan.Writes() {
		t.Errorf("it is %s and does %v", d.Reason, d.Plan.Actions)
	}
	for _, word := range []string{"layer mesh", "the cluster that Strata runs in", "fleet/prod", "both layers name one RemoteCluster"} {
		if !strings.Contains(d.Message, word) {
			t.Errorf("the message lacks %q: %s", word, d.Message)
		}
	}
}

func TestElsewhere(t *testing.T) {
	onCluster := func(namespace, name string) layerChange {
		return func(l *v1alpha1.AddonsLayer) {
			l.Spec.Cluster = &v1alpha1.ClusterReference{Namespace: namespace, Name: name}
		}
	}
	has := func(cluster string) layerChange {
		return func(l *v1alpha1.AddonsLayer) {
			l.Status.Resources = []v1alpha1.Resource{{Cluster: cluster, Kind: "ConfigMap", Name: "x"}}
		}
	}
	o := observation(layer(), directoriestest.Of(newRevision, directoriestest.HelmRelease("a")), onProd(remoteCluster(metav1.ConditionTrue, metav1.ConditionTrue, time.Hour)))
	o.Twins = shared
	for name, test := range map[string]struct {
		other *v1alpha1.AddonsLayer
		want  string
		is    bool
	}{
		"by the same name":                {layer(onCluster("fleet", "prod")), "", false},
		"by another name":                 {layer(onCluster("team", "prod")), "team/prod", true},
		"at home":                         {layer(), "", true},
		"on another cluster":              {layer(onCluster("fleet", "lab")), "", false},
		"has left, by another name":       {layer(onCluster("fleet", "lab"), has("team/prod")), "team/prod", true},
		"has left, by the same name":      {layer(onCluster("fleet", "lab"), has("fleet/prod")), "", false},
		"comes from another name to ours": {layer(onCluster("fleet", "prod"), has("team/prod")), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, is := o.Elsewhere(test.other); got != test.want || is != test.is {
				t.Errorf("it is %q, %t", got, is)
			}
		})
	}
}

// On a cluster that is not the right one nothing is done but to suspend what Flux
// would write there; a deleted layer waits, unless it is given up.
func TestMistakenClusterIsLeftAlone(t *testing.T) {
	const why = "another cluster answers: it is two, and was one"
	dir, err := prod.Put(directoriestest.Of(newRevision, directoriestest.HelmRelease("a")))
	if err != nil {
		t.Fatal(err)
	}
	running := func(o *Observation) {
		for _, m := range dir.Manifests {
			if m.ID().GroupKind() != kinds.HelmReleaseKind {
				continue
			}
			found := m.Object.DeepCopy()
			found.SetLabels(map[string]string{v1alpha1.LayerLabel: "base"})
			found.SetUID("uid")
			found.SetGeneration(1)
			o.Live[m.ID()] = found
		}
	}
	for name, test := range map[string]struct {
		layer *v1alpha1.AddonsLayer
		state v1alpha1.State
	}{
		"deployed": {layer(isDeployed(dir)), v1alpha1.StateUnknown},
		"held":     {layer(isDeployed(dir), annotation(v1alpha1.HoldAnnotation, "freeze")), v1alpha1.StateHold},
		"deleted":  {layer(isDeployed(dir), deleted), v1alpha1.StateUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			o := observation(test.layer, directoriestest.Of(newRevision, directoriestest.HelmRelease("a")), onProd(remoteCluster(metav1.ConditionTrue, metav1.ConditionTrue, time.Hour)), running)
			o.Remote.Mistaken, o.Remote.Connected = why, false
			d := Decide(o)
			if d.State != test.state || d.State == v1alpha1.StateUnknown && (d.Reason != v1alpha1.ReasonClusterMistaken || !strings.Contains(d.Message, why)) {
				t.Errorf("it is %s (%s): %s", d.State, d.Reason, d.Message)
			}
			if len(d.Plan.Actions) != 1 || d.Plan.Actions[0].Verb != dependents.VerbSuspend || d.Plan.Actions[0].Mark != v1alpha1.SuspendedByLossAnnotation {
				t.Errorf("it does %v", d.Plan.Actions)
			}
		})
	}
	cluster := remoteCluster(metav1.ConditionFalse, metav1.ConditionTrue, time.Hour)
	cluster.Status.Conditions[0].Reason = v1alpha1.ReasonIdentityChanged
	if going := layer(deleted, annotation(v1alpha1.AbandonAnnotation, "true")); !IsForsaken(going, cluster) || IsForsaken(layer(deleted), cluster) {
		t.Error("a layer is given up where somebody says so, and only there")
	}
}
