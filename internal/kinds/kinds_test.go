// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/objects"
)

func TestKinds(t *testing.T) {
	of := func(apiVersion, kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	}
	oci := of("source.toolkit.fluxcd.io/v1", "HelmRepository")
	_ = unstructured.SetNestedField(oci.Object, "oci", "spec", "type")
	cases := []struct {
		reason      string
		obj         *unstructured.Unstructured
		stage, rank int
		assess      objects.Assess
		strict      bool
	}{
		{"before everything in them", of("v1", "Namespace"), StageFoundation, StageFoundation, objects.AssessStatus, false},
		{"before objects of their kind", of("apiextensions.k8s.io/v1", "CustomResourceDefinition"), StageFoundation, StageFoundation, objects.AssessStatus, false},
		{"before bindings", of("rbac.authorization.k8s.io/v1", "ClusterRole"), StageClasses, StageClasses, objects.AssessStatus, false},
		{"before what runs as them", of("v1", "ServiceAccount"), StageIdentity, StageIdentity, objects.AssessStatus, false},
		{"before what reads them", of("v1", "Secret"), StageConfig, StageConfig, objects.AssessExistence, false},
		{"watched as metadata only", of("v1", "ConfigMap"), StageConfig, StageConfig, objects.AssessExistence, false},
		{"a built-in kind", of("apps/v1", "Deployment"), StageOther, StageOther, objects.AssessStatus, false},
		{"a source", of("source.toolkit.fluxcd.io/v1", "HelmRepository"), StageOther, StageOther, objects.AssessCondition, true},
		{"nobody reconciles it", oci, StageOther, StageOther, objects.AssessExistence, true},
		{"nor an alert", of("notification.toolkit.fluxcd.io/v1beta3", "Alert"), StageOther, StageOther, objects.AssessExistence, true},
		{"but a receiver", of("notification.toolkit.fluxcd.io/v1", "Receiver"), StageOther, StageOther, objects.AssessCondition, true},
		{"goes while what serves it runs", of("cert-manager.io/v1", "ClusterIssuer"), StageCustom, StageWebhook, objects.AssessStatus, false},
		{"a release", of("helm.toolkit.fluxcd.io/v2", "HelmRelease"), StageRelease, StageRelease, objects.AssessCondition, true},
		{"counts like one", of("kustomize.toolkit.fluxcd.io/v1", "Kustomization"), StageRelease, StageRelease, objects.AssessCondition, true},
		{"after what answers it", of("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"), StageWebhook, StageWebhook, objects.AssessStatus, false},
	}
	for _, tc := range cases {
		gk := tc.obj.GroupVersionKind().GroupKind()
		t.Run(gk.String(), func(t *testing.T) {
			if StageOf(gk) != tc.stage || RankOf(gk) != tc.rank || AssessOf(tc.obj) != tc.assess || objects.IsStrict(gk) != tc.strict {
				t.Errorf("%s: got stage %d, rank %d, %s, strict %v", tc.reason, StageOf(gk), RankOf(gk), AssessOf(tc.obj), objects.IsStrict(gk))
			}
			if tc.stage == StageRelease && HelmReleaseKind != gk && ResourceKind(gk) != gk.String() {
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
		DefinitionKind:                  {map[string]string{"": stays, "disabled": stays, "enabled": goes, "typo": stays}, map[string]string{"": stays, "disabled": stays, "enabled": spared, "typo": stays}},
		HelmReleaseKind:                 {alone, alone},
		{Kind: "ConfigMap"}:             {alone, alone},
	} {
		for origin, wants := range map[string]map[string]string{"base": want.created, "": want.foreign} {
			for prune, want := range wants {
				obj := &unstructured.Unstructured{Object: map[string]any{}}
				obj.SetAnnotations(map[string]string{v1alpha1.PruneAnnotation: prune, v1alpha1.CreatedForAnnotation: origin})
				got := goes
				switch deletion, why := DeletionOf(gk, obj); {
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
