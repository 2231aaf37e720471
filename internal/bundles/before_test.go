// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
)

// holding returns a version of the family base whose one layer has applications of the
// catalogue's first, by their names.
func holding(version, from string, names ...string) *v1alpha1.ApplicationBundle {
	bundle := &v1alpha1.ApplicationBundle{Spec: v1alpha1.ApplicationBundleSpec{Family: "base", Version: version}}
	bundle.Name = "base-" + version
	if from != "" {
		bundle.Spec.UpgradesFrom = []string{from}
	}
	layer := v1alpha1.BundleLayer{Name: "apps"}
	for _, name := range names {
		layer.Applications = append(layer.Applications, v1alpha1.BundleApplication{Name: name, Application: "app", Version: "1.0.0"})
	}
	bundle.Spec.Layers = []v1alpha1.BundleLayer{layer}
	return bundle
}

func TestBefore(t *testing.T) {
	old, older := holding("1.1.0", "", "a"), holding("1.0.0", "", "a")
	again := holding("v1.1.0", "", "a")
	stranger := holding("1.1.0", "", "a")
	stranger.Spec.Family = "other"
	for name, test := range map[string]struct {
		all     []*v1alpha1.ApplicationBundle
		next    *v1alpha1.ApplicationBundle
		version string
		want    *v1alpha1.ApplicationBundle
	}{
		"the one before":        {[]*v1alpha1.ApplicationBundle{older, stranger, old}, holding("1.2.0", "1.1.x"), "1.1.0", old},
		"written with a v":      {[]*v1alpha1.ApplicationBundle{older, old}, holding("1.2.0", "1.1.x"), "v1.1.0", old},
		"not entered from it":   {[]*v1alpha1.ApplicationBundle{older, old}, holding("1.2.0", "1.1.x"), "1.0.0", nil},
		"entered from nothing":  {[]*v1alpha1.ApplicationBundle{old}, holding("1.2.0", ""), "1.1.0", nil},
		"gone":                  {[]*v1alpha1.ApplicationBundle{older}, holding("1.2.0", "1.1.x"), "1.1.0", nil},
		"of another family":     {[]*v1alpha1.ApplicationBundle{stranger}, holding("1.2.0", "1.1.x"), "1.1.0", nil},
		"there twice":           {[]*v1alpha1.ApplicationBundle{old, again}, holding("1.2.0", "1.1.x"), "1.1.0", nil},
		"nothing is deployed":   {[]*v1alpha1.ApplicationBundle{old}, holding("1.2.0", "1.1.x"), "", nil},
		"an unreadable version": {[]*v1alpha1.ApplicationBundle{old}, holding("1.2.0", "1.1.x"), "one", nil},
	} {
		if got := Before(test.all, test.next, test.version); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestRenderBefore(t *testing.T) {
	app := &v1alpha1.HelmApplication{}
	app.Name = "app"
	app.Spec.Versions = []v1alpha1.HelmApplicationVersion{{
		Version: "1.0.0", ApplicationContent: v1alpha1.ApplicationContent{
			Chart:     v1alpha1.ChartSource{Repository: &v1alpha1.ChartRepository{URL: "https://charts.example.com", Chart: "app"}},
			Namespace: &v1alpha1.ApplicationNamespace{Name: "apps"},
		},
	}}
	request := func(bundle *v1alpha1.ApplicationBundle, inputs string) Request {
		r := Request{Layer: "apps", Bundle: bundle, Path: "./apps", Applications: map[string]*v1alpha1.HelmApplication{"app": app}}
		if inputs != "" {
			r.Inputs = &apiextensionsv1.JSON{Raw: []byte(inputs)}
		}
		return r
	}
	before := holding("1.0.0", "", "a", "b")
	manifests, err := RenderBefore(request(before, `{"new": "x"}`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, manifest := range manifests {
		if manifest.Object.GroupVersionKind().GroupKind() == kinds.HelmReleaseKind {
			names = append(names, manifest.Object.GetName())
		}
	}
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Errorf("with an input that it does not have: %s", diff)
	}
	before.Spec.Inputs = []v1alpha1.BundleInput{{Name: "old", Required: true}}
	if manifests, err := RenderBefore(request(before, `{"new": "x"}`)); err == nil {
		t.Errorf("without an input that it needs: %v", manifests)
	}
	before.Spec.Inputs, before.Status.Digest = nil, "sha256:other"
	if manifests, err := RenderBefore(request(before, "")); err == nil {
		t.Errorf("of a bundle that was changed: %v", manifests)
	}
}
