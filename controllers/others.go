// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/memory"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/sources"
)

// observeOthers asks what other layers list, where objects change hands, come
// or are about to go. Nothing needs to be known of them otherwise.
func (o *observer) observeOthers(ctx context.Context) error {
	if !o.NeedsOthers() {
		return nil
	}
	list := &v1alpha1.AddonsLayerList{}
	if err := o.reads.unnoted().Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("cannot list layers: %w", err)
	}
	o.Others = dependents.Others{
		Listed: map[objects.ID][]dependents.Claim{}, Exclusive: map[string][]dependents.Claim{},
		Existing: make(map[string]bool, len(list.Items)), Unreadable: map[string]bool{},
	}
	var (
		asked     = make([]*v1alpha1.AddonsLayer, 0, len(list.Items))
		questions = make([]memory.Question, 0, len(list.Items))
	)
	isApart := o.Apart()
	for i := range list.Items {
		layer := &list.Items[i]
		if layer.Name == o.Layer.Name {
			continue
		}
		o.AddOther(&o.Others, layer)
		o.AddHeld(&o.Others, layer)
		if !layer.DeletionTimestamp.IsZero() || isApart(layer) {
			continue
		}
		if found := o.contentOf(ctx, layer); found != nil {
			asked, questions = append(asked, layer), append(questions, memory.Question{Layer: layer.Name, Origin: o.originIn(found, layer)})
		} else {
			o.unreadable(layer)
		}
	}
	found, unknown := o.r.listings.Concerning(questions, o.Twins.AllIDs(maps.Keys(o.Live)), o.Twins.AllIdentities(maps.Keys(o.Exclusive)))
	for name, listing := range found {
		o.AddClaims(&o.Others, name, listing)
	}
	for _, i := range unknown {
		if listing, readable := o.listingOf(ctx, asked[i]); readable {
			o.AddClaims(&o.Others, asked[i].Name, listing)
		} else {
			o.unreadable(asked[i])
		}
	}
	slices.Sort(o.Others.UnreadableSiblings)
	return nil
}

// unreadable notes that it is not known what another layer lists.
func (o *observer) unreadable(layer *v1alpha1.AddonsLayer) {
	o.Others.Unreadable[layer.Name] = true
	if o.sameSource(layer) {
		o.Others.UnreadableSiblings = append(o.Others.UnreadableSiblings, layer.Name)
	}
}

// contentOf returns the content that another layer's source has, or nil. A
// source that the layer may not use is not read.
func (o *observer) contentOf(ctx context.Context, layer *v1alpha1.AddonsLayer) content {
	if !layers.MayUseSource(layer, o.Settings) {
		return nil
	}
	if sources.IsOfBundle(layer) {
		_, found, err := o.reads.unnoted().fill(ctx, layer)
		if err != nil {
			return nil
		}
		return found
	}
	ref := sources.Of(layer, o.Settings.Namespace)
	artifact, known := o.sources[ref]
	if !known {
		if _, _, found, err := o.reads.unnoted().readSource(ctx, layer, false); err == nil && found != nil {
			artifact = found.artifact()
		}
		o.sources[ref] = artifact
	}
	return o.r.contentOf(layer, artifact)
}

// listingOf reads what another layer lists at its source's current revision, of
// which contentOf has told.
func (o *observer) listingOf(ctx context.Context, layer *v1alpha1.AddonsLayer) (layers.Listing, bool) {
	found := o.contentOf(ctx, layer)
	digest, _, err := found.digest(ctx)
	if err != nil {
		o.unread(err)
		return layers.Listing{}, false
	}
	cluster := placement.ClusterName(placement.Of(layer, o.Settings.Namespace))
	if known, ok := o.r.listings.Known(layer.Name, memory.DigestOn(digest, cluster)); ok {
		o.r.listings.Found(layer.Name, memory.DigestOn(digest, cluster), o.originIn(found, layer))
		return known, true
	}
	directory, err := found.directory(ctx)
	if err != nil {
		o.unread(err)
		return layers.Listing{}, false
	}
	// What a layer copies for itself nobody else lists, so it is left out.
	if cluster != "" {
		if directory, err = o.r.placeOn(layer, cluster).Put(directory); err != nil {
			return layers.Listing{}, false
		}
	}
	listing := o.r.listings.Of(layer.Name, directory)
	o.r.listings.Found(layer.Name, memory.DigestOf(directory), o.originIn(found, layer))
	return listing, true
}

// originIn returns where a layer's directory comes from, and where it goes.
func (o *observer) originIn(from content, layer *v1alpha1.AddonsLayer) memory.Origin {
	return memory.Origin{
		Artifact: from.key(), Path: layer.Spec.Source.Path,
		Cluster: placement.ClusterName(placement.Of(layer, o.Settings.Namespace)),
	}
}

// unread notes that another layer's directory could not be read for a reason
// that passes, so that it is tried again.
func (o *observer) unread(err error) {
	var content *directories.ContentError
	if !errors.As(err, &content) {
		o.OthersUnread = true
	}
}
