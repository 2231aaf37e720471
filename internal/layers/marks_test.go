// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories/directoriestest"
)

// A directory says neither whose an object is nor what Strata or Flux has done with
// it: labels and annotations of theirs are taken off, and those of authors stay.
func TestDirectorySaysNothingForStrata(t *testing.T) {
	forged := marks(directoriestest.HelmRelease("a"), func(obj *unstructured.Unstructured) {
		obj.SetLabels(map[string]string{
			v1alpha1.LayerLabel: "other", v1alpha1.OrphanedLabel: "2026-01-02T02.04.05Z", v1alpha1.PlatformLabel: "p", v1alpha1.PlatformLayerLabel: "base",
			"helm.toolkit.fluxcd.io/name": "victim", "helm.toolkit.fluxcd.io/namespace": "default", "team": "a",
		})
		obj.SetAnnotations(map[string]string{
			v1alpha1.SuspendedByHoldAnnotation: "true", v1alpha1.SuspendedByLossAnnotation: "true", v1alpha1.SupersededByAnnotation: "default/b",
			v1alpha1.CreatedForAnnotation: "base",
			v1alpha1.PruneAnnotation:      "disabled", "reconcile.fluxcd.io/requestedAt": "now",
		})
		obj.SetFinalizers([]string{v1alpha1.Finalizer, v1alpha1.ClusterFinalizer, "example.com/keep"})
	})
	wanted, err := Content(directoriestest.Of(newRevision, forged), "base", "1.0.0", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := wanted[0].Manifest()
	if diff := cmp.Diff(map[string]string{v1alpha1.LayerLabel: "base", "team": "a"}, got.GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{v1alpha1.PruneAnnotation: "disabled", "reconcile.fluxcd.io/requestedAt": "now"}, got.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"example.com/keep"}, got.GetFinalizers()); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
}
