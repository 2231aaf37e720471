// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"

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
	o.sought = o.NamesSought()
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
			o.unfound(layer)
		}
	}
	found, unknown := o.r.listings.Concerning(questions, o.Twins.AllIDs(maps.Keys(o.Live)), o.Twins.AllIdentities(maps.Keys(o.Exclusive)))
	for name, listing := range found {
		o.AddClaims(&o.Others, name, listing)
	}
	for _, i := range unknown {
		if listing, err := o.listingOf(ctx, asked[i]); err == nil {
			o.AddClaims(&o.Others, asked[i].Name, listing)
		} else {
			o.unreadable(asked[i], func() directories.Mentions { return o.mentions(ctx, asked[i], err) })
		}
	}
	return nil
}

// unreadable notes that it is not known what another layer lists. What left this layer may
// have gone to it where both have one source, so that it is searched for then.
func (o *observer) unreadable(layer *v1alpha1.AddonsLayer, search func() directories.Mentions) {
	o.Others.Unreadable[layer.Name] = true
	if len(o.sought) > 0 && o.sameSource(layer) {
		o.AddDoubt(&o.Others, layer.Name, search())
	}
}

// unfound is unreadable of a layer that has no content. Where its source is gone, nothing
// can have moved to it: what it listed last counts.
func (o *observer) unfound(layer *v1alpha1.AddonsLayer) {
	why := "its source has nothing to read"
	switch gone := o.sources[sources.Of(layer, o.Settings.Namespace)].gone; {
	case sources.IsOfBundle(layer) || !layers.MayUseSource(layer, o.Settings):
	case !gone:
	default:
		listing, known := o.r.listings.Last(layer.Name)
		if !known {
			listing = o.LastListed(layer)
		}
		o.AddClaims(&o.Others, layer.Name, listing)
		if known || !layers.HoldOf(layer, o.Now).Active {
			o.Others.Unreadable[layer.Name] = true
			return
		}
		why = "it is held, its source is gone, and what it listed last is not known"
	}
	o.unreadable(layer, func() directories.Mentions { return directories.Mentions{Unknown: why} })
}

// mentions searches what cannot be read of another layer's directory.
func (o *observer) mentions(ctx context.Context, layer *v1alpha1.AddonsLayer, err error) directories.Mentions {
	var mistake *directories.ContentError
	if !errors.As(err, &mistake) {
		return directories.Mentions{Unknown: "what it lists could not be read just now"}
	}
	from, is := o.contentOf(ctx, layer).(fetched)
	if !is || from.how == nil {
		return directories.Mentions{Unknown: mistake.Error()}
	}
	found, err := o.r.Artifacts.Mentions(ctx, from.of, from.path, *from.how, o.sought)
	if err != nil {
		o.OthersUnread = true
		return directories.Mentions{Unknown: "what it lists could not be read just now"}
	}
	return found
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
	read, known := o.sources[ref]
	if !known {
		obj, _, found, err := o.reads.unnoted().readSource(ctx, layer, false)
		if err == nil && found != nil {
			read.artifact = found.artifact()
		}
		read.gone = err == nil && obj == nil || errors.Is(err, errUnserved)
		o.sources[ref] = read
	}
	return o.r.contentOf(layer, read.artifact)
}

// listingOf reads what another layer lists at its source's current revision, of
// which contentOf has told.
func (o *observer) listingOf(ctx context.Context, layer *v1alpha1.AddonsLayer) (layers.Listing, error) {
	found := o.contentOf(ctx, layer)
	digest, _, err := found.digest(ctx)
	if err != nil {
		o.unread(err)
		return layers.Listing{}, err
	}
	cluster := placement.ClusterName(placement.Of(layer, o.Settings.Namespace))
	if known, ok := o.r.listings.Known(layer.Name, memory.DigestOn(digest, cluster)); ok {
		o.r.listings.Found(layer.Name, memory.DigestOn(digest, cluster), o.originIn(found, layer))
		return known, nil
	}
	directory, err := found.directory(ctx)
	if err != nil {
		o.unread(err)
		return layers.Listing{}, err
	}
	// What a layer copies for itself nobody else lists, so it is left out.
	if cluster != "" {
		if directory, err = o.r.placeOn(layer, cluster).Put(directory); err != nil {
			return layers.Listing{}, err
		}
	}
	listing := o.r.listings.Of(layer.Name, directory)
	o.r.listings.Found(layer.Name, memory.DigestOf(directory), o.originIn(found, layer))
	return listing, nil
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
