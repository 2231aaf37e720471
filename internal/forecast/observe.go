// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/hooks"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/sources"
)

// observeOwned says for whom names that the layer lists are kept.
func (f *future) observeOwned(o *layers.Observation) {
	if f.world.Owned == nil || o.Directory == nil {
		return
	}
	o.Owned = map[objects.ID]string{}
	for _, manifest := range o.Directory.Manifests {
		if why := f.world.Owned(manifest.ID()); why != "" {
			o.Owned[manifest.ID()] = why
		}
	}
}

// observe gathers what the rules decide from, as the controller does from its
// caches.
func (f *future) observe(layer *v1alpha1.AddonsLayer) *layers.Observation {
	content := f.contents[layer.Name]
	o := &layers.Observation{
		Now: f.now, Settings: f.world.Settings, Layer: layer, Layers: map[string]layers.Other{},
		ObservedSource: layers.ObservedSource{Source: content.Source},
		ObservedContents: layers.ObservedContents{
			Directory:      content.Directory,
			DirectoryError: content.Err,
			Restored:       content.Restored,
			RestoreError:   content.RestoreError,
			Before:         content.Before,
		},
		ObservedClusters: layers.ObservedClusters{
			ClusterVersion:    f.world.Version,
			Scopes:            f.scopes,
			Resources:         f.world.Resources,
			Unserved:          f.unserved,
			Forsaken:          map[string]bool{},
			Twins:             f.sameClusters(),
			KubeConfigs:       map[objects.ID][]types.NamespacedName{},
			ClusterNamespaces: map[string]bool{},
		},
		ObservedObjects: layers.ObservedObjects{
			Live:      map[objects.ID]*unstructured.Unstructured{},
			Stale:     map[objects.ID]bool{},
			Exclusive: map[string][]objects.ID{},
		},
	}
	for _, cluster := range f.world.Clusters {
		secret := placement.KubeConfigSecret(cluster)
		o.KubeConfigs[secret] = append(o.KubeConfigs[secret], types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name})
		o.ClusterNamespaces[cluster.Namespace] = true
	}
	if o.Directory == nil && o.DirectoryError == nil && o.Source != nil && o.Source.Digest != "" {
		o.DirectoryError = errUnread
	}
	status := layer.Status
	for _, candidate := range []*directories.Directory{content.Directory, content.Deployed, content.Restored} {
		if o.Deployed == nil && candidate != nil && status.Digest != "" && candidate.Digest == status.Digest && candidate.Cluster == status.Cluster {
			o.Deployed = candidate
		}
	}
	f.observeOwned(o)
	f.observeRemote(o)
	f.observeLayers(o)
	f.observeObjects(o)
	for _, name := range layers.Targets(*o) {
		o.Forsaken[name.String()] = layers.IsForsaken(layer, f.cluster(name))
	}
	f.observeAwaited(o)
	f.observeOthers(o)
	if len(o.Reinstalled()) > 0 {
		o.Volumes = f.world.Volumes[layer.Name]
	}
	return o
}

// sameClusters returns which RemoteClusters say that they are the same cluster.
func (f *future) sameClusters() layers.Twins {
	if f.twins == nil {
		uids := map[string]string{}
		for _, cluster := range f.world.Clusters {
			uids[cluster.Namespace+"/"+cluster.Name] = cluster.Status.ClusterUID
		}
		f.twins = layers.TwinsOf(uids)
	}
	return f.twins
}

func (f *future) observeRemote(o *layers.Observation) {
	for _, name := range layers.ClustersLeft(o.Layer) {
		o.Forsaken[name.String()] = layers.IsForsaken(o.Layer, f.cluster(name))
	}
	name := placement.Of(o.Layer, f.world.Settings.Namespace)
	if name.Name == "" {
		return
	}
	cluster := f.cluster(name)
	o.Forsaken[name.String()] = layers.IsForsaken(o.Layer, cluster)
	o.Remote = &layers.Remote{Name: name, Object: cluster}
	o.ClusterVersion = ""
	if cluster != nil {
		o.Remote.Connected = meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ReadyCondition)
		o.Remote.Mistaken = layers.IsMistaken(cluster)
		o.ClusterVersion = cluster.Status.Version
	}
}

// observeLayers adds all other layers, and nothing for those that do not exist.
func (f *future) observeLayers(o *layers.Observation) {
	for name, layer := range f.layers {
		if layer != nil && name != o.Layer.Name {
			o.Layers[name] = layers.Other{Layer: layer}
		}
	}
	for _, name := range dependencies.Names(o.Layer.Spec.Prereqs.DependsOn) {
		other := o.Layers[name]
		if other.Layer != nil && f.sameSource(o.Layer, other.Layer) && !sources.IsOfBundle(other.Layer) {
			other.SameSource = true
			if directory := f.contents[name].Directory; directory != nil {
				other.Digest = directory.Digest
			} else if f.contents[name].Fixed {
				other.Digest = other.Layer.Status.Digest
			}
		}
		o.Layers[name] = other
	}
}

// sameSource tells whether two layers come from the very same source, or belong to
// the same instance of bundles.
func (f *future) sameSource(a, b *v1alpha1.AddonsLayer) bool {
	if sources.IsOfBundle(a) || sources.IsOfBundle(b) {
		return sources.IsOfBundle(a) && sources.IsOfBundle(b) && sources.InstanceOf(a) == sources.InstanceOf(b)
	}
	namespace := f.world.Settings.Namespace
	return sources.Of(a, namespace) == sources.Of(b, namespace)
}

