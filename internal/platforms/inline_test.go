// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/strata-project/strata/api/v1alpha1"
)

// ownLayers is a Platform on some clusters with layers of its own.
func ownLayers(t *testing.T, clusters ...string) *world {
	t.Helper()
	p := platform("p", "")
	p.UID, p.Spec.Bundle = "uid", nil
	p.Spec.Layers = []v1alpha1.BundleLayer{
		{Name: "base", Objects: []v1alpha1.Manifest{configMap("base", "${inputs.text}")}},
		{Name: "web", DependsOn: []string{"base"}, Applications: []v1alpha1.BundleApplication{{
			Name: "web", Version: "1.2.0", Chart: &v1alpha1.ChartSource{OCI: &v1alpha1.ChartOCI{URL: "oci://charts.example/web"}},
		}}},
	}
	p.Spec.Inputs = jsonOf(`{"text": "one"}`)
	w := newWorld(p)
	for i, name := range clusters {
		w.cluster(name, map[string]string{"ring": string(rune('0' + i))})
		on(name)(p)
	}
	if d := w.settle(t); conditionsOf(d.Status) != installed {
		t.Fatalf("%s: %s", conditionsOf(d.Status), said(d.Status))
	}
	return w
}

func configMap(name, text string) v1alpha1.Manifest {
	return v1alpha1.Manifest{JSON: apiextensionsv1.JSON{
		Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","namespace":"default"},"data":{"text":"` + text + `"}}`),
	}}
}

// Layers of a platform's own become a bundle that is named by its content. Another content
// goes to the clusters as another version does, and what nobody can go back to any more goes.
func TestLayersOfItsOwn(t *testing.T) {
	w := ownLayers(t, "c0", "c1")
	if len(w.Bundles) != 1 || len(w.Layers) != 4 || w.Bundles[0].Spec.Family != "layers-p" || !metav1.IsControlledBy(w.Bundles[0], w.Platform) {
		t.Fatalf("there are %s of %d bundles", w.names(), len(w.Bundles))
	}
	first := w.Bundles[0].Spec.Version
	if got := w.find("p-c0-web").Spec; got.Source.Name != w.Bundles[0].Name || got.Version != first || string(got.Inputs.Raw) != `{"text":"one"}` {
		t.Errorf("a layer is of %+v, with %s", got.Source, got.Inputs.Raw)
	}
	w.Platform.Spec.Layers = slices.Clone(w.Platform.Spec.Layers)
	w.Platform.Spec.Layers[0].Objects = []v1alpha1.Manifest{configMap("base", "another ${inputs.text}")}
	w.apply(t)
	second := w.Bundles[1].Spec.Version
	if got := w.versionsOf(); got != second+"! "+first && got != first+" "+second+"!" {
		t.Errorf("first the clusters are at %s", got)
	}
	if len(w.Bundles[1].Spec.UpgradesFrom) > 0 {
		t.Errorf("what it drops would not be guarded: it upgrades from %v", w.Bundles[1].Spec.UpgradesFrom)
	}
	d := w.settle(t)
	if got := w.versionsOf(); got != second+" "+second || conditionsOf(d.Status) != installed || d.Status.Version != second {
		t.Errorf("then at %s of %d bundles: %s", got, len(w.Bundles), said(d.Status))
	}
	w.Platform.Spec.Layers = w.Platform.Spec.Layers[:1]
	w.settle(t)
	if len(w.Layers) != 2 || len(w.Bundles) != 2 || w.Bundles[0].Spec.Version == first {
		t.Errorf("without a layer there are %s of %d bundles: what it had and what it has", w.names(), len(w.Bundles))
	}
	w.doomed()
	w.settle(t)
	if len(w.Layers) > 0 {
		t.Errorf("a deletion leaves %s", w.names())
	}
}

// What cannot be installed changes nothing, and says why.
func TestLayersOfItsOwnThatAreWrong(t *testing.T) {
	layer := func(l v1alpha1.BundleLayer) func(*v1alpha1.PlatformSpec) {
		return func(s *v1alpha1.PlatformSpec) { s.Layers = append(slices.Clone(s.Layers), l) }
	}
	for want, change := range map[string]func(*v1alpha1.PlatformSpec){
		"spec.layers[more].when: there is no input other": layer(v1alpha1.BundleLayer{
			Name: "more", When: "inputs.other", Objects: []v1alpha1.Manifest{configMap("more", "")},
		}),
		"spec.layers[more].applications[shop]: there is no HelmApplication shop": layer(v1alpha1.BundleLayer{
			Name: "more", Applications: []v1alpha1.BundleApplication{{Name: "shop", Version: "1.0.0"}},
		}),
		"spec.inputs: the name of an input must begin with a letter": func(s *v1alpha1.PlatformSpec) { s.Inputs = jsonOf(`{"a-b": 1}`) },
		"spec.overrides[0].inputs.text: is of the type Integer, and in spec.inputs of the type String": func(s *v1alpha1.PlatformSpec) {
			s.Overrides = []v1alpha1.InputsOverride{overridden("0", `{"text": 1}`)}
		},
	} {
		w := ownLayers(t, "c0")
		before, bundles := w.names(), len(w.Bundles)
		change(&w.Platform.Spec)
		d := w.settle(t)
		if !strings.Contains(said(d.Status), want) || !strings.Contains(conditionsOf(d.Status), "Stalled=True/InvalidSpec") {
			t.Errorf("%s: it says %s", want, said(d.Status))
		}
		if w.names() != before || len(w.Bundles) != bundles {
			t.Errorf("%s: there are %s of %d bundles", want, w.names(), len(w.Bundles))
		}
	}
}

// A stage of which more fails than may goes back to the layers that it had, whose bundle is
// still there.
func TestLayersOfItsOwnGoBack(t *testing.T) {
	w := ownLayers(t, "c0", "c1")
	all := intstr.FromString("100%")
	w.Platform.Spec.Rollout.OnFailure, w.Platform.Spec.Rollout.MaxUnavailable = v1alpha1.RolloutRollback, &all
	before := w.versionsOf()
	w.Platform.Spec.Layers = slices.Clone(w.Platform.Spec.Layers)
	w.Platform.Spec.Layers[0].Objects = []v1alpha1.Manifest{configMap("base", "broken")}
	w.apply(t)
	w.breaks[w.Layers[0].Name+"@"+w.Bundles[1].Spec.Version] = true
	d := w.settle(t)
	if got := w.versionsOf(); got != before || !strings.Contains(conditionsOf(d.Status), v1alpha1.ReasonHalted) || len(w.Bundles) != 2 {
		t.Errorf("the clusters are at %s of %d bundles: %s", got, len(w.Bundles), said(d.Status))
	}
}
