// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"sync"
	"time"

	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/fields"
	"github.com/strata-project/strata/internal/objects"
)

const (
	// disputedAfter corrections of one field against one manager, within disputedWithin,
	// make a dispute.
	disputedAfter  = 3
	disputedWithin = time.Minute
	// firstPause is how long the next correction waits then; the pause doubles with each,
	// up to longestPause.
	firstPause   = time.Minute
	longestPause = time.Hour
	// mostDisputed bounds how many objects are remembered. With more, all are forgotten.
	mostDisputed = 10_000
)

// Disputes remembers which corrections are undone again and again. The zero value is ready
// to be used. It is safe for concurrent use.
type Disputes struct {
	mu      sync.Mutex
	objects map[objects.ID]*corrections
}

// corrections are those of one object.
type corrections struct {
	// recent has, for each rival, the moments of its last corrections.
	recent map[fields.Rival][]time.Time
	// dispute is zero while there is none, and pause how long its last one was.
	dispute dependents.Dispute
	pause   time.Duration
}

// Corrected notes what a write has undone.
func (d *Disputes) Corrected(results []dependents.Result, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range results {
		if result := &results[i]; result.IsCorrection() && len(result.Rivals) > 0 {
			d.corrected(result.Action.ID, result.Rivals, now)
		}
	}
}

func (d *Disputes) corrected(id objects.ID, rivals []fields.Rival, now time.Time) {
	if d.objects == nil || len(d.objects) >= mostDisputed {
		d.objects = map[objects.ID]*corrections{}
	}
	known := d.objects[id]
	if known == nil {
		known = &corrections{recent: map[fields.Rival][]time.Time{}}
		d.objects[id] = known
	}
	recent := make(map[fields.Rival][]time.Time, len(rivals))
	for _, rival := range rivals {
		recent[rival] = append(since(known.recent[rival], now.Add(-disputedWithin)), now)
	}
	known.recent = recent
	for _, rival := range rivals {
		goesOn := known.dispute.Rival == rival && now.Before(known.dispute.Ends)
		switch {
		case goesOn:
			known.pause = min(2*known.pause, longestPause)
			known.dispute.Times++
		case len(recent[rival]) >= disputedAfter:
			known.pause = firstPause
			known.dispute = dependents.Dispute{Rival: rival, Times: len(recent[rival])}
		default:
			continue
		}
		known.dispute.Until = now.Add(known.pause)
		known.dispute.Ends = known.dispute.Until.Add(known.pause)
		return
	}
}

// since returns the moments that are not before one.
func since(moments []time.Time, begin time.Time) []time.Time {
	var kept []time.Time
	for _, moment := range moments {
		if !moment.Before(begin) {
			kept = append(kept, moment)
		}
	}
	return kept
}

// Of returns the dispute over an object, if there is one.
func (d *Disputes) Of(id objects.ID, now time.Time) (dependents.Dispute, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.objects[id]
	if known == nil {
		return dependents.Dispute{}, false
	}
	if known.dispute.Times == 0 {
		return dependents.Dispute{}, false
	}
	if !now.Before(known.dispute.Ends) {
		delete(d.objects, id)
		return dependents.Dispute{}, false
	}
	return known.dispute, true
}
