// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
)

// settings are the controller's, as it is shipped.
var settings = layers.Settings{Interval: defaultInterval, Namespace: namespace, MaxPrunePercent: 50}

var scopes = map[objects.ServedKind]objects.Scope{
	{GroupKind: kinds.HelmReleaseKind}: objects.ScopeNamespaced, {GroupKind: kinds.HelmRepositoryKind}: objects.ScopeNamespaced,
	{GroupKind: schema.GroupKind{Kind: "ConfigMap"}}: objects.ScopeNamespaced, {GroupKind: spaceKind}: objects.ScopeCluster,
}

// observe gathers what the rules decide from, out of the caches.
func (h *hands) observe(layer *v1alpha1.AddonsLayer) *layers.Observation {
	o := &layers.Observation{
		Now: h.Now(), Settings: settings, Layer: layer, Layers: map[string]layers.Other{},
		ObservedClusters: layers.ObservedClusters{ClusterVersion: h.kubernetes, Scopes: maps.Clone(scopes), Forsaken: map[string]bool{}},
		ObservedObjects: layers.ObservedObjects{
			Live:      map[objects.ID]*unstructured.Unstructured{},
			Stale:     map[objects.ID]bool{},
			Exclusive: map[string][]objects.ID{},
		},
	}
	h.observeRemote(o)
	h.view = h.viewOf(layer)
	o.Waited, o.UnderWay = h.waits.Of(layer, o.Now)
	h.observeDirectory(o)
	h.observeRestored(o)
	h.observeLayers(o)
	h.observeKinds(o)
	h.observeObjects(o)
	for _, name := range layers.Targets(*o) {
		o.Forsaken[name.String()] = layers.IsForsaken(o.Layer, h.cachedRemote(name.String()))
	}
	h.observeOthers(o)
	return o
}

// observeRemote looks at the cluster that the layer belongs on.
func (h *hands) observeRemote(o *layers.Observation) {
	for _, name := range layers.ClustersLeft(o.Layer) {
		o.Forsaken[name.String()] = layers.IsForsaken(o.Layer, h.cachedRemote(name.String()))
	}
	name := placement.Of(o.Layer, namespace)
	if name.Name == "" {
		return
	}
	cluster := h.cachedRemote(name.String())
	o.Forsaken[name.String()] = layers.IsForsaken(o.Layer, cluster)
	o.Remote = &layers.Remote{Name: name, Object: cluster, Connected: h.usable(name.String()) != nil, Mistaken: h.mistaken[name.String()]}
	if cluster != nil {
		o.ClusterVersion = cluster.Status.Version
	}
}

// observeKinds sees to it that what is on the clusters in question is watched.
func (h *hands) observeKinds(o *layers.Observation) {
	served := map[objects.ServedKind]bool{}
	for _, directory := range []*directories.Directory{o.Directory, o.Deployed, o.Restored} {
		if directory == nil {
			continue
		}
		for _, manifest := range directory.Manifests {
			served[manifest.ID().ServedKind()] = true
		}
	}
	for _, entry := range layers.Inventory(o.Layer.Status.Resources, nil) {
		served[entry.ID.ServedKind()] = true
	}
	for kind := range served {
		c := h.usable(kind.Cluster)
		if c == nil {
			continue
		}
		if err := h.watched(c); err != nil {
			if o.Remote != nil && o.Remote.Name.String() == kind.Cluster {
				o.Remote.Err = err
			}
			continue
		}
		o.Scopes[kind] = objects.ScopeNamespaced
		if kind.Kind == "Namespace" {
			o.Scopes[kind] = objects.ScopeCluster
		}
	}
}

// readObject returns an object as it is cached, and whether it can be known.
func (h *hands) readObject(o *layers.Observation, id objects.ID) (live *unstructured.Unstructured, known bool) {
	if id.Cluster == "" {
		return h.cachedRelease(keyOf(id)), true
	}
	c := h.usable(id.Cluster)
	if c == nil || !c.synced {
		return nil, false
	}
	live, _ = c.cache.objects[keyOf(id)].(*unstructured.Unstructured)
	if live == nil && layers.MayBeThere(*o, id) && !h.writes.IsStale(id, "", o.Now) {
		if c.err != nil || h.reach(c) != nil {
			return nil, false
		}
		h.people.covered.saw(lookedPast)
		if live = c.store.release(keyOf(id)); live != nil && live.GetLabels()[v1alpha1.LayerLabel] == "" {
			live = nil
		}
	}
	return live, true
}

