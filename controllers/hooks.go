// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"

	"github.com/strata-project/strata/internal/layers"
)

// observePredecessors reads the layers that must be gone before this one is
// deleted, and what their own deletion waits for: where that is this layer, it
// waits for them no more.
func (o *observer) observePredecessors(ctx context.Context) error {
	if o.Layer.DeletionTimestamp.IsZero() {
		return nil
	}
	asked := map[string]bool{o.Layer.Name: true}
	for queue := slices.Clone(o.Layer.Spec.TeardownAfter); len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if asked[name] {
			continue
		}
		asked[name] = true
		layer, err := read(ctx, o.reads, layerQuestion{name})
		if err != nil {
			return err
		}
		if layer == nil {
			continue
		}
		if _, seen := o.Layers[name]; !seen {
			o.Layers[name] = layers.Other{Layer: layer}
		}
		if err := o.observeDependants(ctx, name); err != nil {
			return err
		}
		queue = append(queue, layer.Spec.TeardownAfter...)
		for other, found := range o.Layers {
			if found.Layer != nil && slices.Contains(dependencyNames(found.Layer), name) {
				queue = append(queue, other)
			}
		}
	}
	return nil
}
