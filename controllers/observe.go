// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/repos"
	"github.com/strata-project/strata/internal/sources"
)

// observer gathers one observation. It only reads: what is news to other layers is
// announced by announce.
type observer struct {
	// r is whose cluster is looked at.
	r *AddonsLayerReconciler
	// reads reads it, and notes what it answers.
	reads *reader
	// Observation is what has been gathered by now.
	*layers.Observation
	// content of the layer, as this observation has it; nil where there is none.
	content content
	// how the layer's directory becomes objects.
	how builds.Build
	// wantedIDs lists the objects in question, in order.
	wantedIDs []objects.ID
	// sources of other layers that were read already, as many layers have one
	// in common.
	sources map[sources.Ref]sourceRead
	// judged is true where it had been found out whether the layer's cluster may be written to
	// before the cluster was looked at.
	judged bool
	// sought are the words by which other layers may mean an object that is to go.
	sought []string
}

// sourceRead is the result of reading a source.
type sourceRead struct {
	// artifact is nil where there is none.
	artifact *repos.Artifact
	// gone is true where there is no such source, or the cluster does not serve its kind.
	gone bool
}

// newObserver returns the observer of a layer, which has read nothing yet.
func (r *AddonsLayerReconciler) newObserver(layer *v1alpha1.AddonsLayer) *observer {
	o := &observer{r: r, reads: newReader(r, layer.Name), sources: map[sources.Ref]sourceRead{}}
	o.Observation = &layers.Observation{
		Now: r.now(), Settings: r.Settings, Layer: layer, Layers: map[string]layers.Other{},
		ObservedClusters: layers.ObservedClusters{
			ClusterVersion:    o.reads.cluster,
			Twins:             r.remotes.Twins(),
			Scopes:            map[objects.ServedKind]objects.Scope{},
			Resources:         map[objects.ServedKind]string{},
			Unserved:          map[objects.ServedVersion]bool{},
			Forsaken:          map[string]bool{},
			KubeConfigs:       map[objects.ID][]types.NamespacedName{},
			ClusterNamespaces: map[string]bool{},
			Owned:             map[objects.ID]string{},
		},
		ObservedObjects: layers.ObservedObjects{
			Live:      map[objects.ID]*unstructured.Unstructured{},
			Stale:     map[objects.ID]bool{},
			Disputes:  map[objects.ID]dependents.Dispute{},
			Exclusive: map[string][]objects.ID{},
		},
	}
	o.Waited, o.UnderWay = r.waits.Of(layer, o.Now)
	return o
}

// observeContent reads what the layer is to hold, and where it belongs.
func (o *observer) observeContent(ctx context.Context) error {
	return inTurn(ctx, o.observeRemote, o.observeBuild, o.observeDirectory)
}

// observeSurroundings reads everything else that the rules decide from.
func (o *observer) observeSurroundings(ctx context.Context) error {
	err := inTurn(ctx, o.observeDeployed, o.observeRestored, o.observeBefore, o.observeLayers, o.observePredecessors,
		o.observeKinds, o.observeLabelled, o.observeObjects, o.observeClasses, o.observeTargets,
		o.observeAwaited, o.observeCharts, o.observeHealth, o.observeOthers, o.observeVolumes, o.observeBlockers, o.observeDoomed)
	if err == nil {
		o.reads.done(o.Settings.AccountFor(o.Layer))
	}
	return err
}