// directoryOn names a directory that is put on a cluster for a layer.
type directoryOn struct {
	dir            *directories.Directory
	layer, cluster string
}

// put puts a directory on a cluster, once.
func (h *hands) put(layer, cluster string, dir *directories.Directory) *directories.Directory {
	if dir == nil || cluster == "" {
		return dir
	}
	key := directoryOn{dir, layer, cluster}
	if known := h.directories[key]; known != nil {
		return known
	}
	place := placeOf(layer, cluster)
	if len(place.Reads(dir)) > 0 {
		panic("a release reads what its directory does not list")
	}
	placed, err := place.Put(dir)
	if err != nil {
		panic(err)
	}
	h.directories[key] = placed
	return placed
}

var errAway = errors.New("the artifact cannot be fetched: connection refused")

// fetch returns what a source's artifact holds for a layer, and remembers it.
func (p *process) fetch(from *source, layer string) (*directories.Directory, error) {
	if p.cluster.source(from.Name) == nil || p.cluster.source(from.Name).away {
		return nil, errAway
	}
	name := p.folderOf(layer)
	directory, err := p.contents.directory(p.repositories[from.Name].commits[from.seen.Revision][name], name, from.seen.Revision)
	if err == nil {
		p.artifacts[directory.Digest] = directory
	}
	return directory, err
}

// sourceOf returns a layer's source as it is cached, or past the cache, and
// whether it has an artifact that can be used.
func (p *process) sourceOf(layer *v1alpha1.AddonsLayer, pastCache bool) (*source, bool) {
	found, _ := p.caches[kindSource].objects[layer.Spec.Source.Name].(*source)
	if pastCache {
		found = p.cluster.source(layer.Spec.Source.Name)
	}
	return found, found != nil && found.seen.Digest != "" && found.seen.ObservedGeneration == found.seen.Generation
}

func (h *hands) observeDirectory(o *layers.Observation) {
	from, usable := h.sourceOf(o.Layer, o.Layer.Status.ObservedGeneration != o.Layer.Generation)
	if from != nil {
		seen := from.seen
		o.Source = &seen
	}
	h.artifact = nil
	if usable {
		h.artifact = from
		o.Directory, o.DirectoryError = h.fetch(from, o.Layer.Name)
		o.Directory = h.put(o.Layer.Name, clusterOf(o.Layer), o.Directory)
	}
	if o.Layer.DeletionTimestamp == nil && h.listings.Update(o.Layer.Name, o.Directory) {
		h.wakeWaiting()
		if o.Remote != nil {
			h.enqueue(h.layersOn(o.Remote.Name.String())...)
		}
	}
	switch digest := o.Layer.Status.Digest; {
	case digest == "":
	case o.Directory != nil && o.Directory.Digest == digest && o.Directory.Cluster == o.Layer.Status.Cluster:
		o.Deployed = o.Directory
	default:
		o.Deployed = h.put(o.Layer.Name, o.Layer.Status.Cluster, h.artifacts[digest])
	}
}

func (h *hands) observeRestored(o *layers.Observation) {
	id := layers.RestoreID(o.Layer)
	for _, entry := range o.Layer.Status.History {
		if entry.ID != id {
			continue
		}
		restored := h.artifacts[entry.Digest]
		if restored == nil && entry.Kept {
			restored = h.cluster.kept[keptName(o.Layer, entry.Digest)]
		}
		if restored == nil {
			o.RestoreError = "neither the cluster nor the source has it any more"
			return
		}
		o.Restored = h.put(o.Layer.Name, clusterOf(o.Layer), restored)
		if o.Deployed == nil && restored.Digest == o.Layer.Status.Digest && o.Restored.Cluster == o.Layer.Status.Cluster {
			o.Deployed = o.Restored
		}
	}
}

func (h *hands) observeLayers(o *layers.Observation) {
	queue := dependencies.Names(o.Layer.Spec.Prereqs.DependsOn)
	for i := 0; i < len(queue); i++ {
		name := queue[i]
		if _, seen := o.Layers[name]; seen || name == o.Layer.Name {
			continue
		}
		layer := h.cachedLayer(name)
		o.Layers[name] = layers.Other{Layer: layer}
		if layer != nil {
			queue = append(queue, dependencies.Names(layer.Spec.Prereqs.DependsOn)...)
		}
	}
	direct := dependencies.Names(o.Layer.Spec.Prereqs.DependsOn)
	for _, name := range direct {
		if layer := o.Layers[name].Layer; layer != nil {
			o.Layers[name] = h.dependency(o, layer)
		}
	}
	h.observeDependants(o, o.Layer.Name)
	for _, name := range direct {
		if layer := o.Layers[name].Layer; layer != nil && layers.IsRefused(layer) {
			h.observeDependants(o, name)
		}
	}
}

