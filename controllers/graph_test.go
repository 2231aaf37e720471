// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/strata-project/strata/api/v1alpha1"
)

// recorded is a queue that only says who was put into it.
type recorded struct {
	queue
	names []string
}

func (r *recorded) Add(req ctrl.Request) { r.names = append(r.names, req.Name) }

func (r *recorded) taken() []string {
	slices.Sort(r.names)
	names := slices.Compact(r.names)
	r.names = nil
	return names
}

func depending(name string, others ...string) *v1alpha1.AddonsLayer {
	layer := &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: name}}
	layer.Spec.Prereqs.DependsOn = others
	return layer
}

// Every step is an event, told of one after another.
func TestGraphWakes(t *testing.T) {
	inner := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer inner.ShutDown()
	q := &recorded{queue: inner}
	graph := (&AddonsLayerReconciler{}).graphHandler()
	created := func(layer *v1alpha1.AddonsLayer) func(context.Context) {
		return func(ctx context.Context) { graph.Create(ctx, event.CreateEvent{Object: layer}, q) }
	}
	changed := func(was, is *v1alpha1.AddonsLayer) func(context.Context) {
		return func(ctx context.Context) { graph.Update(ctx, updated(was, is), q) }
	}
	gone := func(layer *v1alpha1.AddonsLayer) func(context.Context) {
		return func(ctx context.Context) { graph.Delete(ctx, event.DeleteEvent{Object: layer}, q) }
	}
	steps := []struct {
		reason string
		event  func(context.Context)
		want   []string
	}{
		{"a layer without dependencies", created(depending("a")), nil},
		{"what a new layer depends on", created(depending("b", "a@^1")), []string{"a"}},
		{"also what does not exist", created(depending("d", "c")), []string{"c"}},
		{"and what its version cannot be read for", created(depending("e", "d@>=x", "d")), []string{"d"}},
		{"a link between two chains", created(depending("c", "b")), []string{"b"}},
		{"a cycle is closed: all of its members", changed(depending("a"), depending("a", "e@1")), []string{"a", "b", "c", "d", "e"}},
		{"an annotation on a member: what it depends on", changed(depending("c", "b"), depending("c", "b")), []string{"b"}},
		{"a layer that depends on a member", created(depending("f", "c")), []string{"c"}},
		{"a member that leaves: all former members, and not the others", changed(depending("c", "b"), depending("c", "g")), []string{"a", "b", "c", "d", "e", "g"}},
		{"the cycle is open: what is depended on", changed(depending("a", "e@1"), depending("a")), []string{"e"}},
		{"a cycle of one", changed(depending("a"), depending("a", "a")), []string{"a"}},
		{"closed once more", changed(depending("c", "g"), depending("c", "b")), []string{"b", "g"}},
		{"with both", changed(depending("a", "a"), depending("a", "e")), []string{"a", "b", "c", "d", "e"}},
		{"a member that is gone: all former members", gone(depending("d", "c")), []string{"a", "b", "c", "d", "e"}},
		{"nothing is left of it", changed(depending("c", "b"), depending("c")), []string{"b"}},
	}
	for _, step := range steps {
		step.event(t.Context())
		if diff := cmp.Diff(step.want, q.taken()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.reason, diff)
		}
	}
}