// inTurn takes steps until one fails.
func inTurn(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// observeDirectory reads the source, and the layer's directory in it.
// A source that the layer may not use is not read.
func (o *observer) observeDirectory(ctx context.Context) error {
	if !layers.MayUseSource(o.Layer, o.Settings) {
		return nil
	}
	// A layer that was changed together with its source must not be deployed at
	// its new version from the old artifact, because the cache has yet to see
	// the source's change.
	pastCache := o.Layer.Status.ObservedGeneration != o.Layer.Generation
	source, content, err := o.reads.source(ctx, o.Layer, pastCache)
	switch {
	case errors.Is(err, errUnserved):
		o.SourceUnserved = true
	case apierrors.IsForbidden(err):
		o.SourceError = err
	case err != nil:
		return err
	}
	if ours, is := content.(fetched); is {
		ours.how = &o.how
		content = ours
	}
	o.Source, o.content = source, content
	if content != nil && o.DirectoryError == nil {
		o.Directory, o.DirectoryError = content.directory(ctx)
		if o.DirectoryError == nil {
			o.Directory, o.DirectoryError = o.put(ctx, o.Directory)
		}
		if o.DirectoryError != nil {
			o.Directory = nil
		}
		if errors.Is(o.DirectoryError, context.Canceled) {
			return o.DirectoryError
		}
	}
	o.Layer = layers.Recognised(o.Layer, o.Source, o.Directory)
	return nil
}

// observeDeployed finds the content that is deployed, as long as it is cached, as
// it was put where it is deployed.
func (o *observer) observeDeployed(ctx context.Context) error {
	status := o.Layer.Status
	if status.Digest == "" {
		return nil
	}
	if o.Directory != nil && o.Directory.Digest == status.Digest && o.Directory.Cluster == status.Cluster {
		o.Deployed = o.Directory
		return nil
	}
	written := o.r.revisions.known(o.Layer, status.Digest)
	deployed, err := o.putOn(ctx, status.Cluster, written)
	if errors.Is(err, context.Canceled) {
		return err
	}
	o.Deployed = deployed
	return nil
}

// observeRestored reads what the layer goes back to, or may have to.
func (o *observer) observeRestored(ctx context.Context) error {
	id := layers.RestoreID(o.Layer)
	for _, entry := range o.Layer.Status.History {
		if entry.ID != id {
			continue
		}
		var present *repos.Artifact
		if o.content != nil {
			present = o.content.artifact()
		}
		restored, err := o.reads.unnoted().revisions.read(ctx, o.Layer, entry, present, o.how)
		if errors.Is(err, context.Canceled) {
			return err
		}
		if err != nil {
			o.RestoreError = err.Error()
			return nil
		}
		if restored, err = o.put(ctx, restored); err != nil {
			o.RestoreError = err.Error()
			return nil
		}
		o.Restored = restored
		if o.Deployed == nil && restored.Digest == o.Layer.Status.Digest && restored.Cluster == o.Layer.Status.Cluster {
			o.Deployed = restored
		}
	}
	return nil
}

// observeLayers reads what the layer depends on, directly or not, and what
// depends on it.
func (o *observer) observeLayers(ctx context.Context) error {
	queue := dependencyNames(o.Layer)
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if _, seen := o.Layers[name]; seen || name == o.Layer.Name {
			continue
		}
		layer, err := read(ctx, o.reads, layerQuestion{name})
		if err != nil {
			return err
		}
		o.Layers[name] = layers.Other{Layer: layer}
		if layer != nil {
			queue = append(queue, dependencyNames(layer)...)
		}
	}
	for _, name := range dependencyNames(o.Layer) {
		if layer := o.Layers[name].Layer; layer != nil {
			o.Layers[name] = o.dependency(ctx, layer)
		}
	}
	if err := o.observeDependants(ctx, o.Layer.Name); err != nil {
		return err
	}
	for _, name := range dependencyNames(o.Layer) {
		// Whether a layer is still refused its new version, its dependants say.
		if layer := o.Layers[name].Layer; layer != nil && layers.IsRefused(layer) {
			if err := o.observeDependants(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// observeDependants reads the layers that depend on a layer.
func (o *observer) observeDependants(ctx context.Context, name string) error {
	dependants, err := read(ctx, o.reads, dependantsQuestion{name})
	if err != nil {
		return err
	}
	for i := range dependants {
		if _, seen := o.Layers[dependants[i].Name]; !seen && dependants[i].Name != o.Layer.Name {
			o.Layers[dependants[i].Name] = layers.Other{Layer: &dependants[i]}
		}
	}
	return nil
}

// dependency adds what this layer's artifact holds for another layer.
func (o *observer) dependency(ctx context.Context, layer *v1alpha1.AddonsLayer) layers.Other {
	other := layers.Other{Layer: layer}
	if sources.IsOfBundle(layer) || !o.sameSource(layer) {
		// A bundle does not change: what a layer of it is to hold, its own
		// generation says.
		return other
	}
	other.SameSource = true
	if o.content == nil {
		return other
	}
	digest, _, err := o.r.contentOf(layer, o.content.artifact()).digest(ctx)
	if err != nil {
		o.unread(err)
		return other
	}
	other.Digest = digest
	return other
}

// sameSource tells whether another layer comes from the very same source, or
// belongs to the same instance of bundles.
func (o *observer) sameSource(layer *v1alpha1.AddonsLayer) bool {
	if sources.IsOfBundle(o.Layer) || sources.IsOfBundle(layer) {
		return sources.IsOfBundle(o.Layer) && sources.IsOfBundle(layer) && sources.InstanceOf(layer) == sources.InstanceOf(o.Layer)
	}
	namespace := o.Settings.Namespace
	return sources.Of(layer, namespace) == sources.Of(o.Layer, namespace)
}

// observeKinds asks how the clusters serve the kinds in question, and sees to it
// that they are watched.
func (o *observer) observeKinds(ctx context.Context) error {
	// Releases and their repositories are always looked at: one may stand for
	// the same as a wanted one, or be Kraan's.
	versions := map[objects.ServedKind][]string{{GroupKind: kinds.HelmReleaseKind}: nil, {GroupKind: kinds.HelmRepositoryKind}: nil}
	for _, directory := range []*directories.Directory{o.Directory, o.Deployed, o.Restored} {
		if directory == nil {
			continue
		}
		for _, manifest := range directory.Manifests {
			id := manifest.ID()
			if version := manifest.Object.GroupVersionKind().Version; !slices.Contains(versions[id.ServedKind()], version) {
				versions[id.ServedKind()] = append(versions[id.ServedKind()], version)
			}
		}
	}
	for _, entry := range layers.Inventory(o.Layer.Status.Resources, nil) {
		if _, known := versions[entry.ID.ServedKind()]; !known {
			versions[entry.ID.ServedKind()] = nil
		}
	}
	var failed error
	for kind, wanted := range versions {
		err := o.observeKind(ctx, kind, wanted)
		switch {
		case apierrors.IsForbidden(err):
			o.KindError = err
		case err != nil && kind.Cluster != "":
			o.lost(kind.Cluster, err)
		case err != nil: // the others begin all the same, for the next look
			failed = errors.Join(failed, err)
		}
	}
	o.nameObjects()
	return failed
}

// nameObjects names what the layer lists and has as the cluster names it, now that the
// scopes of its kinds are known.
func (o *observer) nameObjects() {
	ids := map[objects.ID]bool{}
	for _, directory := range []**directories.Directory{&o.Directory, &o.Deployed, &o.Restored} {
		*directory = layers.InScope(*directory, o.Scopes)
		if *directory == nil {
			continue
		}
		for _, manifest := range (*directory).Manifests {
			ids[manifest.ID()] = true
		}
	}
	for _, entry := range layers.Inventory(o.Layer.Status.Resources, nil) {
		ids[entry.ID] = true
	}
	o.wantedIDs = objects.SortIDs(slices.Collect(maps.Keys(ids)))
}

// observeKind asks how a cluster serves a kind, at the versions that are wanted.
func (o *observer) observeKind(ctx context.Context, kind objects.ServedKind, wanted []string) error {
	k := o.r.kindsOf(kind.Cluster)
	if k == nil {
		return nil // its objects are stale
	}
	if kind.Cluster != "" {
		if found := o.r.remotes.Get(kind.Cluster); found != nil && !k.Watched(kind.GroupKind) && found.Answers() != nil {
			return found.Answers()
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, informers.FirstSync)
		defer cancel()
	}
	if err := k.Revise(ctx, kind.GroupKind); err != nil {
		return err
	}
	scope, err := k.Scope(kind.GroupKind, "")
	if err != nil {
		return err
	}
	o.Scopes[kind] = scope
	if scope != objects.ScopeUnknown {
		mapping, err := k.Mapping(kind.GroupKind)
		if err != nil {
			return fmt.Errorf("cannot find out how kind %s is served: %w", kind.GroupKind, err)
		}
		o.Resources[kind] = mapping.Resource.Resource
	}
	for _, version := range wanted {
		if scope, err := k.Scope(kind.GroupKind, version); err != nil {
			return err
		} else if scope == objects.ScopeUnknown {
			o.Unserved[objects.ServedVersion{Cluster: kind.Cluster, GroupVersionKind: kind.WithVersion(version)}] = true
		}
	}
	if scope == objects.ScopeUnknown {
		return nil
	}
	return k.Watch(ctx, kind.GroupKind)
}

// observeObjects reads the objects in question from the cache, the Helm
// releases that stand in for each other, and what Kraan left to the layer.
func (o *observer) observeObjects(ctx context.Context) error {
	for _, id := range o.wantedIDs {
		if err := o.readObject(ctx, id); err != nil {
			return err
		}
		if err := o.observeReferences(ctx, id); err != nil {
			return err
		}
	}
	for _, gk := range []schema.GroupKind{kinds.HelmReleaseKind, kinds.HelmRepositoryKind} {
		owned, err := read(ctx, o.reads, indexedQuestion{gk, indexFormerOwner, o.Layer.Name})
		if err != nil {
			return err
		}
		for i := range owned {
			o.see(&owned[i])
			o.Taken = append(o.Taken, objects.IDOf(&owned[i]))
		}
	}
	return o.observeExclusive(ctx)
}

// observeLabelled finds what has the label of a layer whose status does not count, of all kinds
// that are watched, on all clusters that are read: a forged inventory may leave out
// objects. What the layer lists is watched by now.
func (o *observer) observeLabelled(ctx context.Context) error {
	if !v1alpha1.IsForeign(o.Layer.Status.Conditions) {
		return nil
	}
	for _, cluster := range append([]string{""}, o.r.remotes.Connected()...) {
		k := o.r.kindsOf(cluster)
		if k == nil {
			continue
		}
		for _, gk := range k.All() {
			owned, err := k.List(ctx, gk, client.MatchingLabels{v1alpha1.LayerLabel: o.Layer.Name})
			if err != nil {
				return fmt.Errorf("cannot find what layer %s has: %w", o.Layer.Name, err)
			}
			for i := range owned {
				id := objects.IDOf(&owned[i]).On(cluster)
				if o.Settings.ReservedFor(o.Layer.Name, id, &owned[i]) != "" {
					continue
				}
				o.Taken = append(o.Taken, id)
				if slices.Contains(o.wantedIDs, id) {
					continue
				}
				if _, known := o.Scopes[id.ServedKind()]; !known {
					if err := o.observeKind(ctx, id.ServedKind(), nil); err != nil {
						return err
					}
				}
				o.wantedIDs = append(o.wantedIDs, id)
			}
		}
	}
	return nil
}

// readObject reads an object from the cache of its cluster. Of one that cannot be
// read nothing is known, which is not that it has gone.
func (o *observer) readObject(ctx context.Context, id objects.ID) error {
	if scope, known := o.Scopes[id.ServedKind()]; known && scope == objects.ScopeUnknown {
		return nil
	}
	k := o.r.kindsOf(id.Cluster)
	if k == nil || !k.Watched(id.GroupKind()) {
		o.Stale[id] = true
		return nil
	}
	live, err := read(ctx, o.reads, objectQuestion{id})
	if err == nil && live == nil && layers.MayBeThere(*o.Observation, id) && !o.r.recent.IsStale(id, "", o.Now) {
		if err = o.reads.unnoted().remotes.Answers(id.Cluster); err == nil {
			live, err = k.GetPast(ctx, id)
		}
	}
	if err != nil && id.Cluster != "" {
		o.lost(id.Cluster, err)
		o.Stale[id] = true
		return nil
	}
	if err != nil {
		return err
	}
	version := ""
	if live != nil {
		o.Live[id] = live
		version = live.GetResourceVersion()
		if dispute, is := o.r.disputes.Of(id, o.Now); is {
			o.Disputes[id] = dispute
		}
	}
	if o.r.recent.IsStale(id, version, o.Now) {
		o.Stale[id] = true
	}
	return nil
}

func (o *observer) see(live *unstructured.Unstructured) {
	id := objects.IDOf(live)
	if o.Live[id] == nil {
		o.Live[id] = live
		if o.r.recent.IsStale(id, live.GetResourceVersion(), o.Now) {
			o.Stale[id] = true
		}
	}
}

// observeExclusive finds the live HelmReleases that stand for the same Helm
// releases as those of the layer.
func (o *observer) observeExclusive(ctx context.Context) error {
	identities := map[string]bool{}
	for _, directory := range []*directories.Directory{o.Directory, o.Deployed, o.Restored} {
		if directory != nil {
			for exclusive := range layers.ListingOf(directory).Exclusive {
				identities[exclusive] = true
			}
		}
	}
	for id, live := range o.Live {
		if id.GroupKind() == kinds.HelmReleaseKind {
			identities[kinds.HelmReleaseIdentity(live)] = true
		}
	}
	for identity := range identities {
		for _, twin := range o.Twins.Identities(identity) {
			found, err := read(ctx, o.reads, indexedQuestion{kinds.HelmReleaseKind, indexIdentity, twin})
			if err != nil {
				return err
			}
			for i := range found {
				o.see(&found[i])
				o.Exclusive[identity] = append(o.Exclusive[identity], objects.IDOf(&found[i]))
			}
		}
		o.Exclusive[identity] = objects.SortIDs(o.Exclusive[identity])
	}
	return nil
}
