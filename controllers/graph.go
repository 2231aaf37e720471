// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependencies"
)

// graph remembers which layers each layer depends on, as their events have
// told one by one. The cache may be further than an event that is being
// handled; a cycle that two changes have opened, or closed, would not be seen
// there.
type graph struct {
	mu    sync.Mutex
	edges dependencies.Graph
}

func newGraph() *graph { return &graph{edges: dependencies.Graph{}} }

// set records what a layer depends on, and returns the layers that were on a
// cycle with it before, or are now.
func (g *graph) set(name string, dependsOn []string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.Equal(g.edges[name], dependsOn) {
		return nil
	}
	before := g.edges.Circle(name)
	if len(dependsOn) == 0 {
		delete(g.edges, name)
	} else {
		g.edges[name] = dependsOn
	}
	return append(before, g.edges.Circle(name)...)
}

// graphHandler wakes the layers that a layer depends on or depended on, which
// may wait for its deletion or for its range to become wider, and those whose
// cycle it has closed or opened.
func (r *AddonsLayerReconciler) graphHandler() handler.EventHandler {
	edges := newGraph()
	wake := func(q queue, name string, dependsOn []string, former ...string) {
		for _, names := range [][]string{former, dependsOn, edges.set(name, dependsOn)} {
			for _, req := range requests(names...) {
				q.Add(req)
			}
		}
	}
	names := func(obj client.Object) []string { return dependencyNames(obj.(*v1alpha1.AddonsLayer)) }
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { wake(q, e.Object.GetName(), names(e.Object)) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			wake(q, e.ObjectNew.GetName(), names(e.ObjectNew), names(e.ObjectOld)...)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			wake(q, e.Object.GetName(), nil, names(e.Object)...)
		},
	}
}
