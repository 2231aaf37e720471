// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package releases reads what HelmReleases say of themselves: what Helm has made for
// them, where, and in which version. It may import snapshot, and reads nothing but
// objects that it is given.
package releases

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/hooks"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// The labels by which helm-controller's objects name their HelmRelease.
const (
	NameLabel      = "helm.toolkit.fluxcd.io/name"
	NamespaceLabel = "helm.toolkit.fluxcd.io/namespace"
)

// Made is an object that Helm has made for a release.
type Made struct {
	objects.ID
	// Version in which Helm has written it.
	Version string
}

// Inventory returns what Helm has made for a HelmRelease, as its status lists it,
// in the order of IDs. Entries that cannot be read are left out.
func Inventory(release *unstructured.Unstructured) []Made {
	var made []Made
	for _, each := range kinds.InventoryOf(release) {
		made = append(made, Made{each.ID, each.Version})
	}
	slices.SortFunc(made, func(a, b Made) int {
		return cmp.Or(a.Compare(b.ID), strings.Compare(a.Version, b.Version))
	})
	return slices.Compact(made)
}

// Kinds returns the kinds of objects, each once and in order, with the namespace
// that all of a kind are in; empty where they are in several, or in none.
func Kinds(made []Made) []Wanted {
	namespaces := map[schema.GroupVersionKind]map[string]bool{}
	for _, each := range made {
		gvk := each.GroupKind().WithVersion(each.Version)
		if namespaces[gvk] == nil {
			namespaces[gvk] = map[string]bool{}
		}
		namespaces[gvk][each.Namespace] = true
	}
	wanted := make([]Wanted, 0, len(namespaces))
	for gvk, in := range namespaces {
		kind := Wanted{GroupVersionKind: gvk}
		if len(in) == 1 {
			kind.Namespace = slices.Collect(maps.Keys(in))[0]
		}
		wanted = append(wanted, kind)
	}
	slices.SortFunc(wanted, func(a, b Wanted) int { return strings.Compare(a.String(), b.String()) })
	return wanted
}

// Wanted is a kind of which objects are to be read.
type Wanted struct {
	schema.GroupVersionKind
	// Namespace to read them in; empty for all.
	Namespace string
}

// Elsewhere names the cluster that a HelmRelease installs on; empty for the one
// that it is on itself.
func Elsewhere(release *unstructured.Unstructured) string {
	if _, set, _ := unstructured.NestedMap(release.Object, "spec", "kubeConfig"); !set {
		return ""
	}
	return cmp.Or(layers.TargetOf(release), "the cluster of its kubeconfig")
}

// IsElsewhere tells whether what a HelmRelease installs is on another cluster.
func IsElsewhere(release *unstructured.Unstructured) bool { return Elsewhere(release) != "" }

// Looks returns the kinds of what Helm has made on this cluster for layers, and of
// what they wait for.
func Looks(s *snapshot.Snapshot, chosen []*v1alpha1.AddonsLayer) []Wanted {
	var made []Made
	for _, layer := range chosen {
		for _, entry := range layers.Inventory(layer.Status.Resources, nil) {
			if release := s.Objects[entry.ID]; release != nil && objects.IsReleaseKind(entry.ID.GroupKind()) && !IsElsewhere(release) {
				made = append(made, Inventory(release)...)
			}
		}
		if layer.Spec.Cluster != nil {
			continue
		}
		for _, wait := range hooks.Waits(layer, "") {
			if id, version, err := wait.ID(""); err == nil {
				made = append(made, Made{id, version})
			}
		}
	}
	return Kinds(made)
}

// Live is what was read of the objects that Helm has made.
type Live struct {
	Objects map[objects.ID]*unstructured.Unstructured
	// Unread says of kinds why their objects are not there, such as a lacking
	// right.
	Unread map[string]string
}

// ChartVersion returns the version of the chart that a HelmRelease has installed,
// or is to install.
func ChartVersion(release *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedFieldNoCopy(release.Object, "status", "history")
	history, _ := value.([]any)
	if len(history) > 0 {
		if last, is := history[0].(map[string]any); is {
			if version, _ := last["chartVersion"].(string); version != "" {
				return version
			}
		}
	}
	attempted, _, _ := unstructured.NestedString(release.Object, "status", "lastAttemptedRevision")
	wanted, _, _ := unstructured.NestedString(release.Object, "spec", "chart", "spec", "version")
	return cmp.Or(attempted, wanted)
}

// Named returns a HelmRelease, or nil.
func Named(s *snapshot.Snapshot, namespace, name string) *unstructured.Unstructured {
	return s.Objects[objects.ID{Group: kinds.HelmReleaseKind.Group, Kind: "HelmRelease", Namespace: namespace, Name: name}]
}
