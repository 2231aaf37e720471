// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/layers"
)

// The states of what hangs below a layer, beside those of its inventory.
const (
	// Ready is as it should be.
	Ready = "Ready"
	// Missing does not exist.
	Missing = "Missing"
	// NotRead could not be looked at, or is none of our business.
	NotRead = "NotRead"
)

// Layer is a layer with all that it is made of. No list is nil.
type Layer struct {
	Name string `json:"name"`
	// Version that is deployed, with what is wanted behind -> where they differ.
	Version string `json:"version"`
	State   string `json:"state"`
	// Ready counts releases that are ready, of those that must be: 2/3.
	Ready string `json:"ready"`
	// Cluster as namespace/name of a RemoteCluster; empty for this one.
	Cluster string `json:"cluster,omitempty"`
	// Message where it is not deployed, or something about it is notable.
	Message  string    `json:"message,omitempty"`
	Gates    []Gate    `json:"gates"`
	Releases []Release `json:"releases"`
	// Objects that the layer lists beside its releases.
	Objects []Object `json:"objects"`
}

// Release is a HelmRelease of a layer.
type Release struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Version of the chart; empty where it is not known.
	Version string `json:"version,omitempty"`
	State   string `json:"state"`
	// Message where it is not ready.
	Message string `json:"message,omitempty"`
	// Cluster that it installs on, where that is another one.
	Cluster string `json:"cluster,omitempty"`
	// Objects that Helm has made.
	Objects []Object `json:"objects"`
}

// Object is an object of a layer, or of one of its releases.
type Object struct {
	Kind      string `json:"kind"`
	Group     string `json:"group,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Cluster   string `json:"cluster,omitempty"`
	// State is empty where objects are not looked at.
	State   string `json:"state,omitempty"`
	Message string `json:"message,omitempty"`
}

// Live is what was read of the objects that Helm has made.
type Live struct {
	Objects map[dependents.ID]*unstructured.Unstructured
	// Unread says of kinds why their objects are not there, such as a lacking
	// right.
	Unread map[string]string
}

// Tree returns what a layer is made of. Live is nil where objects are not looked
// at. Depth is that of Node: dependencies of dependencies begin at 2.
func Tree(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer, live *Live, depth int) Layer {
	row := summary.Of(layer, s.Now)
	tree := Layer{
		Name: layer.Name, Version: row.Version, State: row.State, Ready: row.Ready, Message: row.Why,
		Gates: gatesOf(s, layer, live, depth), Releases: []Release{}, Objects: []Object{},
	}
	if row.Cluster != "-" {
		tree.Cluster = row.Cluster
	}
	for _, entry := range inOrder(layers.Inventory(layer.Status.Resources, nil)) {
		if dependents.IsReleaseKind(entry.ID.GroupKind()) {
			tree.Releases = append(tree.Releases, releaseOf(s, entry, live))
			continue
		}
		tree.Objects = append(tree.Objects, Object{
			Kind: entry.ID.Kind, Group: entry.ID.Group, Namespace: entry.ID.Namespace, Name: entry.ID.Name, Cluster: entry.ID.Cluster,
			State: asReady(entry.Status),
		})
	}
	return tree
}

// asReady tells an object that is as it should be from a layer that is deployed.
func asReady(status string) string {
	if status == dependents.StatusReady {
		return Ready
	}
	return status
}

// inOrder sorts an inventory in the order in which it is deployed: by rank, then
// what others wait for before those.
func inOrder(entries []dependents.Entry) []dependents.Entry {
	byID := map[dependents.ID]dependents.Entry{}
	for _, entry := range entries {
		byID[entry.ID] = entry
	}
	depths := map[dependents.ID]int{}
	var depth func(id dependents.ID, path []dependents.ID) int
	depth = func(id dependents.ID, path []dependents.ID) int {
		entry, known := byID[id]
		if at, seen := depths[id]; seen || !known || slices.Contains(path, id) {
			return at
		}
		deepest := 0
		for _, on := range entry.DependsOn {
			if _, known := byID[on]; known {
				deepest = max(deepest, 1+depth(on, append(slices.Clone(path), id)))
			}
		}
		depths[id] = deepest
		return deepest
	}
	for _, entry := range entries {
		depth(entry.ID, nil)
	}
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, func(a, b dependents.Entry) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(depths[a.ID], depths[b.ID]), a.ID.Compare(b.ID))
	})
	return sorted
}

// releaseOf returns a HelmRelease of an inventory. Where it is not ready, what it
// says of itself is more than the word in the inventory.
func releaseOf(s *snapshot.Snapshot, entry dependents.Entry, live *Live) Release {
	release := Release{Namespace: entry.ID.Namespace, Name: entry.ID.Name, State: asReady(entry.Status), Objects: []Object{}}
	object := s.Objects[entry.ID]
	if object == nil {
		_, unread := s.Unread[snapshot.Releases]
		if !unread && entry.ID.Cluster == "" && entry.Status != dependents.StatusMissing {
			release.State = Missing
		}
		release.Cluster = entry.ID.Cluster
		return release
	}
	release.Version, release.Cluster = ChartVersion(object), elsewhere(object)
	if release.State != Ready {
		_, _, release.Message = ready(object)
	}
	for _, made := range Inventory(object) {
		release.Objects = append(release.Objects, objectOf(made, release.Cluster, live))
	}
	return release
}

// objectOf returns an object that Helm has made, with its state where it was
// looked at.
func objectOf(made Made, cluster string, live *Live) Object {
	object := Object{Kind: made.Kind, Group: made.Group, Namespace: made.Namespace, Name: made.Name, Cluster: cluster}
	switch {
	case live == nil:
		return object
	case cluster != "":
		object.State, object.Message = NotRead, "is on "+cluster
		return object
	}
	if why, unread := live.Unread[made.GroupKind().String()]; unread {
		object.State, object.Message = NotRead, why
		return object
	}
	is := live.Objects[made.ID]
	if is == nil {
		object.State = Missing
		return object
	}
	standing := dependents.AssessObject("", is)
	object.State, object.Message = asReady(standing.Status), standing.Said
	return object
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

// ready returns the condition Ready of an object.
func ready(object *unstructured.Unstructured) (status, reason, message string) {
	found := conditionOf(object, "Ready")
	return found["status"], found["reason"], found["message"]
}

// conditionOf returns the texts of a condition; nothing where there is none.
func conditionOf(object *unstructured.Unstructured, kind string) map[string]string {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "conditions")
	conditions, _ := value.([]any)
	for _, item := range conditions {
		fields, _ := item.(map[string]any)
		if fields["type"] != kind {
			continue
		}
		texts := map[string]string{}
		for key, value := range fields {
			if text, is := value.(string); is {
				texts[key] = text
			}
		}
		return texts
	}
	return nil
}

// named returns namespace/name, or the name alone.
func named(namespace, name string) string {
	return strings.TrimPrefix(namespace+"/"+name, "/")
}
