// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/rollout"
)

func TestTheCatalogueOfTheFleetNamesChartsThatAreHere(t *testing.T) {
	for _, app := range fleetCatalogue(t) {
		for _, version := range app.Spec.Versions {
			from := version.Chart.Repository
			if from == nil || from.URL != "http://charts.example.invalid/" {
				t.Errorf("%s %s has its chart from %+v, which is not the placeholder", app.Name, version.Version, version.Chart)
				continue
			}
			chart, err := loader.LoadDir(filepath.Join("charts", from.Chart))
			if err != nil {
				t.Errorf("%s %s: %v", app.Name, version.Version, err)
				continue
			}
			if want := cmp.Or(from.Version, version.Version); chart.Metadata.Version != want {
				t.Errorf("%s %s names chart %s %s, which is at %s here", app.Name, version.Version, from.Chart, want, chart.Metadata.Version)
			}
		}
	}
}

func TestTheBundlesOfTheFleetCanBeInstalled(t *testing.T) {
	catalogue := fleetCatalogue(t)
	for _, bundle := range fleetBundles(t) {
		for _, problem := range bundles.Check(bundle, catalogue) {
			t.Errorf("bundle %s: %s", bundle.Name, problem)
		}
		resolved, problems := bundles.Resolve(bundle, fleetInputs(t))
		for _, problem := range problems {
			t.Errorf("the platform does not fit bundle %s: %s", bundle.Name, problem)
		}
		inputs, err := json.Marshal(resolved)
		if err != nil {
			t.Fatal(err)
		}
		for _, cluster := range fleetClusters(t) {
			for _, layer := range bundle.Spec.Layers {
				objects, err := bundles.Render(bundles.Request{
					Layer: "edge-" + layer.Name, Bundle: bundle, Path: "./" + layer.Name, Applications: catalogue, Inputs: &apiextensionsv1.JSON{Raw: inputs},
					Cluster: bundles.Cluster{Endpoint: "https://192.0.2.1:6443", Version: "v1.33.0", Labels: cluster.Labels},
				})
				if err != nil || len(objects) == 0 {
					t.Errorf("layer %s of bundle %s comes to %d objects on cluster %s: %v", layer.Name, bundle.Name, len(objects), cluster.Name, err)
				}
			}
		}
	}
}

// The reader of docs/platforms.md goes from the version of the platform to the newest,
// and has each cluster in a stage.
func TestThePlatformOfTheFleetHasAWayAndStages(t *testing.T) {
	platform := fleetPlatform(t)
	wish := rollout.Wish{Current: platform.Spec.Bundle.Version, Requested: "1.1.0"}
	for _, bundle := range fleetBundles(t) {
		if bundle.Spec.Family != platform.Spec.Bundle.Family {
			t.Errorf("bundle %s is of the family %s, the platform's is %s", bundle.Name, bundle.Spec.Family, platform.Spec.Bundle.Family)
		}
		wish.Bundles = append(wish.Bundles, rollout.Bundle{Version: bundle.Spec.Version, UpgradesFrom: bundle.Spec.UpgradesFrom})
	}
	if choice := rollout.Choose(wish); !slices.Equal(choice.Path, []string{"1.1.0"}) {
		t.Errorf("the way from %s to 1.1.0 is %v: %s", wish.Current, choice.Path, choice.Problem)
	}
	for i, cluster := range fleetClusters(t) {
		if cluster.Namespace != platform.Spec.ClusterSelector.Namespace {
			t.Errorf("cluster %s is in the namespace %s, which the platform does not select", cluster.Name, cluster.Namespace)
		}
		selector, err := metav1.LabelSelectorAsSelector(&platform.Spec.Rollout.Stages[i].Selector)
		if err != nil || !selector.Matches(labels.Set(cluster.Labels)) {
			t.Errorf("stage %s does not select cluster %s: %v", platform.Spec.Rollout.Stages[i].Name, cluster.Name, err)
		}
	}
}

func fleetCatalogue(t *testing.T) map[string]*v1alpha1.HelmApplication {
	t.Helper()
	catalogue := map[string]*v1alpha1.HelmApplication{}
	for _, obj := range decodeFile(t, "fleet/catalogue.yaml") {
		app := obj.(*v1alpha1.HelmApplication)
		catalogue[app.Name] = app
	}
	return catalogue
}

func fleetBundles(t *testing.T) []*v1alpha1.ApplicationBundle {
	t.Helper()
	var found []*v1alpha1.ApplicationBundle
	for _, obj := range decodeFile(t, "fleet/bundles.yaml") {
		found = append(found, obj.(*v1alpha1.ApplicationBundle))
	}
	return found
}

func fleetClusters(t *testing.T) []*v1alpha1.RemoteCluster {
	t.Helper()
	var found []*v1alpha1.RemoteCluster
	for _, obj := range decodeFile(t, "fleet/clusters.yaml") {
		if cluster, ok := obj.(*v1alpha1.RemoteCluster); ok {
			found = append(found, cluster)
		}
	}
	return found
}

func fleetPlatform(t *testing.T) *v1alpha1.Platform {
	t.Helper()
	return decodeFile(t, "fleet/platform.yaml")[0].(*v1alpha1.Platform)
}

func fleetInputs(t *testing.T) map[string]any {
	t.Helper()
	var inputs map[string]any
	if err := json.Unmarshal(fleetPlatform(t).Spec.Inputs.Raw, &inputs); err != nil {
		t.Fatal(err)
	}
	return inputs
}
