// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// Inventory reads the objects of a layer from its status, and adds what
// follows from their kinds and from the live objects.
func Inventory(resources []v1alpha1.Resource, live map[objects.ID]*unstructured.Unstructured) []dependents.Entry {
	entries := make([]dependents.Entry, 0, len(resources))
	for _, resource := range resources {
		gk := kinds.ParseResourceKind(resource.Kind)
		id := objects.ID{Cluster: resource.Cluster, Group: gk.Group, Kind: gk.Kind, Namespace: resource.Namespace, Name: resource.Name}
		entry := dependents.Entry{
			ID: id, Digest: resource.Digest, UID: resource.UID, Generation: resource.Generation, ResourceVersion: resource.ResourceVersion, Fields: resource.Fields,
			Completed: resource.Completed, Status: resource.Status, Since: resource.LastTransitionTime.Time, Origin: resource.File,
		}
		for _, name := range resource.DependsOn {
			on := id
			on.Name = name
			if namespace, name, elsewhere := strings.Cut(name, "/"); elsewhere {
				on.Namespace, on.Name = namespace, name
			}
			entry.DependsOn = append(entry.DependsOn, on)
		}
		entries = append(entries, entryOf(entry, live[id]))
	}
	return entries
}

// entryOf adds to an inventory entry what follows from its kind and from the
// live object, which may be nil.
func entryOf(entry dependents.Entry, live *unstructured.Unstructured) dependents.Entry {
	gk := entry.ID.GroupKind()
	entry.Rank = kinds.RankOf(gk)
	if live != nil {
		entry.Deletion, entry.Spared = kinds.DeletionOf(gk, live)
		entry.Assess = kinds.AssessOf(live)
		entry.Target = TargetOf(live)
	}
	return entry
}

// Resources writes an inventory as it stands in a layer's status, sorted by
// namespace, name and kind as Kraan does.
func Resources(entries []dependents.Entry) []v1alpha1.Resource {
	resources := make([]v1alpha1.Resource, 0, len(entries))
	for _, entry := range entries {
		resource := v1alpha1.Resource{
			Cluster: entry.ID.Cluster, Namespace: entry.ID.Namespace, Name: entry.ID.Name, Kind: kinds.ResourceKind(entry.ID.GroupKind()),
			Status: entry.Status, LastTransitionTime: metav1.NewTime(entry.Since.Truncate(time.Second)),
			Digest: entry.Digest, UID: entry.UID, Generation: entry.Generation, ResourceVersion: entry.ResourceVersion, Fields: entry.Fields,
			Completed: entry.Completed, File: entry.Origin,
		}
		for _, on := range entry.DependsOn {
			if on.GroupKind() != entry.ID.GroupKind() {
				continue // what is read and not owned outlives nothing
			}
			name := on.Name
			if on.Namespace != entry.ID.Namespace {
				name = on.Namespace + "/" + on.Name
			}
			resource.DependsOn = append(resource.DependsOn, name)
		}
		resources = append(resources, resource)
	}
	slices.SortFunc(resources, func(a, b v1alpha1.Resource) int {
		return cmp.Or(
			strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Name, b.Name),
			strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Cluster, b.Cluster),
		)
	})
	return resources
}

// shortFiles takes the layer's directory off the names of files, so that the
// status of a layer of many objects stays small.
func shortFiles(layer *v1alpha1.AddonsLayer, resources []v1alpha1.Resource) []v1alpha1.Resource {
	for i := range resources {
		resources[i].File = strings.TrimPrefix(resources[i].File, directoryOf(layer))
	}
	return resources
}

// longFiles reverses shortFiles.
func longFiles(layer *v1alpha1.AddonsLayer, entries []dependents.Entry) []dependents.Entry {
	for i := range entries {
		if entries[i].Origin != "" {
			entries[i].Origin = directoryOf(layer) + entries[i].Origin
		}
	}
	return entries
}

// directoryOf returns a layer's directory as the names of its files begin.
func directoryOf(layer *v1alpha1.AddonsLayer) string {
	directory := path.Clean(layer.Spec.Source.Path)
	if directory == "." {
		return ""
	}
	return directory + "/"
}
