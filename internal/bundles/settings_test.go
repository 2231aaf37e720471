// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
)

// How Flux looks after a release says the layer, or else the bundle, or else the
// catalogue.
func TestReleaseSettings(t *testing.T) {
	says := func(minutes int, mode v1alpha1.DriftDetection) v1alpha1.ReleaseSettings {
		settings := v1alpha1.ReleaseSettings{DriftDetection: mode}
		if minutes > 0 {
			settings.Interval = &metav1.Duration{Duration: time.Duration(minutes) * time.Minute}
		}
		return settings
	}
	catalogue, bundle, layer := says(1, v1alpha1.DriftDetectionWarn), says(2, ""), says(3, v1alpha1.DriftDetectionDisabled)
	for _, test := range []struct {
		catalogue, bundle v1alpha1.ReleaseSettings
		layer             *v1alpha1.ReleaseSettings
		interval, mode    string
	}{
		{interval: "15m0s", mode: "enabled"},
		{catalogue: catalogue, interval: "1m0s", mode: "warn"},
		{catalogue: catalogue, bundle: bundle, interval: "2m0s", mode: "warn"},
		{catalogue: catalogue, bundle: bundle, layer: &layer, interval: "3m0s", mode: "disabled"},
		{bundle: bundle, layer: &v1alpha1.ReleaseSettings{}, interval: "2m0s", mode: "enabled"},
	} {
		request := requestOf(t, "network")
		app := request.Applications["cilium"]
		for i := range app.Spec.Versions {
			app.Spec.Versions[i].ReleaseSettings = test.catalogue
		}
		app.Status.Published = nil // It was not published before.
		request.Bundle.Spec.Layers[0].Applications[0].ReleaseSettings, request.Releases = test.bundle, test.layer
		for _, manifest := range render(t, request) {
			if manifest.Object.GetKind() != "HelmRelease" {
				continue
			}
			interval, _, _ := unstructured.NestedString(manifest.Object.Object, "spec", "interval")
			mode, _, _ := unstructured.NestedString(manifest.Object.Object, "spec", "driftDetection", "mode")
			if interval != test.interval || mode != test.mode {
				t.Errorf("%+v come to %s and %s, want %s and %s", test, interval, mode, test.interval, test.mode)
			}
		}
	}
}

func TestCommonMetadataOfALayer(t *testing.T) {
	request := requestOf(t, "apps")
	request.Common = &v1alpha1.CommonMetadata{Labels: map[string]string{"team": "edge"}, Annotations: map[string]string{"owner": "us"}}
	for _, manifest := range render(t, request) {
		is := manifest.Object.GetLabels()["team"] == "edge" && manifest.Object.GetAnnotations()["owner"] == "us"
		if is == manifest.Ensured {
			t.Errorf("%s, which is shared: %v, has the labels %v", manifest.ID(), manifest.Ensured, manifest.Object.GetLabels())
		}
	}
}
