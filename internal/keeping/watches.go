// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package keeping

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// LedCache is a cache that begins with the lead.
type LedCache struct{ cache.Cache }

// GetCache returns it, so that the manager starts it with its caches.
func (c LedCache) GetCache() cache.Cache { return c.Cache }

// SpecChanged passes what people say of a primary: the specification, labels, annotations, a
// deletion.
var SpecChanged = predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{},
	predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}})
