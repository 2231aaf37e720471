// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/platforms"
)

// Home is how the cluster is called that Strata runs in. No RemoteCluster can be
// named so.
const Home = "(home)"

// World is what was read of a management cluster. Nothing in it is changed.
type World struct {
	Now time.Time
	// Namespace is the controller's own, that of clusters whose namespace is not
	// given.
	Namespace    string
	Applications []*v1alpha1.HelmApplication
	Bundles      []*v1alpha1.ApplicationBundle
	Platforms    []*v1alpha1.Platform
	Layers       []*v1alpha1.AddonsLayer
	Clusters     []*v1alpha1.RemoteCluster
}

func (w World) catalogue() map[string]*v1alpha1.HelmApplication {
	all := map[string]*v1alpha1.HelmApplication{}
	for _, app := range w.Applications {
		all[app.Name] = app
	}
	return all
}

// Bundle returns a bundle by its name, or nil.
func (w World) Bundle(name string) *v1alpha1.ApplicationBundle {
	for _, bundle := range w.Bundles {
		if bundle.Name == name {
			return bundle
		}
	}
	return nil
}

// FindBundle returns the bundle that somebody names by its name, or as
// FAMILY@VERSION; nil where there is none.
func (w World) FindBundle(name string) *v1alpha1.ApplicationBundle {
	if bundle := w.Bundle(name); bundle != nil {
		return bundle
	}
	family, version, is := strings.Cut(name, "@")
	for _, bundle := range w.Bundles {
		if is && bundle.Spec.Family == family && catalogue.Plain(bundle.Spec.Version) == catalogue.Plain(version) {
			return bundle
		}
	}
	return nil
}

// BundleNames returns the names of all bundles, and how versions of their families
// are named.
func (w World) BundleNames() []string {
	names := set{}
	for _, bundle := range w.Bundles {
		names.add(bundle.Name)
		names.add(bundle.Spec.Family + "@" + bundle.Spec.Version)
	}
	return names.sorted()
}

// Families returns the families that there are, but for those made for Platforms.
func (w World) Families() []string {
	names := set{}
	for _, bundle := range w.Bundles {
		if !isMade(bundle) {
			names.add(bundle.Spec.Family)
		}
	}
	return names.sorted()
}

// isMade tells whether a bundle was made for the picked applications of a Platform.
func isMade(bundle *v1alpha1.ApplicationBundle) bool {
	return bundle.Labels[v1alpha1.PlatformLabel] != ""
}

// clusterOf names the cluster that a layer belongs on.
func (w World) clusterOf(layer *v1alpha1.AddonsLayer) string {
	return NameOf(layers.PlaceOf(layer, w.Namespace))
}

// NameOf names a cluster.
func NameOf(cluster types.NamespacedName) string { return cmp.Or(layers.ClusterName(cluster), Home) }

// bundleOf returns the bundle that a layer is made of, and the layer of that; nil
// where it is made of none, or of one that is not there.
func (w World) bundleOf(layer *v1alpha1.AddonsLayer) (*v1alpha1.ApplicationBundle, *v1alpha1.BundleLayer) {
	source := layer.Spec.Source
	if source.Kind != v1alpha1.ApplicationBundleKind {
		return nil, nil
	}
	bundle := w.Bundle(source.Name)
	if bundle == nil {
		return nil, nil
	}
	return bundle, bundles.LayerOf(bundle, strings.TrimPrefix(source.Path, "./"))
}

// appVersionOf returns the version of the catalogue that a bundle names; nil where
// there is none.
func (w World) appVersionOf(app v1alpha1.BundleApplication) *v1alpha1.HelmApplicationVersion {
	for _, entry := range w.Applications {
		if entry.Name == cmp.Or(app.Application, app.Name) {
			return catalogue.VersionOf(entry, app.Version)
		}
	}
	return nil
}

// use is who has a version of an application.
type use struct{ bundles, platforms, clusters, layers set }

// uses returns who has which version of which application: as bundles list them,
// and as layers were made of those.
func (w World) uses() map[string]map[string]use {
	all := map[string]map[string]use{}
	of := func(app v1alpha1.BundleApplication) use {
		name, version := cmp.Or(app.Application, app.Name), catalogue.Plain(app.Version)
		if all[name] == nil {
			all[name] = map[string]use{}
		}
		if all[name][version].bundles == nil {
			all[name][version] = use{set{}, set{}, set{}, set{}}
		}
		return all[name][version]
	}
	for _, bundle := range w.Bundles {
		for _, layer := range bundle.Spec.Layers {
			for _, app := range layer.Applications {
				of(app).bundles.add(bundle.Name)
			}
		}
	}
	for _, layer := range w.Layers {
		_, from := w.bundleOf(layer)
		if from == nil {
			continue
		}
		for _, app := range from.Applications {
			use := of(app)
			use.layers.add(layer.Name)
			use.clusters.add(w.clusterOf(layer))
			if platform := layer.Labels[v1alpha1.PlatformLabel]; platform != "" {
				use.platforms.add(platform)
			}
		}
	}
	return all
}

// tested returns the newest version of each application that is in a bundle which
// anybody may be given.
func (w World) tested() map[string]string {
	found := map[string]string{}
	released := map[string]bool{}
	for _, family := range w.Families() {
		for _, release := range platforms.Releases(platforms.Observation{Bundles: w.Bundles, Catalogue: w.catalogue()}, family) {
			ended := !release.EndOfLife.IsZero() && !w.Now.Before(release.EndOfLife)
			released[family+"@"+release.Version] = !release.Preview && !release.Withdrawn && !ended && release.Uninstallable == ""
		}
	}
	for _, bundle := range w.Bundles {
		if isMade(bundle) || !released[bundle.Spec.Family+"@"+bundle.Spec.Version] {
			continue
		}
		for _, layer := range bundle.Spec.Layers {
			for _, app := range layer.Applications {
				name := cmp.Or(app.Application, app.Name)
				if found[name] == "" || compare(found[name], app.Version) < 0 {
					found[name] = app.Version
				}
			}
		}
	}
	return found
}

// set is a set of names.
type set map[string]bool

func (s set) add(name string) { s[name] = true }

// sorted returns the names; never nil.
func (s set) sorted() []string { return append([]string{}, slices.Sorted(maps.Keys(s))...) }

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
