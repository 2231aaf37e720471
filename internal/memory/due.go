// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory holds what a controller remembers between its looks: how long things have
// waited, what layers list, and the newest of what it has written of some kinds. A restart
// loses all of it, and nothing may depend on its being there.
package memory

import (
	"sync"
	"time"
)

// Due remembers until when statuses wait that were put off, by the names of their
// objects. The zero value remembers none. It is safe for concurrent use.
type Due[Name comparable] struct {
	mu     sync.Mutex
	byName map[Name]time.Time
}

// PutOff returns how long a status still waits that may be written so long after it was
// first put off; 0 when that is over.
func (d *Due[Name]) PutOff(name Name, now time.Time, lag time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	due, known := d.byName[name]
	if !known || due.Sub(now) > lag { // the clock was set back
		due = now.Add(lag)
		if d.byName == nil {
			d.byName = map[Name]time.Time{}
		}
		d.byName[name] = due
	}
	return max(due.Sub(now), 0)
}

// Forget drops what was put off, because it was told or because there is nothing to tell.
func (d *Due[Name]) Forget(name Name) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byName, name)
}
