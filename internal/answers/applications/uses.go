// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package applications

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/fleet"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/platforms"
)

// use is who has a version of an application.
type use struct{ bundles, platforms, clusters, layers fleet.Set }

// usesOf returns who has which version of which application: as bundles list them,
// and as layers were made of those.
func usesOf(w fleet.World) map[string]map[string]use {
	all := map[string]map[string]use{}
	of := func(app v1alpha1.BundleApplication) use {
		name, version := cmp.Or(app.Application, app.Name), catalogue.Plain(app.Version)
		if all[name] == nil {
			all[name] = map[string]use{}
		}
		if all[name][version].bundles == nil {
			all[name][version] = use{fleet.Set{}, fleet.Set{}, fleet.Set{}, fleet.Set{}}
		}
		return all[name][version]
	}
	for _, bundle := range w.Bundles {
		for _, layer := range bundle.Spec.Layers {
			for _, app := range ofCatalogue(layer.Applications) {
				of(app).bundles.Add(bundle.Name)
			}
		}
	}
	for _, layer := range w.Layers {
		_, from := w.LayerOf(layer)
		if from == nil {
			continue
		}
		for _, app := range ofCatalogue(from.Applications) {
			use := of(app)
			use.layers.Add(layer.Name)
			use.clusters.Add(w.ClusterOf(layer))
			if platform := layer.Labels[v1alpha1.PlatformLabel]; platform != "" {
				use.platforms.Add(platform)
			}
		}
	}
	return all
}

// ofCatalogue returns the applications that have no chart of their own.
func ofCatalogue(all []v1alpha1.BundleApplication) []v1alpha1.BundleApplication {
	return slices.DeleteFunc(slices.Clone(all), func(app v1alpha1.BundleApplication) bool { return app.Chart != nil })
}

// testedIn returns the newest version of each application that is in a bundle which
// anybody may be given.
func testedIn(w fleet.World) map[string]string {
	found := map[string]string{}
	released := map[string]bool{}
	for _, family := range w.Families() {
		for _, release := range platforms.Releases(platforms.Observation{Bundles: w.Bundles, Catalogue: w.Catalogue()}, family) {
			ended := !release.EndOfLife.IsZero() && !w.Now.Before(release.EndOfLife)
			released[family+"@"+release.Version] = !release.Preview && !release.Withdrawn && !ended && release.Uninstallable == ""
		}
	}
	for _, bundle := range w.Bundles {
		if fleet.IsMade(bundle) || !released[bundle.Spec.Family+"@"+bundle.Spec.Version] {
			continue
		}
		for _, layer := range bundle.Spec.Layers {
			for _, app := range ofCatalogue(layer.Applications) {
				name := cmp.Or(app.Application, app.Name)
				if found[name] == "" || fleet.Compare(found[name], app.Version) < 0 {
					found[name] = app.Version
				}
			}
		}
	}
	return found
}

// Days reads how long something is: as 90d, or as Go writes it, such as 36h.
func Days(text string) (time.Duration, error) {
	if number, is := strings.CutSuffix(text, "d"); is {
		days, err := strconv.Atoi(number)
		if err == nil && days >= 0 && days < 100000 {
			return time.Duration(days) * 24 * time.Hour, nil
		}
		return 0, fmt.Errorf("%q is no time such as 90d or 36h", text)
	}
	found, err := time.ParseDuration(text)
	if err != nil || found < 0 {
		return 0, fmt.Errorf("%q is no time such as 90d or 36h", text)
	}
	return found, nil
}
