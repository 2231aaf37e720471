// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

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
