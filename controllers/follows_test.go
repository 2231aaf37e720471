// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/internal/dependents"
)

// What is followed ends with the controller, and nothing begins after it.
func TestFollowsEndWithTheController(t *testing.T) {
	f := newBareFixture(t)
	client, err := dynamic.NewForConfig(plane.Config())
	f.must(err)
	all := newFollows(func(string, types.NamespacedName) dynamic.Interface { return client }, func([]reader) {})
	f.must(f.client.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "one"}}))
	id := dependents.ID{Kind: "ConfigMap", Namespace: f.namespace, Name: "one"}
	if found, err := all.get(f.ctx, layerReader("reader"), id); err != nil || found == nil {
		t.Fatalf("got %v, %v", found, err)
	}
	informer := all.byID[followKey{ID: id}].informer

	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	f.must(all.untilDone(ctx))
	f.eventually("nothing is watched", func() error {
		if !informer.IsStopped() {
			return errors.New("it is")
		}
		return nil
	})
	if found, err := all.get(f.ctx, layerReader("reader"), id); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", found, err)
	}
}
