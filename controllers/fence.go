// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/strata-project/strata/internal/round"
)

// fenced looks at one object, as long as the process may act, and returns the end of
// the look as controller-runtime takes it.
func fenced(ctx context.Context, fence *Fence, req ctrl.Request, look func(context.Context, ctrl.Request) (time.Duration, error)) (ctrl.Result, error) {
	if !fence.Holds() {
		return ctrl.Result{}, nil // the process is about to end
	}
	after, err := round.Outcome(look(ctx, req))
	return ctrl.Result{RequeueAfter: after}, err
}

// Fence keeps a process that was stopped for a while, and may have lost the
// lead meanwhile, from acting on what it knew before. Leader election finds out
// as well, but only when it has tried in vain for the whole renew deadline. It
// is safe for concurrent use.
type Fence struct {
	limit time.Duration
	began time.Time
	// beat is the last sign of life, as the time since began; 0 before the
	// first one.
	beat atomic.Int64
	lost atomic.Bool
}

// NewFence returns a fence for stops that are longer than a limit.
func NewFence(limit time.Duration) *Fence { return &Fence{limit: limit, began: time.Now()} }

// errStopped says why the process ends.
var errStopped = errors.New("this process was stopped for so long that another one may have taken the lead")

// Start gives signs of life until ctx ends. It returns an error, which ends the
// process, where it was stopped for longer than the limit.
func (f *Fence) Start(ctx context.Context) error {
	f.beat.Store(max(int64(time.Since(f.began)), 1))
	ticker := time.NewTicker(f.limit / 10)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if !f.Holds() {
				return errStopped
			}
			f.beat.Store(int64(time.Since(f.began)))
		}
	}
}

// Holds tells whether the process has lived without a longer stop since it
// began to give signs of life. A nil fence always holds.
func (f *Fence) Holds() bool {
	if f == nil {
		return true
	}
	if beat := f.beat.Load(); beat > 0 && time.Since(f.began)-time.Duration(beat) > f.limit {
		f.lost.Store(true)
	}
	return !f.lost.Load()
}
