// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"testing"
	"time"

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
		return nil, errors.New("list first")
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
