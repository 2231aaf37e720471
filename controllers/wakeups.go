// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/memory"
	"github.com/strata-project/strata/internal/placement"
)

// wakeups are the objects that are to be looked at although the caches tell nothing of
// them, by their kinds.
type wakeups struct {
	layerWakeups, clusterWakeups, platformWakeups chan event.GenericEvent
}

// maxWakeups bounds each of them.
const maxWakeups = 4096

// layerReader, clusterReader and platformReader name who follows objects.
func layerReader(name string) informers.Follower {
	return informers.Follower{Kind: v1alpha1.AddonsLayerKind, NamespacedName: types.NamespacedName{Name: name}}
}

func clusterReader(name types.NamespacedName) informers.Follower {
	return informers.Follower{Kind: v1alpha1.RemoteClusterKind, NamespacedName: name}
}

func platformReader(name string) informers.Follower {
	return informers.Follower{Kind: v1alpha1.PlatformKind, NamespacedName: types.NamespacedName{Name: name}}
}

// wakeReaders looks again at those who follow an object.
func (p *Process) wakeReaders(readers []informers.Follower) {
	for _, one := range readers {
		switch one.Kind {
		case v1alpha1.PlatformKind:
			p.wakePlatform(one.Name)
		case v1alpha1.RemoteClusterKind:
			p.wakeCluster(one.NamespacedName)
		default:
			p.cacheEvents.Add(1)
			p.wake(one.Name)
		}
	}
}

// wake looks at layers again. It never blocks: when the queue of wake-ups is
// full, the safety net of each layer's interval has to do.
func (p *Process) wake(names ...string) {
	for _, name := range names {
		p.wakeOne(name)
	}
}

// wakeOne is as wake, and tells whether the layer will be looked at.
func (p *Process) wakeOne(name string) bool {
	select {
	case p.layerWakeups <- event.GenericEvent{Object: &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: name}}}:
		return true
	default:
		return false
	}
}

// wakePlatform looks at a Platform again. It never blocks: where the queue is full,
// the safety net has to do.
func (p *Process) wakePlatform(name string) {
	select {
	case p.platformWakeups <- event.GenericEvent{Object: &v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Name: name}}}:
	default:
	}
}

// wakeCluster looks at a RemoteCluster again. It never blocks, as wake.
func (p *Process) wakeCluster(name types.NamespacedName) {
	cluster := &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	select {
	case p.clusterWakeups <- event.GenericEvent{Object: cluster}:
	default:
	}
}

// wakeOn looks at the layers of a RemoteCluster again.
func (p *Process) wakeOn(ctx context.Context, cluster *v1alpha1.RemoteCluster) {
	for _, req := range p.layersOn(ctx, cluster) {
		p.lastLooks.set(req.Name, nil)
		p.wake(req.Name)
	}
}

// wakeTwins looks again at clusters of which others have turned out to be the same,
// and at their layers.
func (p *Process) wakeTwins(ctx context.Context, names []string) {
	if len(names) == 0 {
		return
	}
	list := &v1alpha1.AddonsLayerList{}
	if err := p.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "cannot list layers")
	}
	for i := range list.Items {
		layer := &list.Items[i]
		if slices.Contains(names, placement.ClusterName(placement.Of(layer, p.Settings.Namespace))) {
			p.lastLooks.set(layer.Name, nil)
			p.wake(layer.Name)
		}
	}
	for _, cluster := range names {
		if namespace, name, remote := strings.Cut(cluster, "/"); remote {
			p.wakeCluster(types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
}

// announce notes what a layer lists, and looks again at the layers that this is news
// to. It comes before the layer asks what others list: of two layers that list the same
// object and are looked at at once, one sees the other.
func (r *AddonsLayerReconciler) announce(ctx context.Context, o *observer) {
	if !layers.MayUseSource(o.Layer, o.Settings) {
		return
	}
	r.knownBuilds.Note(o.Layer, o.how)
	if o.Layer.DeletionTimestamp.IsZero() && r.listings.Update(o.Layer.Name, o.Directory) {
		r.wake(r.listings.WhoWaits()...)
		r.wakeNeighbours(ctx, o.Observation)
	}
	if o.Directory != nil {
		r.revisions.has(o.Layer, o.Directory.Digest)
		r.listings.Found(o.Layer.Name, memory.DigestOf(o.Directory), o.originIn(o.content, o.Layer))
	}
}

// wakeNeighbours looks again at the layers of the same other cluster: sources that
// they refer to may be this layer's now, or not any more. What they saw last does
// not tell, so it does not count.
func (r *AddonsLayerReconciler) wakeNeighbours(ctx context.Context, o *layers.Observation) {
	if o.Remote == nil {
		return
	}
	for _, req := range r.listRequests(ctx, client.MatchingFields{indexCluster: o.Remote.Name.Name}) {
		if req.Name != o.Layer.Name {
			r.lastLooks.set(req.Name, nil)
			r.wake(req.Name)
		}
	}
}
