// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/reserved"
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

// Each word that Strata alone sets is taken off what a directory lists, or the directory is
// refused; and each that is people's stays.
func TestDirectorySaysNoWordOfStratas(t *testing.T) {
	for _, word := range reserved.Words() {
		if word.Sort == reserved.Type {
			continue // which the registry's own test covers
		}
		listed := marks(directoriestest.HelmRelease("a"), func(obj *unstructured.Unstructured) {
			switch word.Sort {
			case reserved.Label:
				obj.SetLabels(map[string]string{word.Key: "forged"})
			case reserved.Annotation:
				obj.SetAnnotations(map[string]string{word.Key: "forged"})
			case reserved.Finalizer:
				obj.SetFinalizers([]string{word.Key})
			}
		})
		directory := directoriestest.Of(newRevision, listed)
		wanted, err := Content(directory, "base", "1.0.0", nil)
		if err != nil {
			t.Fatalf("%s: %v", word.Key, err)
		}
		got, _ := wanted[0].Object.Get()
		says := got.GetLabels()[word.Key] == "forged" || got.GetAnnotations()[word.Key] == "forged" || slices.Contains(got.GetFinalizers(), word.Key)
		if says != (word.By == reserved.People) {
			t.Errorf("%s %s is said: %t", word.Sort, word.Key, says)
		}
		if word.Refused && word.Only.Kind == "" && reservedGate(observation(layer(), directory)) == nil {
			t.Errorf("a directory with the %s %s is not refused", word.Sort, word.Key)
		}
	}
}

// What Place says of a copy, and of a source beside a RemoteCluster, stays; a directory
// that says the same is not believed.
func TestWhatPlaceSaysStays(t *testing.T) {
	said := map[string]string{v1alpha1.PlacedForAnnotation: "fleet/prod", v1alpha1.CopyOfAnnotation: "Secret/a/b", v1alpha1.SharedByAnnotation: "account"}
	for name, tc := range map[string]struct {
		change func(*directories.Manifest)
		want   []string
	}{
		"a copy":                {func(m *directories.Manifest) { m.Copy, m.Placed = true, true }, []string{v1alpha1.CopyOfAnnotation, v1alpha1.PlacedForAnnotation, v1alpha1.SharedByAnnotation}},
		"a source":              {func(m *directories.Manifest) { m.Placed = true }, []string{v1alpha1.PlacedForAnnotation}},
		"listed by a directory": {func(*directories.Manifest) {}, nil},
	} {
		manifest := marks(directoriestest.Any("v1", "ConfigMap", "fleet", "a"), func(obj *unstructured.Unstructured) { obj.SetAnnotations(maps.Clone(said)) })
		tc.change(&manifest)
		wanted, err := Content(directoriestest.Of(newRevision, manifest), "base", "1.0.0", nil)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := wanted[0].Object.Get()
		if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(got.GetAnnotations()))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
