// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ownwrites remembers what a controller has written, so that a cache that has not seen
// it yet is not believed. A restart loses all of it, and nothing may depend on its being there.
package ownwrites

import (
	"strconv"
	"sync"
	"time"

	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/objects"
)

// StaleFor bounds how long a cache may be believed to lag behind a write: an
// object that was deleted before the cache saw it would be waited for
// otherwise.
const StaleFor = 10 * time.Second

// Objects remembers this process's own last writes of objects, so that a cache that
// has not seen them yet is not mistaken for somebody else's change. It is safe for
// concurrent use.
type Objects struct {
	mu      sync.Mutex
	written map[objects.ID]write
}

type write struct {
	version string
	at      time.Time
}

// NewObjects returns a memory of no writes.
func NewObjects() *Objects { return &Objects{written: map[objects.ID]write{}} }

// Wrote records what became of actions.
func (o *Objects) Wrote(results []dependents.Result, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, result := range results {
		switch {
		case result.Err != nil || result.Outdated:
		case result.Action.Verb == dependents.VerbDelete, result.Action.Verb == dependents.VerbRelease:
			delete(o.written, result.Action.ID)
		default:
			// Plans of two layers may end in another order than they have written
			// one object: what is newer stays.
			if last, known := o.written[result.Action.ID]; !known || now.Sub(last.at) > StaleFor || !Older(result.ResourceVersion, last.version) {
				o.written[result.Action.ID] = write{version: result.ResourceVersion, at: now}
			}
		}
	}
}

// IsStale tells whether an object as the cache has it, with "" for one that
// the cache lacks, is older than the last write.
func (o *Objects) IsStale(id objects.ID, version string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	last, known := o.written[id]
	if !known {
		return false
	}
	if now.Before(last.at) { // the clock was set back
		last.at = now
		o.written[id] = last
	}
	if now.Sub(last.at) > StaleFor || version != "" && !Older(version, last.version) {
		delete(o.written, id)
		return false
	}
	return true
}

// Awaits tells whether an object at a version is what the last write, which no
// look has found in the cache yet, has led to.
func (o *Objects) Awaits(id objects.ID, version string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	last, known := o.written[id]
	return known && !Older(version, last.version)
}

// Older compares resourceVersions of one resource, which the API server
// guarantees to be comparable numbers.
func Older(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX == nil && errY == nil && x < y
}
