// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/fleet"
)

var testNow = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// bundle returns a version of family base whose layers are written as
// "layer app@version app@version".
func bundle(version, from string, written ...string) *v1alpha1.ApplicationBundle {
	b := &v1alpha1.ApplicationBundle{Spec: v1alpha1.ApplicationBundleSpec{Family: "base", Version: version}}
	b.Name = "base-" + version
	if from != "" {
		b.Spec.UpgradesFrom = []string{from}
	}
	for _, text := range append(written, "empty") {
		words := strings.Fields(text)
		layer := v1alpha1.BundleLayer{Name: words[0], Source: &v1alpha1.SourceSpec{Name: "addons"}}
		for _, word := range words[1:] {
			name, version, _ := strings.Cut(word, "@")
			layer.Source = nil
			layer.Applications = append(layer.Applications, v1alpha1.BundleApplication{Name: name, Version: version})
		}
		b.Spec.Layers = append(b.Spec.Layers, layer)
	}
	return b
}

func app(name string, versions ...string) *v1alpha1.HelmApplication {
	a := &v1alpha1.HelmApplication{}
	a.Name = name
	for _, version := range versions {
		chart := v1alpha1.ChartSource{Repository: &v1alpha1.ChartRepository{URL: "https://charts.example.com", Chart: name}}
		a.Spec.Versions = append(a.Spec.Versions, v1alpha1.HelmApplicationVersion{
			Version: version, ApplicationContent: v1alpha1.ApplicationContent{Chart: chart},
		})
	}
	return a
}

