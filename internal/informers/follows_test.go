// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/strata-project/strata/internal/objects"
)

// steady lists one ConfigMap, to which nothing happens.
type steady struct{}

// List returns the ConfigMap.
func (steady) List(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return &unstructured.UnstructuredList{Items: []unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": "one", "resourceVersion": "1"},
	}}}}, nil
}

// Watch tells of nothing.
func (steady) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents != nil {
		return nil, apierrors.NewBadRequest("list first")
	}
	return watch.NewFake(), nil
}

// What is followed ends with the controller, and nothing begins after it.
func TestFollowsEndWithTheController(t *testing.T) {
	all := NewFollows(nil, func([]Follower) {})
	all.listerOf = func(followKey, schema.GroupVersionResource) lister { return steady{} }
	id := objects.ID{Kind: "ConfigMap", Namespace: "default", Name: "one"}
	who := Follower{Kind: "AddonsLayer", NamespacedName: types.NamespacedName{Name: "reader"}}
	if found, err := all.Get(t.Context(), who, id); err != nil || found == nil {
		t.Fatalf("got %v, %v", found, err)
	}
	informer := all.byID[followKey{ID: id}].informer

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := all.UntilDone(ctx); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); !informer.IsStopped(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is watched for ever")
		}
	}
	if found, err := all.Get(t.Context(), who, id); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", found, err)
	}
}

// streamed may be neither listed nor watched at first, and is watched from its beginning later.
type streamed struct {
	allowed chan struct{}
	begun   chan struct{}
	events  *watch.FakeWatcher
}

func (s streamed) refusal() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "one", errors.New("no"))
}

func (s streamed) List(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return nil, s.refusal()
}

func (s streamed) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	select {
	case <-s.allowed:
	default:
		return nil, s.refusal()
	}
	if options.SendInitialEvents == nil {
		return nil, s.refusal()
	}
	close(s.begun)
	return s.events, nil
}

// A right that is given later counts once the watch begins that it allows: what was refused
// before is not said any more while the first events come.
func TestFollowsForgetARefusal(t *testing.T) {
	of := streamed{allowed: make(chan struct{}), begun: make(chan struct{}), events: watch.NewFakeWithChanSize(2, false)}
	all := NewFollows(nil, func([]Follower) {})
	all.listerOf = func(followKey, schema.GroupVersionResource) lister { return of }
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = all.UntilDone(ctx)
	})
	id := objects.ID{Kind: "ConfigMap", Namespace: "default", Name: "one"}
	who := Follower{Kind: "AddonsLayer", NamespacedName: types.NamespacedName{Name: "reader"}}
	if _, err := all.Get(t.Context(), who, id); !apierrors.IsForbidden(err) {
		t.Fatalf("got %v, want it to be refused", err)
	}
	close(of.allowed)
	select {
	case <-of.begun:
	case <-time.After(time.Minute):
		t.Fatal("it is not watched again")
	}
	// The watch counts as begun once it has returned.
	found := all.byID[followKey{ID: id}]
	eventually(t, "what was refused is forgotten", func() bool { return all.failure(found) == nil })
	waiting, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := all.Get(waiting, who, id); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want it to be waited for", err)
	}
	object := func(annotations map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"namespace": "default", "name": "one", "resourceVersion": "1", "annotations": annotations,
		}}}
	}
	of.events.Add(object(nil))
	of.events.Action(watch.Bookmark, object(map[string]any{metav1.InitialEventsAnnotationKey: "true"}))
	if got, err := all.Get(t.Context(), who, id); err != nil || got == nil {
		t.Errorf("got %v, %v", got, err)
	}
}
