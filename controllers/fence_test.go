// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/strata-project/strata/api/v1alpha1"
)

func TestFence(t *testing.T) {
	var none *Fence
	f := NewFence(10 * time.Second)
	if !none.Holds() || !f.Holds() {
		t.Error("who does not lead is not fenced off")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Start(ctx); err != nil || !f.Holds() {
		t.Errorf("it holds while there are signs of life; %v", err)
	}
	// As after a stop: the last sign is older than the limit.
	f.began = f.began.Add(-11 * time.Second)
	if f.Holds() {
		t.Error("it holds after a stop of 11 seconds")
	}
	f.beat.Store(int64(time.Since(f.began)))
	if f.Holds() {
		t.Error("it holds again, with what was known before the stop")
	}
	short := NewFence(10 * time.Millisecond)
	short.lost.Store(true)
	if err := short.Start(t.Context()); !errors.Is(err, errStopped) {
		t.Errorf("the process goes on: %v", err)
	}
}

// Behind the fence nothing is looked at: a reconciler without anything to look
// with does not notice.
func TestFencedReconcilerDoesNothing(t *testing.T) {
	f := NewFence(time.Second)
	f.lost.Store(true)
	r := &AddonsLayerReconciler{Process: &Process{Fence: f}}
	if result, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil || result.RequeueAfter != 0 {
		t.Errorf("%v, %v", result, err)
	}
	if err := (&hands{r: r}).Persist(t.Context(), nil, v1alpha1.AddonsLayerStatus{}); !errors.Is(err, errStopped) {
		t.Errorf("it writes a status: %v", err)
	}
}
