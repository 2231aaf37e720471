// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree says what a layer is made of: the gates before it, its releases, and
// what Helm has made for these. It may import snapshot, releases and summary, and
// reads nothing but objects that it is given.
package tree

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/releases"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
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
	// Claims are the CapabilityClaims of the layer, which come before the releases that
	// need them.
	Claims []Claim `json:"claims"`
}

// Claim is a CapabilityClaim of a layer.
type Claim struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Capability that is claimed, as category/type; empty where the claim was not read.
	Capability string `json:"capability,omitempty"`
	// Provider and Version that serve it; empty for none.
	Provider string `json:"provider,omitempty"`
	Version  string `json:"version,omitempty"`
	State    string `json:"state"`
	// Message where it is not ready.
	Message string `json:"message,omitempty"`
	// Objects that were made for it, as its status lists them.
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

// Of returns what a layer is made of. releases.Live is nil where objects are not looked
// at. Depth is that of printing: dependencies of dependencies begin at 2.
func Of(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer, live *releases.Live, depth int) Layer {
	row := summary.Of(layer, s.Now)
	tree := Layer{
		Name: layer.Name, Version: row.Version, State: row.State, Ready: row.Ready, Message: row.Why,
		Gates: gatesOf(s, layer, live, depth), Releases: []Release{}, Objects: []Object{}, Claims: []Claim{},
	}
	if row.Cluster != "-" {
		tree.Cluster = row.Cluster
	}
	for _, entry := range inOrder(layers.Inventory(layer.Status.Resources, nil)) {
		if objects.IsReleaseKind(entry.ID.GroupKind()) {
			tree.Releases = append(tree.Releases, releaseOf(s, entry, live))
			continue
		}
		if entry.ID.Group == v1alpha1.GroupVersion.Group && entry.ID.Kind == v1alpha1.CapabilityClaimKind && entry.ID.Cluster == "" {
			tree.Claims = append(tree.Claims, claimOf(s, entry))
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
	if status == objects.StatusReady {
		return Ready
	}
	return status
}

// inOrder sorts an inventory in the order in which it is deployed: by rank, then
// what others wait for before those.
func inOrder(entries []dependents.Entry) []dependents.Entry {
	byID := map[objects.ID]dependents.Entry{}
	for _, entry := range entries {
		byID[entry.ID] = entry
	}
	depths := map[objects.ID]int{}
	var depth func(id objects.ID, path []objects.ID) int
	depth = func(id objects.ID, path []objects.ID) int {
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
func releaseOf(s *snapshot.Snapshot, entry dependents.Entry, live *releases.Live) Release {
	release := Release{Namespace: entry.ID.Namespace, Name: entry.ID.Name, State: asReady(entry.Status), Objects: []Object{}}
	object := s.Objects[entry.ID]
	if object == nil {
		_, unread := s.Unread[snapshot.Releases]
		if !unread && entry.ID.Cluster == "" && entry.Status != objects.StatusMissing {
			release.State = Missing
		}
		release.Cluster = entry.ID.Cluster
		return release
	}
	release.Version, release.Cluster = releases.ChartVersion(object), releases.Elsewhere(object)
	if release.State != Ready {
		_, _, release.Message = snapshot.Ready(object)
	}
	for _, made := range releases.Inventory(object) {
		release.Objects = append(release.Objects, objectOf(made, release.Cluster, live))
	}
	return release
}

// claimOf returns a CapabilityClaim of an inventory, with what was made for it.
func claimOf(s *snapshot.Snapshot, entry dependents.Entry) Claim {
	claim := Claim{Namespace: entry.ID.Namespace, Name: entry.ID.Name, State: asReady(entry.Status), Objects: []Object{}}
	at := slices.IndexFunc(s.Claims, func(c *v1alpha1.CapabilityClaim) bool {
		return c.Namespace == entry.ID.Namespace && c.Name == entry.ID.Name
	})
	if at < 0 {
		if _, unread := s.Unread[snapshot.Claims]; !unread && entry.Status != objects.StatusMissing {
			claim.State = Missing
		}
		return claim
	}
	live := s.Claims[at]
	claim.Capability, claim.Provider, claim.Version = live.Spec.Capability, live.Status.Provider, live.Status.Version
	if ready := meta.FindStatusCondition(live.Status.Conditions, v1alpha1.ReadyCondition); ready != nil && ready.Status != metav1.ConditionTrue {
		claim.Message = ready.Message
	}
	for _, made := range live.Status.Objects {
		claim.Objects = append(claim.Objects, Object{
			Kind: made.Kind, Group: made.Group, Namespace: made.Namespace, Name: made.Name, Cluster: made.Cluster, State: asReady(made.Status), Message: made.Message,
		})
	}
	return claim
}

// objectOf returns an object that Helm has made, with its state where it was
// looked at.
func objectOf(made releases.Made, cluster string, live *releases.Live) Object {
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
	standing := objects.AssessObject("", is)
	object.State, object.Message = asReady(standing.Status), standing.Said
	return object
}
