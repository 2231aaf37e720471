// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
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
	for queue := slices.Clone(o.Layer.Spec.DeleteAfter); len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if asked[name] {
			continue
		}
		asked[name] = true
		layer := &v1alpha1.AddonsLayer{}
		if err := o.r.Client.Get(ctx, types.NamespacedName{Name: name}, layer, client.UnsafeDisableDeepCopy); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return fmt.Errorf("cannot read layer %s: %w", name, err)
		}
		if _, seen := o.Layers[name]; !seen {
			o.Layers[name] = layers.Other{Layer: layer}
		}
		if err := o.observeDependants(ctx, name); err != nil {
			return err
		}
		queue = append(queue, layer.Spec.DeleteAfter...)
		for other, found := range o.Layers {
			if found.Layer != nil && slices.Contains(dependencyNames(found.Layer), name) {
				queue = append(queue, other)
			}
		}
	}
	return nil
}
