// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package applications

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

func TestAppsInUse(t *testing.T) {
	past := &metav1.Time{Time: testNow.Add(-time.Hour)}
	soon := &metav1.Time{Time: testNow.Add(24 * time.Hour)}
	dns := app("dns", "1.0.0", "1.1.0", "1.2.0", "2.0.0-rc.1")
	dns.Spec.Versions[0].EndOfLife, dns.Spec.Versions[1].EndOfLife = past, soon
	layer := func(name, from, cluster string) *v1alpha1.AddonsLayer {
		l := &v1alpha1.AddonsLayer{}
		l.Name, l.Labels = name, map[string]string{v1alpha1.PlatformLabel: "p"}
		l.Spec.Source = v1alpha1.SourceSpec{Kind: v1alpha1.ApplicationBundleKind, Name: from, Path: "./net"}
		if cluster != "" {
			l.Spec.Cluster = &v1alpha1.ClusterReference{Name: cluster}
		}
		return l
	}
	w := fleet.World{
		Now: testNow, Namespace: "strata", Applications: []*v1alpha1.HelmApplication{dns},
		Bundles: []*v1alpha1.ApplicationBundle{bundle("1.0.0", "", "net dns@1.0.0"), bundle("1.1.0", "", "net dns@v1.1.0"), bundle("1.2.0", "", "net dns@0.1.0")},
		Layers:  []*v1alpha1.AddonsLayer{layer("a", "base-1.0.0", ""), layer("b", "base-1.1.0", "eu"), layer("c", "base-1.2.0", "us"), layer("d", "gone", "us")},
	}
	apps := Of(w)
	if apps[0].Newest != "1.2.0" || apps[0].Tested != "v1.1.0" {
		t.Errorf("the newest is %s, tested is %s", apps[0].Newest, apps[0].Tested)
	}
	shown := func(f Filter) string {
		var texts []string
		for _, app := range Filtered(apps, f, testNow) {
			for _, v := range app.Versions {
				texts = append(texts, fmt.Sprintf("%s on %s: %s", v.Version, strings.Join(v.Clusters, ","), v.Outdated))
			}
		}
		return strings.Join(texts, "\n")
	}
	if got, want := shown(Filter{Outdated: true}), "1.1.0 on strata/eu: 1.2.0 is newer\n1.0.0 on (home): is past its end of life\n0.1.0 on strata/us: is not in the catalogue any more"; got != want {
		t.Errorf("outdated are\n%s, want\n%s", got, want)
	}
	if got, want := shown(Filter{EndOfLife: time.Hour}), "1.0.0 on (home): is past its end of life"; got != want {
		t.Errorf("ending are\n%s, want\n%s", got, want)
	}
	if got := strings.Count(shown(Filter{EndOfLife: 48 * time.Hour}), "\n"); got != 1 {
		t.Errorf("ending within two days are\n%s", shown(Filter{EndOfLife: 48 * time.Hour}))
	}
}

func TestDays(t *testing.T) {
	for text, want := range map[string]time.Duration{"90d": 90 * 24 * time.Hour, "36h": 36 * time.Hour, "0d": 0} {
		if got, err := Days(text); err != nil || got != want {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "-1d", "-3h", "1.5d", "99999999999d", "soon"} {
		if got, err := Days(text); err == nil || !strings.Contains(err.Error(), "is no time such as 90d or 36h") {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}
