// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"sync"
	"time"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// Waits measures how long orphans and roll-outs of layers have waited, by a
// clock that nobody sets: what the status says since when is the wall clock's
// word, and that may jump. What began before this process is believed as it is
// seen first. It is safe for concurrent use.
type Waits struct {
	steady func() time.Duration

	mu     sync.Mutex
	layers map[string]map[waitFor]waited
}

// waitFor is an orphan, or with an empty ID a roll-out, and since when the
// status says it waits.
type waitFor struct {
	id    objects.ID
	since int64
}

// waited is how long something had waited when it was seen first, and when that
// was.
type waited struct {
	before, seen time.Duration
}

// NewWaits returns one without memory. steady returns the time since some
// moment, always going on.
func NewWaits(steady func() time.Duration) *Waits {
	return &Waits{steady: steady, layers: map[string]map[waitFor]waited{}}
}

// Of returns how long a layer's orphans have waited at most, and its roll-out,
// where it has one. What the status says no longer is forgotten.
func (w *Waits) Of(layer *v1alpha1.AddonsLayer, now time.Time) (orphans map[objects.ID]time.Duration, underWay *time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, next := w.layers[layer.Name], map[waitFor]waited{}
	steady := w.steady()
	measure := func(id objects.ID, since time.Time) time.Duration {
		key := waitFor{id, since.Unix()}
		known, found := last[key]
		if !found {
			known = waited{before: max(0, now.Sub(since)), seen: steady}
		}
		next[key] = known
		return known.before + steady - known.seen
	}
	orphans = map[objects.ID]time.Duration{}
	for _, entry := range layers.Inventory(layer.Status.Resources, nil) {
		if entry.Status == objects.StatusOrphaned {
			orphans[entry.ID] = measure(entry.ID, entry.Since)
		}
	}
	if attempt := layer.Status.Attempt; attempt != nil {
		rollOut := measure(objects.ID{}, attempt.StartTime.Time)
		underWay = &rollOut
	}
	w.layers[layer.Name] = next
	return orphans, underWay
}

// Forget drops a layer that is gone.
func (w *Waits) Forget(layer string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.layers, layer)
}
