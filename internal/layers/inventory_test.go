// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// TestInventoryRoundTrip writes inventories to a status and reads them again.
func TestInventoryRoundTrip(t *testing.T) {
	name := rapid.StringMatching(`[a-z][a-z0-9-]{0,4}`)
	listed := []schema.GroupKind{
		kinds.HelmReleaseKind, kinds.HelmRepositoryKind,
		{Kind: "ConfigMap"},
		{Group: "apps", Kind: "Deployment"},
		{Group: "cert-manager.io", Kind: "ClusterIssuer"},
		{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"},
	}
	entry := rapid.Custom(func(t *rapid.T) dependents.Entry {
		gk := rapid.SampledFrom(listed).Draw(t, "kind")
		id := objects.ID{Group: gk.Group, Kind: gk.Kind, Name: name.Draw(t, "name")}
		if gk.Kind != "ClusterIssuer" {
			id.Namespace = name.Draw(t, "namespace")
		}
		e := dependents.Entry{
			ID: id, Digest: name.Draw(t, "digest"), Generation: rapid.Int64().Draw(t, "generation"), ResourceVersion: name.Draw(t, "version"),
			Completed: rapid.Bool().Draw(t, "completed"), Status: name.Draw(t, "status"), Since: time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "since"), 0).UTC(), Rank: kinds.RankOf(gk), Origin: name.Draw(t, "file"),
		}
		for range rapid.IntRange(0, 2).Draw(t, "dependencies") {
			e.DependsOn = append(e.DependsOn, objects.ID{Group: gk.Group, Kind: gk.Kind, Namespace: name.Draw(t, "namespace"), Name: name.Draw(t, "name")})
		}
		return e
	})
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.SliceOfNDistinct(entry, 0, 6, func(e dependents.Entry) objects.ID { return e.ID }).Draw(t, "entries")
		resources := Resources(entries)
		if diff := cmp.Diff(resources, Resources(rapid.Permutation(entries).Draw(t, "shuffled"))); diff != "" {
			t.Fatalf("the order matters:\n%s", diff)
		}
		want := map[objects.ID]dependents.Entry{}
		for _, e := range entries {
			want[e.ID] = e
		}
		got := map[objects.ID]dependents.Entry{}
		for _, e := range Inventory(resources, nil) {
			e.Since = e.Since.UTC()
			got[e.ID] = e
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestInventoryFollowsLiveObjects(t *testing.T) {
	obj := live("a")
	obj.SetAnnotations(map[string]string{v1alpha1.PruneAnnotation: "disabled"})
	id := releaseID("a")
	resources := []v1alpha1.Resource{{Namespace: "default", Name: "a", Kind: kinds.ResourceKind(kinds.HelmReleaseKind), Status: "Deployed", LastTransitionTime: metav1.NewTime(longAgo.Time)}}
	got := Inventory(resources, map[objects.ID]*unstructured.Unstructured{id: obj})
	want := []dependents.Entry{{ID: id, Status: "Deployed", Since: longAgo.Time, Rank: kinds.StageRelease, Deletion: dependents.DeletionOrphan, Assess: objects.AssessCondition}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is not stored follows from the kind and the object (-want +got):\n%s", diff)
	}
	o := observation(layer(func(l *v1alpha1.AddonsLayer) { l.Status.Resources = resources }), nil, lives(obj), func(o *Observation) {
		o.Taken = []objects.ID{id, releaseID("b")}
	})
	entries := o.inventory()
	if len(entries) != 2 || entries[1].ID != releaseID("b") || entries[1].Status != objects.StatusProgress {
		t.Errorf("what Kraan left belongs to the layer, once: %+v", entries)
	}
}
