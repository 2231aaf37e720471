// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"

	"github.com/strata-project/strata/internal/impact"
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

// observeVolumes looks up the volumes of what Flux would install anew. It is asked for
// while a release waits to be written that way, and no longer.
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
	unnoted := o.reads.unnoted()
	found, err := impact.Lookup{
		Layer: o.Layer, Departing: releases, Flux: unnoted.Reader, Known: unnoted.Client,
		Definitions: there.Past, Past: there.Past, Mapper: there.Client.RESTMapper(),
	}.Volumes(ctx)
	if ctx.Err() != nil {
		return err
	}
	o.Volumes, o.VolumesError = found, err
	return nil
}