// observeObjects reads what the layer lists, has and had, and the releases that
// stand for the same Helm releases.
func (f *future) observeObjects(o *layers.Observation) {
	identities := map[string]bool{}
	see := func(id objects.ID) {
		if live := f.objects[id]; live != nil && o.Live[id] == nil {
			o.Live[id] = live
			if id.GroupKind() == kinds.HelmReleaseKind {
				identities[f.identities[id]] = true
			}
		}
	}
	for _, directory := range []*directories.Directory{o.Directory, o.Deployed, o.Restored} {
		if directory == nil {
			continue
		}
		for _, manifest := range directory.Manifests {
			see(manifest.ID())
		}
		for exclusive := range layers.ListingOf(directory).Exclusive {
			identities[exclusive] = true
		}
	}
	for _, entry := range layers.Inventory(o.Layer.Status.Resources, nil) {
		see(entry.ID)
	}
	for _, id := range f.formerly[o.Layer.Name] {
		if live := f.objects[id]; live != nil && dependents.HasOwner(live, layers.Keys) {
			see(id)
			o.Taken = append(o.Taken, id)
		}
	}
	for identity := range identities {
		for _, twin := range o.Twins.Identities(identity) {
			o.Exclusive[identity] = append(o.Exclusive[identity], f.standingFor(twin)...)
		}
		o.Exclusive[identity] = objects.SortIDs(o.Exclusive[identity])
		for _, id := range o.Exclusive[identity] {
			if o.Live[id] == nil {
				o.Live[id] = f.objects[id]
			}
		}
	}
}

// observeAwaited looks for the objects that the layer waits for.
func (f *future) observeAwaited(o *layers.Observation) {
	cluster := ""
	if o.Remote != nil {
		cluster = placement.ClusterName(o.Remote.Name)
	}
	for _, wait := range hooks.Waits(o.Layer, o.Settings.Namespace) {
		id, _, err := wait.ID(cluster)
		if err != nil {
			o.Awaited = append(o.Awaited, layers.Awaited{})
			continue // the gate refuses it
		}
		scope, known := f.scopes[id.ServedKind()]
		if wait.Defaulted && scope == objects.ScopeCluster {
			id.Namespace = ""
		}
		o.Awaited = append(o.Awaited, layers.Awaited{ID: id, Live: f.objects[id], Unserved: known && scope == objects.ScopeUnknown})
	}
}

func (f *future) observeOthers(o *layers.Observation) {
	if !o.NeedsOthers() {
		return
	}
	o.Others = dependents.Others{
		Listed: map[objects.ID][]dependents.Claim{}, Exclusive: map[string][]dependents.Claim{},
		Existing: map[string]bool{}, Unreadable: map[string]bool{},
	}
	for _, name := range slices.Sorted(maps.Keys(f.layers)) {
		layer := f.layers[name]
		if layer == nil || name == o.Layer.Name {
			continue
		}
		o.AddOther(&o.Others, layer)
		o.AddHeld(&o.Others, layer)
		if !layer.DeletionTimestamp.IsZero() {
			continue
		}
		content := f.contents[name]
		switch {
		case content.Fixed:
			o.AddClaims(&o.Others, name, f.listed(layer))
		case content.Directory != nil:
			o.AddClaims(&o.Others, name, f.listings[name])
		case content.Source == nil && !sources.IsOfBundle(layer): // nothing can have moved to it
			o.Others.Unreadable[name] = true
			o.AddClaims(&o.Others, name, f.listed(layer))
		default:
			o.Others.Unreadable[name] = true
			if f.sameSource(o.Layer, layer) {
				o.AddDoubt(&o.Others, name, content.mentions(o.NamesSought()))
			}
		}
	}
}

// listed returns what a layer's status lists and does not give away.
func (f *future) listed(layer *v1alpha1.AddonsLayer) layers.Listing {
	listing := layers.Listing{Files: map[objects.ID]string{}, Exclusive: map[string][]objects.ID{}}
	for _, entry := range layers.Inventory(layer.Status.Resources, nil) {
		switch entry.Status {
		case objects.StatusOrphaned, objects.StatusSuperseded, objects.StatusDeleting:
			continue
		}
		listing.Files[entry.ID] = entry.Origin
		if identity := f.identities[entry.ID]; identity != "" {
			listing.Exclusive[identity] = append(listing.Exclusive[identity], entry.ID)
		}
	}
	return listing
}

// Assumed returns the objects that a layer has and that cannot be read, such as
// Secrets, or what is on another cluster, as they are when nobody has changed
// them since they were applied. Objects that were never applied are not there.
func Assumed(layer *v1alpha1.AddonsLayer, wanted *directories.Directory, unread func(objects.ID) bool) map[objects.ID]*unstructured.Unstructured {
	found := map[objects.ID]*unstructured.Unstructured{}
	for _, entry := range layers.Inventory(layer.Status.Resources, nil) {
		if !unread(entry.ID) || entry.Digest == "" {
			continue
		}
		obj := &unstructured.Unstructured{Object: map[string]any{}}
		obj.SetAPIVersion(schema.GroupVersion{Group: entry.ID.Group, Version: "v1"}.String())
		obj.SetKind(entry.ID.Kind)
		if wanted != nil {
			for _, manifest := range wanted.Manifests {
				if manifest.ID() == entry.ID {
					obj = manifest.Object.DeepCopy()
				}
			}
		}
		obj.SetNamespace(entry.ID.Namespace)
		obj.SetName(entry.ID.Name)
		obj.SetUID(types.UID(entry.UID))
		obj.SetGeneration(entry.Generation)
		obj.SetResourceVersion(cmp.Or(entry.ResourceVersion, "1"))
		labels := obj.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[v1alpha1.LayerLabel] = layer.Name
		obj.SetLabels(labels)
		makeReady(obj)
		found[entry.ID] = obj
	}
	return found
}
