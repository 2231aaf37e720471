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

// lostVolume has the volumes that one layer would lose.
type lostVolume struct {
	// of is the question that was answered: the layer, its cluster and the releases.
	of     string
	at     time.Time
	volume []layers.Blocker
}

// of returns the volumes of a layer, which look finds: once in a while, and where it is asked of
// something else. That a layer loses none is not remembered: it would be taken for safe although a
// volume has been made since.
func (l *lostVolumes) of(layer, what string, now time.Time, look func() ([]layers.Blocker, error)) ([]layers.Blocker, error) {
	l.mu.Lock()
	known, is := l.byLayer[layer]
	l.mu.Unlock()
	if age := now.Sub(known.at); is && known.of == what && age >= 0 && age < volumesKnown {
		return known.volume, nil
	}
	found, err := look()
	if err != nil {
		return found, err
	}
	l.forget(layer)
	if len(found) > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.byLayer == nil {
			l.byLayer = map[string]lostVolume{}
		}
		l.byLayer[layer] = lostVolume{what, now, found}
	}
	return found, nil
}

// forget drops a layer.
func (l *lostVolumes) forget(layer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byLayer, layer)
}

// observeVolumes looks up the volumes of what Flux would install anew. It is asked for
// while a release waits to be written that way, and no longer. A request to look again counts.
func (o *observer) observeVolumes(ctx context.Context) error {
	releases := o.Reinstalled()
	if len(releases) == 0 {
		return nil
	}
	there := o.r.kindsOf(o.cluster())
	if there == nil {
		o.VolumesError = errAway
		return nil
	}
	what := fmt.Sprint(o.Layer.UID, o.cluster(), o.Layer.Annotations[v1alpha1.ReconcileRequestAnnotation], releases)
	unnoted := o.reads.unnoted()
	found, err := o.r.lostVolumes.of(o.Layer.Name, what, o.Now, func() ([]layers.Blocker, error) {
		return impact.Lookup{
			Layer: o.Layer, Departing: releases, Flux: unnoted.Reader, Known: unnoted.Client,
			Definitions: there.Past, Past: there.Past, Mapper: there.Client.RESTMapper(),
		}.Volumes(ctx)
	})
	if ctx.Err() != nil {
		return err
	}
	o.Volumes, o.VolumesError = found, err
	return nil
}