func (h *hands) observeDependants(o *layers.Observation, name string) {
	for _, other := range h.layerNames() {
		layer := h.cachedLayer(other)
		if !slices.Contains(dependencies.Names(layer.Spec.Prereqs.DependsOn), name) || other == o.Layer.Name {
			continue
		}
		if _, seen := o.Layers[other]; !seen {
			o.Layers[other] = layers.Other{Layer: layer}
		}
	}
}

func (h *hands) dependency(o *layers.Observation, layer *v1alpha1.AddonsLayer) layers.Other {
	other := layers.Other{Layer: layer, SameSource: layer.Spec.Source.Name == o.Layer.Spec.Source.Name}
	if !other.SameSource || h.artifact == nil {
		return other
	}
	directory, err := h.fetch(h.artifact, layer.Name)
	if err != nil {
		unread(o, err)
		return other
	}
	other.Digest = directory.Digest
	return other
}

func unread(o *layers.Observation, err error) {
	if errors.Is(err, errAway) {
		o.OthersUnread = true
	}
}

// observeObjects reads what the layer lists, has and had, and the releases that
// stand for the same Helm releases.
func (h *hands) observeObjects(o *layers.Observation) {
	identities := map[string]bool{}
	see := func(id objects.ID) {
		live, known := h.readObject(o, id)
		if !known {
			o.Stale[id] = true
			return
		}
		version := ""
		if live != nil {
			o.Live[id] = live
			version = live.GetResourceVersion()
			if id.GroupKind() == kinds.HelmReleaseKind {
				identities[kinds.HelmReleaseIdentity(live)] = true
			}
		}
		if h.writes.IsStale(id, version, o.Now) {
			o.Stale[id] = true
		}
	}
	var wanted []objects.ID
	for _, directory := range []*directories.Directory{o.Directory, o.Deployed, o.Restored} {
		if directory == nil {
			continue
		}
		for _, manifest := range directory.Manifests {
			wanted = append(wanted, manifest.ID())
			if manifest.ID().GroupKind() == kinds.HelmReleaseKind {
				identities[kinds.HelmReleaseIdentity(manifest.Object)] = true
			}
		}
	}
	for _, entry := range layers.Inventory(o.Layer.Status.Resources, nil) {
		wanted = append(wanted, entry.ID)
	}
	for _, id := range objects.SortIDs(wanted) {
		see(id)
	}
	for _, name := range sortedKeys(h.caches[kindRelease].objects) {
		release := h.cachedRelease(name)
		identity := kinds.HelmReleaseIdentity(release)
		if !identities[identity] {
			continue
		}
		id := objects.IDOf(release)
		o.Exclusive[identity] = append(o.Exclusive[identity], id)
		if o.Live[id] == nil {
			see(id)
		}
	}
	for identity := range identities {
		if _, found := o.Exclusive[identity]; !found {
			o.Exclusive[identity] = nil
		}
	}
}

func (h *hands) observeOthers(o *layers.Observation) {
	if !o.NeedsOthers() {
		return
	}
	others := dependents.Others{
		Listed: map[objects.ID][]dependents.Claim{}, Exclusive: map[string][]dependents.Claim{},
		Existing: map[string]bool{}, Unreadable: map[string]bool{},
	}
	for _, name := range h.layerNames() {
		layer := h.cachedLayer(name)
		if name == o.Layer.Name {
			continue
		}
		o.AddOther(&others, layer)
		o.AddHeld(&others, layer)
		if layer.DeletionTimestamp != nil {
			continue
		}
		listing, readable := h.listingOf(o, layer)
		if !readable {
			others.Unreadable[name] = true
			if layer.Spec.Source.Name == o.Layer.Spec.Source.Name {
				o.AddDoubt(&others, name, directories.Mentions{Unknown: "it cannot be read"})
			}
			continue
		}
		o.AddClaims(&others, name, listing)
	}
	o.Others = others
}

func (h *hands) listingOf(o *layers.Observation, layer *v1alpha1.AddonsLayer) (layers.Listing, bool) {
	from, usable := h.sourceOf(layer, false)
	if !usable {
		return layers.Listing{}, false
	}
	directory, err := h.fetch(from, layer.Name)
	if err != nil {
		unread(o, err)
		return layers.Listing{}, false
	}
	return h.listings.Of(layer.Name, h.put(layer.Name, clusterOf(layer), directory)), true
}
