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
	"github.com/strata-project/strata/internal/objects"
)

func TestKinds(t *testing.T) {
	oci := anyManifest("source.toolkit.fluxcd.io/v1", "HelmRepository", "default", "x").Object
	_ = unstructured.SetNestedField(oci.Object, "oci", "spec", "type")
	of := func(apiVersion, kind string) *unstructured.Unstructured {
		return anyManifest(apiVersion, kind, "default", "x").Object
	}
	cases := []struct {
		reason      string
		obj         *unstructured.Unstructured
		stage, rank int
		assess      objects.Assess
		strict      bool
	}{
		{"before everything in them", of("v1", "Namespace"), stageFoundation, stageFoundation, objects.AssessStatus, false},
		{"before objects of their kind", of("apiextensions.k8s.io/v1", "CustomResourceDefinition"), stageFoundation, stageFoundation, objects.AssessStatus, false},
		{"before bindings", of("rbac.authorization.k8s.io/v1", "ClusterRole"), stageClasses, stageClasses, objects.AssessStatus, false},
		{"before what runs as them", of("v1", "ServiceAccount"), stageIdentity, stageIdentity, objects.AssessStatus, false},
		{"before what reads them", of("v1", "Secret"), stageConfig, stageConfig, objects.AssessExistence, false},
		{"watched as metadata only", of("v1", "ConfigMap"), stageConfig, stageConfig, objects.AssessExistence, false},
		{"a built-in kind", of("apps/v1", "Deployment"), stageOther, stageOther, objects.AssessStatus, false},
		{"a source", of("source.toolkit.fluxcd.io/v1", "HelmRepository"), stageOther, stageOther, objects.AssessCondition, true},
		{"nobody reconciles it", oci, stageOther, stageOther, objects.AssessExistence, true},
		{"nor an alert", of("notification.toolkit.fluxcd.io/v1beta3", "Alert"), stageOther, stageOther, objects.AssessExistence, true},
		{"but a receiver", of("notification.toolkit.fluxcd.io/v1", "Receiver"), stageOther, stageOther, objects.AssessCondition, true},
		{"goes while what serves it runs", of("cert-manager.io/v1", "ClusterIssuer"), stageCustom, stageWebhook, objects.AssessStatus, false},
		{"a release", of("helm.toolkit.fluxcd.io/v2", "HelmRelease"), stageRelease, stageRelease, objects.AssessCondition, true},
		{"counts like one", of("kustomize.toolkit.fluxcd.io/v1", "Kustomization"), stageRelease, stageRelease, objects.AssessCondition, true},
		{"after what answers it", of("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"), stageWebhook, stageWebhook, objects.AssessStatus, false},
	}
	for _, tc := range cases {
		gk := tc.obj.GroupVersionKind().GroupKind()
		t.Run(gk.String(), func(t *testing.T) {
			if stageOf(gk) != tc.stage || rankOf(gk) != tc.rank || assessOf(tc.obj) != tc.assess || IsStrict(gk) != tc.strict {
				t.Errorf("%s: got stage %d, rank %d, %s, strict %v", tc.reason, stageOf(gk), rankOf(gk), assessOf(tc.obj), IsStrict(gk))
			}
			if tc.stage == stageRelease && HelmReleaseKind != gk && ResourceKind(gk) != gk.String() {
				t.Errorf("only HelmReleases have Kraan's word: %s", ResourceKind(gk))
			}
		})
	}
}

// What takes others along goes only where it says so and Strata has created it, and
// why it stays is told where it says that it may go.
func TestDeletionOf(t *testing.T) {
	const stays, spared, goes = "stays", "stays in spite of what it says", "goes"
	alone := map[string]string{"": goes, "disabled": stays, "enabled": goes, "typo": goes}
	for gk, want := range map[schema.GroupKind]struct{ created, foreign map[string]string }{
		{Kind: "Namespace"}:             {map[string]string{"": stays, "disabled": stays, "enabled": goes, "typo": stays}, map[string]string{"": stays, "disabled": stays, "enabled": spared, "typo": stays}},
		{Kind: "PersistentVolumeClaim"}: {map[string]string{"": stays, "disabled": stays, "enabled": goes, "typo": stays}, map[string]string{"": stays, "disabled": stays, "enabled": spared, "typo": stays}},
		definitionKind:                  {map[string]string{"": stays, "disabled": stays, "enabled": goes, "typo": stays}, map[string]string{"": stays, "disabled": stays, "enabled": spared, "typo": stays}},
		HelmReleaseKind:                 {alone, alone},
		{Kind: "ConfigMap"}:             {alone, alone},
	} {
		for origin, wants := range map[string]map[string]string{"base": want.created, "": want.foreign} {
			for prune, want := range wants {
				obj := &unstructured.Unstructured{Object: map[string]any{}}
				obj.SetAnnotations(map[string]string{v1alpha1.PruneAnnotation: prune, v1alpha1.CreatedForAnnotation: origin})
				got := goes
				switch deletion, why := deletionOf(gk, obj); {
				case why != "" && deletion == dependents.DeletionOrphan:
					got = spared
				case deletion == dependents.DeletionOrphan:
					got = stays
				}
				if got != want {
					t.Errorf("%s with %q, created for %q: %s, want that it %s", gk, prune, origin, got, want)
				}
			}
		}
	}
}

var someKinds = []schema.GroupKind{
	HelmReleaseKind,
	{Kind: "ConfigMap"},
	{Group: "apps", Kind: "Deployment"},
	HelmRepositoryKind,
	{Group: "cert-manager.io", Kind: "ClusterIssuer"},
	{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"},
}

func TestResourceKind(t *testing.T) {
	for _, gk := range someKinds {
		if got := ParseResourceKind(ResourceKind(gk)); got != gk {
			t.Errorf("%s becomes %s", gk, got)
		}
	}
	if got := ResourceKind(HelmReleaseKind); got != "helmreleases.helm.toolkit.fluxcd.io" {
		t.Errorf("Kraan writes it another way: %s", got)
	}
}

// TestInventoryRoundTrip writes inventories to a status and reads them again.
func TestInventoryRoundTrip(t *testing.T) {
	name := rapid.StringMatching(`[a-z][a-z0-9-]{0,4}`)
	entry := rapid.Custom(func(t *rapid.T) dependents.Entry {
		gk := rapid.SampledFrom(someKinds).Draw(t, "kind")
		id := objects.ID{Group: gk.Group, Kind: gk.Kind, Name: name.Draw(t, "name")}
		if gk.Kind != "ClusterIssuer" {
			id.Namespace = name.Draw(t, "namespace")
		}
		e := dependents.Entry{
			ID: id, Digest: name.Draw(t, "digest"), Generation: rapid.Int64().Draw(t, "generation"), ResourceVersion: name.Draw(t, "version"),
			Status: name.Draw(t, "status"), Since: time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "since"), 0).UTC(), Rank: rankOf(gk), Origin: name.Draw(t, "file"),
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
	resources := []v1alpha1.Resource{{Namespace: "default", Name: "a", Kind: kraanHelmRelease, Status: "Deployed", LastTransitionTime: metav1.NewTime(longAgo.Time)}}
	got := Inventory(resources, map[objects.ID]*unstructured.Unstructured{id: obj})
	want := []dependents.Entry{{ID: id, Status: "Deployed", Since: longAgo.Time, Rank: stageRelease, Deletion: dependents.DeletionOrphan, Assess: objects.AssessCondition}}
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
