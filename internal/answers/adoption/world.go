// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/sources"
)

// World is what there is on a cluster, and what layers list, as far as it matters
// to what becomes of releases.
type World struct {
	Now time.Time
	// Version of the API server; empty where it is not known.
	Version string
	// Namespace of sources whose namespace is not given.
	Namespace string
	// Live holds all HelmReleases and HelmRepositories of the cluster, and whatever
	// else the directories list that is there.
	Live map[objects.ID]*unstructured.Unstructured
	// Layers holds all layers.
	Layers []*v1alpha1.AddonsLayer
	// Directories holds what layers list, by their names; a layer without one could
	// not be read.
	Directories map[string]*directories.Directory
	// Scopes of the kinds that directories list.
	Scopes map[objects.ServedKind]objects.Scope
}

// Look returns what the controller would do for a layer at its first look, were
// its directory what its source holds, and all that it depends on deployed: the
// order of layers changes when something is done, and not what.
func (w World) Look(layer *v1alpha1.AddonsLayer) layers.Decision {
	return layers.Decide(w.observe(layer))
}

func (w World) observe(layer *v1alpha1.AddonsLayer) layers.Observation {
	layer = layer.DeepCopy()
	layer.Spec.Prereqs.DependsOn = nil
	directory := w.Directories[layer.Name]
	o := layers.Observation{
		Now: w.Now, Settings: layers.Settings{Interval: time.Minute, Namespace: w.Namespace, MaxPrunePercent: 50}, Layer: layer, Layers: map[string]layers.Other{},
		ObservedSource: layers.ObservedSource{
			Source: &layers.Source{Generation: 1, ObservedGeneration: 1, Revision: directory.Revision, Digest: directory.Digest, Ready: true},
		},
		ObservedContents: layers.ObservedContents{Directory: directory},
		ObservedClusters: layers.ObservedClusters{ClusterVersion: cmp.Or(w.Version, "v0.0.0"), Scopes: w.Scopes},
		ObservedObjects: layers.ObservedObjects{
			Live:      map[objects.ID]*unstructured.Unstructured{},
			Stale:     map[objects.ID]bool{},
			Exclusive: map[string][]objects.ID{},
		},
	}
	w.observeObjects(&o)
	w.observeOthers(&o)
	return o
}

// observeObjects adds the objects in question: those that the layer lists, or has,
// and those that stand for the same Helm releases.
func (w World) observeObjects(o *layers.Observation) {
	see := func(id objects.ID) {
		if live := w.Live[id]; live != nil {
			o.Live[id] = live
		}
	}
	for _, manifest := range o.Directory.Manifests {
		see(manifest.ID())
	}
	for _, entry := range layers.Inventory(o.Layer.Status.Resources, nil) {
		see(entry.ID)
	}
	for _, id := range w.Taken(o.Layer.Name) {
		see(id)
		o.Taken = append(o.Taken, id)
	}
	identities := layers.ListingOf(o.Directory).Exclusive
	for id, live := range w.Live {
		if id.GroupKind() != kinds.HelmReleaseKind {
			continue
		}
		identity := kinds.HelmReleaseIdentity(live)
		if _, listed := identities[identity]; listed || o.Live[id] != nil {
			see(id)
			o.Exclusive[identity] = objects.SortIDs(append(o.Exclusive[identity], id))
		}
	}
}

// Taken returns the HelmReleases and HelmRepositories that Kraan's ownerReferences
// give to a layer, in order.
func (w World) Taken(layer string) []objects.ID {
	var taken []objects.ID
	for id, live := range w.Live {
		if gk := id.GroupKind(); gk != kinds.HelmReleaseKind && gk != kinds.HelmRepositoryKind {
			continue
		}
		if FormerLayer(live) == layer {
			taken = append(taken, id)
		}
	}
	return objects.SortIDs(taken)
}

// FormerLayer returns the layer that an ownerReference of Kraan gives an object
// to; empty where there is none.
func FormerLayer(live *unstructured.Unstructured) string {
	for _, owner := range live.GetOwnerReferences() {
		if dependents.HasOwner(live, layers.Keys) && owner.Kind == layers.Keys.FormerOwner.Kind {
			return owner.Name
		}
	}
	return ""
}

func (w World) observeOthers(o *layers.Observation) {
	o.Others = dependents.Others{
		Listed: map[objects.ID][]dependents.Claim{}, Exclusive: map[string][]dependents.Claim{},
		Existing: map[string]bool{}, Unreadable: map[string]bool{},
	}
	for _, other := range w.Layers {
		if other.Name == o.Layer.Name {
			continue
		}
		o.Others.Existing[other.Name] = true
		o.AddHeld(&o.Others, other)
		directory := w.Directories[other.Name]
		if directory == nil {
			o.Others.Unreadable[other.Name] = true
			if sources.Of(other, w.Namespace) == sources.Of(o.Layer, w.Namespace) {
				o.AddDoubt(&o.Others, other.Name, directories.Mentions{Unknown: "it is not known what it lists"})
			}
			continue
		}
		o.AddClaims(&o.Others, other.Name, layers.ListingOf(directory))
	}
}

// FluxScopes are the scopes of the kinds that import writes.
func FluxScopes() map[objects.ServedKind]objects.Scope {
	return map[objects.ServedKind]objects.Scope{
		{GroupKind: kinds.HelmReleaseKind}:    objects.ScopeNamespaced,
		{GroupKind: kinds.HelmRepositoryKind}: objects.ScopeNamespaced,
	}
}
