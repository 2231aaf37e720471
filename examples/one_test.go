// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"os"
	"path/filepath"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/platforms"
)

// The Platform that carries its layers itself can be installed as it stands, with the charts
// that are here.
func TestTheOneObjectCanBeInstalled(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("one", "platform.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	platform := &v1alpha1.Platform{}
	if err := yaml.UnmarshalStrict(data, platform); err != nil {
		t.Fatal(err)
	}
	bundle, problem := platforms.InlineBundle(platform, nil)
	if bundle == nil || problem != "" {
		t.Fatalf("it cannot be installed: %s", problem)
	}
	bundle.Labels = nil
	releases := 0
	for _, layer := range bundle.Spec.Layers {
		for _, app := range layer.Applications {
			chart, err := loader.LoadDir(filepath.Join("charts", app.Chart.Repository.Chart))
			if err != nil || chart.Metadata.Version != app.Version {
				t.Errorf("%s names chart %s %s, which is not here: %v", app.Name, app.Chart.Repository.Chart, app.Version, err)
			}
		}
		manifests, err := bundles.Render(bundles.Request{Layer: "one-" + layer.Name, Instance: "one", Bundle: bundle, Path: "./" + layer.Name, Inputs: platform.Spec.Inputs})
		if err != nil {
			t.Fatalf("layer %s: %v", layer.Name, err)
		}
		for _, manifest := range manifests {
			if manifest.Object.GetKind() == "HelmRelease" {
				releases++
			}
		}
	}
	if releases != 3 {
		t.Errorf("it comes to %d releases, and the document shows 3", releases)
	}
}
