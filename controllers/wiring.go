// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/sources"
)

// home is how the cluster that the controller runs in is read.
func (p *Process) home() informers.Cluster {
	return informers.Cluster{Client: p.Client, Past: p.Reader, Cache: p.Cache, Reader: p.Client}
}

// kindsOf returns the kinds of a cluster, or nil where that is not connected.
func (p *Process) kindsOf(cluster string) *informers.Kinds {
	if cluster == "" {
		return p.kinds
	}
	if found := p.remotes.Get(cluster); found != nil {
		return found.Kinds
	}
	return nil
}

// wiring says what becomes of what the caches of clusters tell: layers are woken.
func (p *Process) wiring() informers.Wiring {
	return informers.Wiring{
		Watch:  func(s source.Source) error { return p.watch(s) },
		Handle: p.objectHandler,
		Passes: func(cluster string, gk schema.GroupKind) predicate.Predicate {
			return p.cacheEvents.count(predicate.Or[client.Object](objectChanged, p.ownWrites(cluster, gk)))
		},
		Definitions: p.definitionHandler,
	}
}

// kindIsComing tells whether a layer waits for a kind that discovery may know
// any moment.
func (p *Process) kindIsComing(o *layers.Observation, d layers.Decision) bool {
	if o.SourceUnserved && p.kinds.IsComing(sources.Group, o.Now) {
		return true
	}
	return slices.ContainsFunc(d.Plan.Standings, func(standing objects.Standing) bool {
		if standing.Status != objects.StatusNotServed {
			return false
		}
		k := p.kindsOf(standing.ID.Cluster)
		return k != nil && k.IsComing(standing.ID.Group, o.Now)
	})
}

// ownWrites passes the last writes of this process to objects of a kind,
// whatever they have changed: a layer that was looked at before them takes the
// cache for outdated, and waits for nothing else.
func (p *Process) ownWrites(cluster string, gk schema.GroupKind) predicate.Funcs {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			id := objects.ID{Cluster: cluster, Group: gk.Group, Kind: gk.Kind, Namespace: e.ObjectNew.GetNamespace(), Name: e.ObjectNew.GetName()}
			return p.recent.Awaits(id, e.ObjectNew.GetResourceVersion())
		},
	}
}

// definitionHandler wakes the layers that wait for kinds of the group of one of a
// cluster's definitions: its name is the plural, a dot and the group. Where the
// kind is watched, those that hold it may find it served in another way.
func (p *Process) definitionHandler(k *informers.Kinds) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []ctrl.Request {
		_, group, _ := strings.Cut(obj.GetName(), ".")
		k.Define(group, p.now())
		found := p.listings.WhoWaitsFor(group)
		if gk, watched := k.Redefined(obj.GetName()); watched {
			found = append(found, p.holders(ctx, objects.ServedKind{Cluster: k.Name, GroupKind: gk})...)
		}
		if k.Name != "" {
			return requests(found...)
		}
		if gk, watched := p.sources.Redefined(obj.GetName()); watched {
			found = append(found, p.layersOfKind(ctx, gk.Kind)...)
		}
		return requests(found...)
	})
}

// holders returns the layers that list objects of a kind, or have some.
func (p *Process) holders(ctx context.Context, served objects.ServedKind) []string {
	found := p.listings.WhoListsKind(served)
	list := &v1alpha1.AddonsLayerList{}
	if err := p.Client.List(ctx, list); err != nil {
		return found // the cache is that of this very process: it has them, or stops
	}
	kind := kinds.ResourceKind(served.GroupKind)
	for i := range list.Items {
		layer := &list.Items[i]
		if slices.ContainsFunc(layer.Status.Resources, func(resource v1alpha1.Resource) bool {
			return resource.Kind == kind && resource.Cluster == served.Cluster
		}) {
			found = append(found, layer.Name)
		}
	}
	slices.SortFunc(found, strings.Compare)
	return slices.Compact(found)
}

// whoLists returns the layers that list an object, or one that stands for the same
// Helm release, by any name of its cluster.
func (p *Process) whoLists(id objects.ID, exclusive string) []string {
	twins := p.remotes.Twins()
	found := p.listings.WhoLists(id, exclusive)
	for _, twin := range twins.IDs(id)[1:] {
		found = append(found, p.listings.WhoLists(twin, "")...)
	}
	if exclusive != "" {
		for _, twin := range twins.Identities(exclusive)[1:] {
			found = append(found, p.listings.WhoLists(objects.ID{}, twin)...)
		}
	}
	return found
}

// objectHandler wakes the layers that own an object, owned it, or list it.
func (p *Process) objectHandler(cluster string, gk schema.GroupKind) handler.EventHandler {
	enqueue := func(q queue, objs ...client.Object) {
		found := map[string]struct{}{}
		for _, obj := range objs {
			id := objects.ID{Cluster: cluster, Group: gk.Group, Kind: gk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
			exclusive := ""
			if u, ok := obj.(*unstructured.Unstructured); ok && gk == kinds.HelmReleaseKind {
				exclusive = kinds.HelmReleaseIdentity(u)
			}
			found[obj.GetLabels()[v1alpha1.LayerLabel]] = struct{}{}
			for _, name := range p.whoLists(id, exclusive) {
				found[name] = struct{}{}
			}
		}
		for name := range found {
			for _, req := range requests(name) {
				q.Add(req)
			}
		}
	}
	return handler.Funcs{
		CreateFunc:  func(_ context.Context, e event.CreateEvent, q queue) { enqueue(q, e.Object) },
		UpdateFunc:  func(_ context.Context, e event.UpdateEvent, q queue) { enqueue(q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc:  func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(q, e.Object) },
		GenericFunc: func(_ context.Context, e event.GenericEvent, q queue) { enqueue(q, e.Object) },
	}
}
