// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory holds what a controller remembers between its looks: its own
// writes, how long things have waited, and what layers list. A restart loses all
// of it, and nothing may depend on its being there.
package memory

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
)

// StaleFor bounds how long a cache may be believed to lag behind a write: an
// object that was deleted before the cache saw it would be waited for
// otherwise.
const StaleFor = 10 * time.Second

// Writes remembers this process's own last writes, so that a cache that has
// not seen them yet is not mistaken for somebody else's change. It is safe for
// concurrent use.
type Writes struct {
	mu      sync.Mutex
	objects map[dependents.ID]write
	layers  map[string]*v1alpha1.AddonsLayer
	// statuses holds when the status of a layer was written last.
	statuses map[string]time.Time
	// due holds until when the next one waits that was put off.
	due map[string]time.Time
	// withheld holds statuses that were not written.
	withheld map[string]withheld
}

// withheld is a status that was not written, of a layer as the cluster has it.
type withheld struct {
	layer  *v1alpha1.AddonsLayer
	status v1alpha1.AddonsLayerStatus
	// since is when the first one was withheld after the last that was written.
	since time.Time
}

type write struct {
	version string
	at      time.Time
}

// NewWrites returns one without memory.
func NewWrites() *Writes {
	return &Writes{objects: map[dependents.ID]write{}, layers: map[string]*v1alpha1.AddonsLayer{}, statuses: map[string]time.Time{}, due: map[string]time.Time{}, withheld: map[string]withheld{}}
}

// Wrote records what became of actions.
func (r *Writes) Wrote(results []dependents.Result, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, result := range results {
		switch {
		case result.Err != nil || result.Outdated:
		case result.Action.Verb == dependents.VerbDelete, result.Action.Verb == dependents.VerbRelease:
			delete(r.objects, result.Action.ID)
		default:
			// Plans of two layers may end in another order than they have written
			// one object: what is newer stays.
			if last, known := r.objects[result.Action.ID]; !known || now.Sub(last.at) > StaleFor || !older(result.ResourceVersion, last.version) {
				r.objects[result.Action.ID] = write{version: result.ResourceVersion, at: now}
			}
		}
	}
}

// IsStale tells whether an object as the cache has it, with "" for one that
// the cache lacks, is older than the last write.
func (r *Writes) IsStale(id dependents.ID, version string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.objects[id]
	if !known {
		return false
	}
	if now.Before(last.at) { // the clock was set back
		last.at = now
		r.objects[id] = last
	}
	if now.Sub(last.at) > StaleFor || version != "" && !older(version, last.version) {
		delete(r.objects, id)
		return false
	}
	return true
}

// Awaits tells whether an object at a version is what the last write, which no
// look has found in the cache yet, has led to.
func (r *Writes) Awaits(id dependents.ID, version string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.objects[id]
	return known && !older(version, last.version)
}

// WroteLayer records a layer as it was after a write.
func (r *Writes) WroteLayer(layer *v1alpha1.AddonsLayer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.layers[layer.Name] = layer
}

// Newest returns the newer of a layer in the cache and the last one written.
func (r *Writes) Newest(cached *v1alpha1.AddonsLayer) *v1alpha1.AddonsLayer {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.layers[cached.Name]
	if last == nil {
		return cached
	}
	if last.UID != cached.UID || !older(cached.ResourceVersion, last.ResourceVersion) {
		delete(r.layers, cached.Name)
		return cached
	}
	return last.DeepCopy()
}

// WroteStatus records when the status of a layer was written.
func (r *Writes) WroteStatus(layer string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statuses[layer] = now
	delete(r.due, layer)
	delete(r.withheld, layer)
}

// Withhold records a status that is not written yet, of a layer as the cluster
// has it.
func (r *Writes) Withhold(layer *v1alpha1.AddonsLayer, status v1alpha1.AddonsLayerStatus, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, known := r.withheld[layer.Name]; known {
		now = last.since
	}
	r.withheld[layer.Name] = withheld{layer: layer.DeepCopy(), status: *status.DeepCopy(), since: now}
}

// EachWithheld calls a function with each layer of which a status is withheld, as
// the cluster has it, and with that status.
func (r *Writes) EachWithheld(do func(layer *v1alpha1.AddonsLayer, status v1alpha1.AddonsLayerStatus)) {
	r.mu.Lock()
	all := slices.Collect(maps.Values(r.withheld))
	r.mu.Unlock()
	for _, one := range all {
		do(one.layer.DeepCopy(), *one.status.DeepCopy())
	}
}

// WithWithheld returns a layer with the status that was withheld of it: the layer
// itself where there is none, or where the cluster has another status by now.
func (r *Writes) WithWithheld(layer *v1alpha1.AddonsLayer) *v1alpha1.AddonsLayer {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.withheld[layer.Name]
	if !known {
		return layer
	}
	if last.layer.UID != layer.UID || !equality.Semantic.DeepEqual(last.layer.Status, layer.Status) {
		delete(r.withheld, layer.Name)
		return layer
	}
	with := layer.DeepCopy()
	with.Status = *last.status.DeepCopy()
	return with
}

// Spaced returns how long a status of a layer still waits that may be written so
// long after the last one that this process wrote; 0 or less when that is over.
// One that says what has just been written waits from now on, and where such a
// status is withheld already, from then on.
func (r *Writes) Spaced(layer string, now time.Time, spacing time.Duration, wrote bool) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	from, known := r.statuses[layer]
	if first, isWithheld := r.withheld[layer]; isWithheld {
		from, known = first.since, true
	} else if wrote {
		return spacing
	}
	if !known || from.After(now) { // the clock was set back
		return 0
	}
	return spacing - now.Sub(from)
}

// PutOff returns how long a status of a layer still waits that may be written so
// long after it was first put off; 0 or less when that is over.
func (r *Writes) PutOff(layer string, now time.Time, lag time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	due, known := r.due[layer]
	if !known || due.Sub(now) > 2*lag { // the clock was set back
		due = now.Add(lag)
		r.due[layer] = due
	}
	return due.Sub(now)
}

// Forget drops a layer that is gone.
func (r *Writes) Forget(layer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.statuses, layer)
	delete(r.due, layer)
	delete(r.layers, layer)
	delete(r.withheld, layer)
}

// older compares resourceVersions of one resource, which the API server
// guarantees to be comparable numbers.
func older(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX == nil && errY == nil && x < y
}
