// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/memory"
)

// announce notes what a layer lists, and looks again at the layers that this is news
// to. It comes before the layer asks what others list: of two layers that list the same
// object and are looked at at once, one sees the other.
func (r *AddonsLayerReconciler) announce(ctx context.Context, o *observer) {
	if !layers.MayUseSource(o.Layer, o.Settings) {
		return
	}
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
