// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objects names objects of clusters, and says how each of them fares by what it
// says of itself. It knows nobody who wants them.
package objects

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ID identifies an object, whatever version it is read in.
type ID struct {
	// Cluster that holds the object, by the name that the primary has for it;
	// empty for the cluster that the primary is on.
	Cluster   string
	Group     string
	Kind      string
	Namespace string
	Name      string
}

// IDOf returns the ID of an object on the primary's own cluster.
func IDOf(obj *unstructured.Unstructured) ID {
	gvk := obj.GroupVersionKind()
	return ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// GroupKind returns the group and kind of the object.
func (id ID) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: id.Group, Kind: id.Kind}
}

// ServedKind is a kind as one cluster serves it.
type ServedKind struct {
	// Cluster as in an ID.
	Cluster string
	schema.GroupKind
}

// ServedVersion is a version of a kind as one cluster serves it.
type ServedVersion struct {
	// Cluster as in an ID.
	Cluster string
	schema.GroupVersionKind
}

// ServedKind returns the kind of the object on its cluster.
func (id ID) ServedKind() ServedKind { return ServedKind{id.Cluster, id.GroupKind()} }

// On returns the ID of the same object on another cluster.
func (id ID) On(cluster string) ID {
	id.Cluster = cluster
	return id
}

// Key returns the namespace and name of the object.
func (id ID) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: id.Namespace, Name: id.Name}
}

// String returns the ID as messages show it: "HelmRelease default/podinfo", and
// "ConfigMap default/flags on fleet/prod" for one of another cluster.
func (id ID) String() string {
	text := id.Kind + " " + id.Name
	if id.Namespace != "" {
		text = id.Kind + " " + id.Namespace + "/" + id.Name
	}
	if id.Cluster != "" {
		text += " on " + id.Cluster
	}
	return text
}

// Compare orders IDs by group, kind, namespace, name and cluster.
func (id ID) Compare(other ID) int {
	return cmp.Or(
		strings.Compare(id.Group, other.Group),
		strings.Compare(id.Kind, other.Kind),
		strings.Compare(id.Namespace, other.Namespace),
		strings.Compare(id.Name, other.Name),
		strings.Compare(id.Cluster, other.Cluster),
	)
}

// SortIDs sorts ids in place and returns them without repetitions.
func SortIDs(ids []ID) []ID {
	slices.SortFunc(ids, ID.Compare)
	return slices.Compact(ids)
}

// IsReleaseKind tells whether a kind stands for something installed, which
// its deletion uninstalls unless it is suspended.
func IsReleaseKind(gk schema.GroupKind) bool {
	return gk == schema.GroupKind{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease"} ||
		gk == schema.GroupKind{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"}
}

// IsStrict tells kinds of whose spec others' fields are taken back: those of Flux, whose
// spec is all git's.
func IsStrict(gk schema.GroupKind) bool { return strings.HasSuffix(gk.Group, ".toolkit.fluxcd.io") }

// IsJobKind tells whether objects of a kind do their work once, and have done it then.
func IsJobKind(gk schema.GroupKind) bool { return gk == schema.GroupKind{Group: "batch", Kind: "Job"} }

// Scope says whether objects of a kind live in a namespace.
type Scope string

// The scopes. The zero value means that the cluster does not serve the kind.
const (
	ScopeUnknown    Scope = ""
	ScopeNamespaced Scope = "Namespaced"
	ScopeCluster    Scope = "Cluster"
)