func TestPaths(t *testing.T) {
	withdrawn := bundle("1.1.5", ">=1.0 <1.2")
	withdrawn.Spec.Withdrawn = "CVE"
	twice := bundle("v1.2.0", ">=1.0")
	twice.Name = "other"
	old := bundle("1.3.0", ">=1.2")
	old.Spec.KubeVersion = ">=1.30 <1.34"
	all := []*v1alpha1.ApplicationBundle{bundle("1.0.0", ""), bundle("1.1.0", "~1.0"), withdrawn, bundle("1.2.0", "~1.1"), old}
	for name, c := range map[string]struct {
		reason  string
		bundles []*v1alpha1.ApplicationBundle
		route   Route
		want    []string
	}{
		"all":        {"everybody goes to the newest; shortest first, and what leads nowhere last", all, Route{}, []string{"1.2.0 -> 1.3.0", "1.1.5 -> 1.2.0 -> 1.3.0", "1.1.0 -> 1.2.0 -> 1.3.0", "1.0.0 -> 1.1.0 -> 1.2.0 -> 1.3.0"}},
		"to":         {"a withdrawn version is not gone to", all, Route{From: "1.1.0", To: "1.1.5"}, []string{"1.1.0 -/-> 1.1.5 ! 1.1.5 is withdrawn"}},
		"back":       {"nothing older is gone to that does not take it", all, Route{From: "1.2.0", To: "1.0.0"}, []string{"1.2.0 -/-> 1.0.0 ! 1.0.0 does not come after 1.2.0, and 1.0.0 takes no upgrades, it can only be installed afresh"}},
		"gone":       {"what is installed need not be there any more", all, Route{From: "1.0.7", To: "1.1.0"}, []string{"1.0.7 -> 1.1.0"}},
		"kubernetes": {"a range of Kubernetes versions blocks", all, Route{From: "1.2.0", To: "1.3.0", Kubernetes: "v1.36.3"}, []string{"1.2.0 -> 1.3.0 ! 1.3.0 is for Kubernetes >=1.30 <1.34, and the cluster has v1.36.3: no Platform moves it there"}},
		"within":     {"and does not where it fits", all, Route{From: "1.2.0", To: "1.3.0", Kubernetes: "1.33"}, []string{"1.2.0 -> 1.3.0"}},
		"twice":      {"what is there twice is not gone to", []*v1alpha1.ApplicationBundle{all[0], all[3], twice}, Route{From: "1.0.0", To: "1.2.0"}, []string{"1.0.0 -/-> 1.2.0 ! 1.2.0 cannot be installed: ApplicationBundles base-1.2.0 and other both are version 1.2.0 of base"}},
		"alone":      {"one version has no ways", all[:1], Route{}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := Paths(fleet.World{Now: testNow, Bundles: c.bundles}, "base", c.route)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, path := range found {
				text := path.String()
				if path.Blocked != "" {
					text += " ! " + path.Blocked
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
	if _, err := Paths(fleet.World{}, "base", Route{}); err == nil || !strings.Contains(err.Error(), "no ApplicationBundle of family base") {
		t.Errorf("a family without bundles has paths: %v", err)
	}
}

func values(app *v1alpha1.BundleApplication, raw string) {
	app.Values = &apiextensionsv1.JSON{Raw: []byte(raw)}
}

func TestDiff(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		change func(a, b *v1alpha1.ApplicationBundle)
		want   []string
	}{
		"nothing": {"a bundle does not differ from itself", func(_, _ *v1alpha1.ApplicationBundle) {}, nil},
		"moved": {"an application that another layer has has moved", func(_, b *v1alpha1.ApplicationBundle) {
			b.Spec.Layers[1].Applications = append(b.Spec.Layers[1].Applications, b.Spec.Layers[0].Applications[1])
			b.Spec.Layers[0].Applications = b.Spec.Layers[0].Applications[:1]
		}, []string{"mesh moved application dns: base -> mesh"}},
		"version": {
			"a version is told with its chart", func(_, b *v1alpha1.ApplicationBundle) { b.Spec.Layers[0].Applications[1].Version = "2.0.0" },
			[]string{"base changed application dns version: 1.0.0 -> 2.0.0", "base changed application dns chart: dns 1.0.0 -> dns 2.0.0"},
		},
		"values": {"values are told by their paths, and what may be secret is not", func(a, b *v1alpha1.ApplicationBundle) {
			values(&a.Spec.Layers[0].Applications[0], `{"a":{"b":[1,2]},"gone":{},"auth":{"adminPassword":"one","apiKey":"aa"}}`)
			values(&b.Spec.Layers[0].Applications[0], `{"a":{"b":[1,3]},"new":null,"auth":{"adminPassword":"two","apiKey":"aa"}}`)
		}, []string{
			"base changed application proxy values.a.b[1]: 2 -> 3", "base changed application proxy values.auth.adminPassword: (not shown) -> (not shown)",
			"base removed application proxy values.gone: {} -> ", "base added application proxy values.new:  -> null",
		}},
		"layers": {"layers come and go with what they have", func(_, b *v1alpha1.ApplicationBundle) {
			b.Spec.Layers[1].Name = "net"
			b.Spec.Layers[0].When = "inputs.on"
			b.Spec.Layers[0].TeardownAfter = []string{}
		}, []string{
			"base added when:  -> inputs.on", "base added teardownAfter:  -> nothing",
			"net added layer:  -> 1 application", "net moved application mesh: mesh -> net", "mesh removed layer: 1 application -> ",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			written := []string{"base proxy@1.0.0 dns@1.0.0", "mesh mesh@1.0.0"}
			a, b := bundle("1.0.0", "", written...), bundle("1.0.0", "", written...)
			c.change(a, b)
			w := fleet.World{Now: testNow, Applications: []*v1alpha1.HelmApplication{app("dns", "1.0.0", "2.0.0")}}
			var got []string
			for _, change := range Diff(w, a, b) {
				got = append(got, fmt.Sprintf("%s %s %s: %s -> %s", change.Layer, change.Verb, change.What, change.From, change.To))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

// What differs from A to B differs from B to A, and nothing from A to A.
func TestDiffBothWays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := func(label string) *v1alpha1.ApplicationBundle {
			var written []string
			for _, layer := range []string{"a", "b", "c"} {
				text := layer
				for _, app := range []string{"x", "y"} {
					if rapid.Bool().Draw(t, label+layer+app) {
						text += fmt.Sprintf(" %s%s@%d.0.0", layer, app, rapid.IntRange(1, 2).Draw(t, "version"))
					}
				}
				if text != layer {
					written = append(written, text)
				}
			}
			return bundle("1.0.0", "", written...)
		}
		a, b := some("a"), some("b")
		if there, back := len(Diff(fleet.World{}, a, b)), len(Diff(fleet.World{}, b, a)); there != back {
			t.Fatalf("there are %d changes there, and %d back", there, back)
		}
		if changes := Diff(fleet.World{}, a, a); len(changes) > 0 {
			t.Fatalf("it differs from itself: %+v", changes)
		}
	})
}
