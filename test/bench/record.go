// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"sync"
	"time"
)

// releaseTimes is what was seen of one release, by this process's clock.
type releaseTimes struct {
	// Created is when it was first seen.
	Created time.Time
	// Mark is the content it has, and MarkAt when it was first seen with it.
	Mark   string
	MarkAt time.Time
	// Generation it has.
	Generation int64
	// Suspended is true while it is.
	Suspended bool
	// ReadyGeneration is the last generation at which it was seen Ready, and
	// ReadyAt when that was.
	ReadyGeneration int64
	ReadyAt         time.Time
	// FirstReady is when it was Ready for the first time.
	FirstReady time.Time
	// Writes counts how often anything but its status was written, its creation
	// included.
	Writes int
}

// isReady tells whether it is Ready as it is now.
func (r *releaseTimes) isReady() bool {
	return r.Generation > 0 && r.ReadyGeneration == r.Generation
}

// releaseRecord remembers the times of all releases. Its methods are safe for
// concurrent use.
type releaseRecord struct {
	mu       sync.Mutex
	releases map[string]*seenRelease
}

// seenRelease is the record of a release and its last state.
type seenRelease struct {
	releaseTimes
	version string
	status  []byte
}

func newReleaseRecord() *releaseRecord {
	return &releaseRecord{releases: map[string]*seenRelease{}}
}

// tell takes in a change of a release; ready says at which generation its
// status calls it Ready, 0 for none.
func (r *releaseRecord) tell(seen change, ready int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	meta := &seen.Object.Metadata
	if seen.Type == "DELETED" {
		delete(r.releases, meta.Name)
		return
	}
	known := r.releases[meta.Name]
	if known == nil {
		known = &seenRelease{}
		known.Created = seen.At
		r.releases[meta.Name] = known
	}
	if known.version == meta.ResourceVersion {
		return
	}
	if known.version == "" || bytes.Equal(known.status, seen.Object.Status) {
		known.Writes++
	}
	known.version, known.status = meta.ResourceVersion, seen.Object.Status
	known.Generation, known.Suspended = meta.Generation, seen.Object.Spec.Suspend
	if mark := seen.Object.Spec.Values.Mark; known.Mark != mark {
		known.Mark, known.MarkAt = mark, seen.At
	}
	if ready > 0 && ready != known.ReadyGeneration {
		known.ReadyGeneration, known.ReadyAt = ready, seen.At
		if known.FirstReady.IsZero() {
			known.FirstReady = seen.At
		}
	}
}

// all returns a copy of what is known of each release.
func (r *releaseRecord) all() map[string]releaseTimes {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[string]releaseTimes, len(r.releases))
	for name, known := range r.releases {
		all[name] = known.releaseTimes
	}
	return all
}

// get returns what is known of a release; the zero value for none.
func (r *releaseRecord) get(name string) releaseTimes {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.releases[name]; known != nil {
		return known.releaseTimes
	}
	return releaseTimes{}
}

// count returns how many releases satisfy a condition.
func (r *releaseRecord) count(holds func(name string, times *releaseTimes) bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for name, known := range r.releases {
		if holds(name, &known.releaseTimes) {
			n++
		}
	}
	return n
}

// layerTimes is what was seen of one layer's object.
type layerTimes struct {
	// Revision that it has settled at; empty where it has not.
	Revision string
	// At is when it was first seen so.
	At time.Time
	// Changes counts how often it was written after it was first seen.
	Changes int
}

// layerRecord remembers when layers settled. Its methods are safe for
// concurrent use.
type layerRecord struct {
	mu       sync.Mutex
	layers   map[string]*layerTimes
	versions map[string]string
}

func newLayerRecord() *layerRecord {
	return &layerRecord{layers: map[string]*layerTimes{}, versions: map[string]string{}}
}

// tell takes in a change of a layer's object, which has settled at a revision,
// or at none.
func (r *layerRecord) tell(seen change, revision string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	meta := &seen.Object.Metadata
	known := r.layers[meta.Name]
	switch {
	case seen.Type == "DELETED":
		delete(r.layers, meta.Name)
		return
	case known == nil:
		known = &layerTimes{}
		r.layers[meta.Name] = known
	case r.versions[meta.Name] != meta.ResourceVersion:
		known.Changes++
	}
	r.versions[meta.Name] = meta.ResourceVersion
	if known.Revision != revision {
		known.Revision, known.At = revision, seen.At
	}
}

// settled returns how many layers have settled at a revision, and when the
// last of them did.
func (r *layerRecord) settled(revision string) (count int, last time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, known := range r.layers {
		if known.Revision != revision {
			continue
		}
		count++
		if known.At.After(last) {
			last = known.At
		}
	}
	return count, last
}

// changes returns how often each layer was written after it was first seen.
func (r *layerRecord) changes() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	changes := make(map[string]int, len(r.layers))
	for name, known := range r.layers {
		changes[name] = known.Changes
	}
	return changes
}

// sourceRecord remembers when a revision was first seen in the status of a
// source. Its methods are safe for concurrent use.
type sourceRecord struct {
	mu    sync.Mutex
	first map[string]*arrival
}

// arrival is the moment at which a revision arrives; seen is closed then.
type arrival struct {
	seen chan struct{}
	at   time.Time
}

func newSourceRecord() *sourceRecord {
	return &sourceRecord{first: map[string]*arrival{}}
}

// tell takes in that a source has an artifact of a revision.
func (r *sourceRecord) tell(source, revision string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range []string{revision, arrivalAt(source, revision)} {
		if of := r.of(key); of.at.IsZero() {
			of.at = at
			close(of.seen)
		}
	}
}

// arrival returns a channel that is closed once a source has a revision.
func (r *sourceRecord) arrival(revision string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of(revision).seen
}

// arrived returns when a revision was first seen; zero when it was not.
func (r *sourceRecord) arrived(revision string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of(revision).at
}

// arrivalAt names the arrival of a revision at one source; the revision alone
// names that at the first of all.
func arrivalAt(source, revision string) string { return source + " " + revision }

func (r *sourceRecord) of(revision string) *arrival {
	if r.first[revision] == nil {
		r.first[revision] = &arrival{seen: make(chan struct{})}
	}
	return r.first[revision]
}
