// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet holds what was read of a management cluster: what there is to install,
// and what is installed where. Answers about it are in packages of their own. It reads
// no clock, no cluster and no file; the rules are those of the controller.
package fleet

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/placement"
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

// Catalogue returns the applications by their names.
func (w World) Catalogue() map[string]*v1alpha1.HelmApplication {
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
	names := Set{}
	for _, bundle := range w.Bundles {
		names.Add(bundle.Name)
		names.Add(bundle.Spec.Family + "@" + bundle.Spec.Version)
	}
	return names.Sorted()
}

// Families returns the families that there are, but for those made for Platforms.
func (w World) Families() []string {
	names := Set{}
	for _, bundle := range w.Bundles {
		if !IsMade(bundle) {
			names.Add(bundle.Spec.Family)
		}
	}
	return names.Sorted()
}

// IsMade tells whether a bundle was made for the picked applications of a Platform.
func IsMade(bundle *v1alpha1.ApplicationBundle) bool {
	return bundle.Labels[v1alpha1.PlatformLabel] != ""
}

// ClusterOf names the cluster that a layer belongs on.
func (w World) ClusterOf(layer *v1alpha1.AddonsLayer) string {
	return NameOf(placement.Of(layer, w.Namespace))
}

// NameOf names a cluster.
func NameOf(cluster types.NamespacedName) string { return cmp.Or(placement.ClusterName(cluster), Home) }

// LayerOf returns the bundle that a layer is made of, and the layer of that; nil
// where it is made of none, or of one that is not there.
func (w World) LayerOf(layer *v1alpha1.AddonsLayer) (*v1alpha1.ApplicationBundle, *v1alpha1.BundleLayer) {
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

// VersionOf returns the version of the catalogue that a bundle names, or what it has
// itself; nil where there is none.
func (w World) VersionOf(app v1alpha1.BundleApplication) *v1alpha1.HelmApplicationVersion {
	if own := bundles.OwnVersion(app); own != nil {
		return own
	}
	for _, entry := range w.Applications {
		if entry.Name == cmp.Or(app.Application, app.Name) {
			return catalogue.VersionOf(entry, app.Version)
		}
	}
	return nil
}

// Set is a set of names.
type Set map[string]bool

// Add adds a name.
func (s Set) Add(name string) { s[name] = true }

// Sorted returns the names; never nil.
func (s Set) Sorted() []string { return append([]string{}, slices.Sorted(maps.Keys(s))...) }
