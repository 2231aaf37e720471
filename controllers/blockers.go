// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/impact"
	"github.com/strata-project/strata/internal/layers"
)

// observeBlockers looks up what stands in the way of a layer's deletion. That
// is not in the cache, and is asked for while a deletion waits to begin only.
func (o *observer) observeBlockers(ctx context.Context) error {
	there := o.r.kindsOf(o.cluster())
	if !o.AsksForBlockers() || there == nil {
		return nil
	}
	unnoted := o.reads.unnoted()
	found, err := impact.Lookup{
		Layer: o.Layer, Departing: o.Departing(), Flux: unnoted.Reader, Known: unnoted.Client,
		Definitions: there.Past, Past: there.Past, Mapper: there.Client.RESTMapper(),
	}.Blockers(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		o.BlockersError = err
		return nil
	}
	o.Blockers = found
	return nil
}

// errAway says that a cluster is not to be asked.
var errAway = errors.New("its cluster is not connected")

// volumesKnown is how long the volumes that a layer was found to lose count as they are: the
// layer waits, and what it waits for is an annotation.
const volumesKnown = 25 * time.Second

// lostVolumes remembers which volumes were found that depend on what Flux would install anew, so
// that a layer that waits for consent asks for them once in a while, and not at each look. It is
// safe for concurrent use.
type lostVolumes struct {
	mu      sync.Mutex
	byLayer map[string]lostVolume
}

// lostVolume is what was found for one layer.
type lostVolume struct {
	// of says what was asked.
	of     string
	at     time.Time
	volume []layers.Blocker
}

// get returns what is known of a layer; false where that is nothing.
func (l *lostVolumes) get(layer, of string, now time.Time) ([]layers.Blocker, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, known := l.byLayer[layer]
	if age := now.Sub(found.at); !known || found.of != of || age < 0 || age >= volumesKnown {
		return nil, false
	}
	return found.volume, true
}

// set remembers what was found. Of a layer that loses nothing nothing is kept: it would be taken
// for safe although a volume has been made since.
func (l *lostVolumes) set(layer, of string, now time.Time, found []layers.Blocker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(found) == 0:
		delete(l.byLayer, layer)
	case l.byLayer == nil:
		l.byLayer = map[string]lostVolume{layer: {of, now, found}}
	default:
		l.byLayer[layer] = lostVolume{of, now, found}
	}
}

// observeVolumes looks up the volumes of what Flux would install anew. It is asked for
// while a release waits to be written that way, and no longer. A request to look again counts.
func (o *observer) observeVolumes(ctx context.Context) error {
	releases := o.Reinstalled()
	if len(releases) == 0 {
		o.r.lostVolumes.set(o.Layer.Name, "", o.Now, nil)
		return nil
	}
	there := o.r.kindsOf(o.cluster())
	if there == nil {
		o.VolumesError = errAway
		return nil
	}
	of := fmt.Sprint(o.Layer.UID, o.cluster(), o.Layer.Annotations[v1alpha1.ReconcileRequestAnnotation], releases)
	found, known := o.r.lostVolumes.get(o.Layer.Name, of, o.Now)
	if known {
		o.Volumes = found
		return nil
	}
	unnoted := o.reads.unnoted()
	found, err := impact.Lookup{
		Layer: o.Layer, Departing: releases, Flux: unnoted.Reader, Known: unnoted.Client,
		Definitions: there.Past, Past: there.Past, Mapper: there.Client.RESTMapper(),
	}.Volumes(ctx)
	if ctx.Err() != nil {
		return err
	}
	if err == nil {
		o.r.lostVolumes.set(o.Layer.Name, of, o.Now, found)
	}
	o.Volumes, o.VolumesError = found, err
	return nil
}
