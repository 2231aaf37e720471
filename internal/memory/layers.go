// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/strata-project/strata/api/v1alpha1"

	"github.com/strata-project/strata/internal/ownwrites"
)

// Layers remembers layers as this process has written them last, and which of their
// statuses wait. It is safe for concurrent use.
type Layers struct {
	mu     sync.Mutex
	byName map[string]*remembered
}

// remembered is what is remembered of one layer.
type remembered struct {
	// last is the layer as it was written last; nil where the cache has it.
	last *v1alpha1.AddonsLayer
	// reported is when its status was written last, and due until when the next one
	// waits that was put off; each is zero where there is none.
	reported, due time.Time
	// withheld is a status that was not written; nil where there is none.
	withheld *withheld
}

// withheld is a status that was not written, of a layer as the cluster has it.
type withheld struct {
	layer  *v1alpha1.AddonsLayer
	status v1alpha1.AddonsLayerStatus
	// since is when the first one was withheld after the last that was written.
	since time.Time
}

// NewLayers returns a memory of no layers.
func NewLayers() *Layers { return &Layers{byName: map[string]*remembered{}} }

// of returns what is remembered of a layer, which is empty for one that is new.
func (l *Layers) of(name string) *remembered {
	found := l.byName[name]
	if found == nil {
		found = &remembered{}
		l.byName[name] = found
	}
	return found
}

// Wrote records a layer as it was after a write.
func (l *Layers) Wrote(layer *v1alpha1.AddonsLayer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(layer.Name).last = layer
}

// Newest returns the newer of a layer in the cache and the last one written. It is the
// cache's own or the memory's, and must not be changed.
func (l *Layers) Newest(cached *v1alpha1.AddonsLayer) *v1alpha1.AddonsLayer {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.byName[cached.Name]
	if known == nil || known.last == nil {
		return cached
	}
	if known.last.UID != cached.UID || !ownwrites.Older(cached.ResourceVersion, known.last.ResourceVersion) {
		known.last = nil
		return cached
	}
	return known.last
}

// WroteStatus records when the status of a layer was written.
func (l *Layers) WroteStatus(layer string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.of(layer)
	known.reported, known.due, known.withheld = now, time.Time{}, nil
}

// Withhold records a status that is not written yet, of a layer as the cluster
// has it.
func (l *Layers) Withhold(layer *v1alpha1.AddonsLayer, status v1alpha1.AddonsLayerStatus, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.of(layer.Name)
	if known.withheld != nil {
		now = known.withheld.since
	}
	known.withheld = &withheld{layer: layer.DeepCopy(), status: *status.DeepCopy(), since: now}
}

// EachWithheld calls a function with each layer of which a status is withheld, as
// the cluster has it, and with that status.
func (l *Layers) EachWithheld(do func(layer *v1alpha1.AddonsLayer, status v1alpha1.AddonsLayerStatus)) {
	l.mu.Lock()
	var all []*withheld
	for _, known := range l.byName {
		if known.withheld != nil {
			all = append(all, known.withheld)
		}
	}
	l.mu.Unlock()
	for _, one := range all {
		do(one.layer.DeepCopy(), *one.status.DeepCopy())
	}
}

// WithWithheld returns a layer with the status that was withheld of it: the layer
// itself where there is none, or where the cluster has another status by now.
func (l *Layers) WithWithheld(layer *v1alpha1.AddonsLayer) *v1alpha1.AddonsLayer {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.byName[layer.Name]
	if known == nil || known.withheld == nil {
		return layer
	}
	last := known.withheld
	if last.layer.UID != layer.UID || !equality.Semantic.DeepEqual(last.layer.Status, layer.Status) {
		known.withheld = nil
		return layer
	}
	with := layer.DeepCopy()
	with.Status = *last.status.DeepCopy()
	return with
}

// Spaced returns how long a status of a layer still waits that may be written so
// long after the last one that this process wrote; 0 when that is over. One that
// says what has just been written waits from now on, and where such a status is
// withheld already, from then on.
func (l *Layers) Spaced(layer string, now time.Time, spacing time.Duration, wrote bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.of(layer)
	from := known.reported
	if known.withheld != nil {
		from = known.withheld.since
	} else if wrote {
		return spacing
	}
	if from.IsZero() || from.After(now) { // the clock was set back
		return 0
	}
	return max(spacing-now.Sub(from), 0)
}

// PutOff returns how long a status of a layer still waits that may be written so
// long after it was first put off; 0 when that is over.
func (l *Layers) PutOff(layer string, now time.Time, lag time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.of(layer)
	if known.due.IsZero() || known.due.Sub(now) > 2*lag { // the clock was set back
		known.due = now.Add(lag)
	}
	return max(known.due.Sub(now), 0)
}

// Forget drops a layer that is gone.
func (l *Layers) Forget(layer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byName, layer)
}
