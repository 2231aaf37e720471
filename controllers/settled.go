// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/layers"
)

// lastLook is what one look at a layer has read, for the next one: where all of it
// is as it was, and no moment has come that the rules named, they would decide
// the same.
type lastLook struct {
	answers map[question]string
	// events is how many events the caches had told of before they gave these
	// answers.
	events uint64
	// layer, cluster and kinds are the versions of the layer itself and of the
	// cluster, and how often it has changed which kinds are served.
	layer, cluster string
	kinds          int
	// source and digest are the layer's source as the rules saw it, and what its
	// directory held.
	source layers.Source
	digest string
	// until is the moment from which the rules may decide otherwise; zero where
	// there is none.
	until time.Time
	// interval of the layer's safety net, and when it looks next; zero where the
	// queue holds the layer until then.
	interval time.Duration
	due      time.Time
}

// lastLooks remembers the last look at each layer that had nothing to do. It is
// safe for concurrent use.
type lastLooks struct {
	mu      sync.Mutex
	byLayer map[string]*lastLook
}

func newLastLooks() *lastLooks { return &lastLooks{byLayer: map[string]*lastLook{}} }

func (l *lastLooks) get(layer string) *lastLook {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byLayer[layer]
}

// set remembers a look; nil forgets it.
func (l *lastLooks) set(layer string, last *lastLook) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last == nil {
		delete(l.byLayer, layer)
		return
	}
	l.byLayer[layer] = last
}

// leaveUntil leaves a layer to the resync that is due at a moment; zero where the
// queue has it. events is how many the caches had told of when its look was found to
// be true.
func (l *lastLooks) leaveUntil(last *lastLook, events uint64, due time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last.events, last.due = events, due
}

// eventsOf returns how many events the caches had told of when a look was found to be
// true.
func (l *lastLooks) eventsOf(last *lastLook) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return last.events
}

// sweep wakes the layers whose look is due, but for those of which nothing has
// changed: they are due an interval later. A layer that could not be woken stays
// due.
func (l *lastLooks) sweep(now time.Time, unchanged func(*lastLook) bool, wake func(layer string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for layer, last := range l.byLayer {
		switch {
		case last.due.IsZero() || now.Before(last.due):
		case unchanged(last):
			last.due = now.Add(jittered(last.interval))
		case wake(layer):
			last.due = time.Time{}
		}
	}
}

// sweepPeriod is how often it is seen which layers are due, and so how late the
// safety net may be.
const sweepPeriod = time.Second

// resync is the safety net of the layers at rest. A layer that is looked at goes
// through the queue, which costs many times what it costs to see that the caches
// have told of nothing.
func (r *AddonsLayerReconciler) resync(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(context.Context) { r.sweep(r.now()) }, sweepPeriod)
	return nil
}

func (r *AddonsLayerReconciler) sweep(now time.Time) {
	events, cluster, kinds := r.cacheEvents.Load(), r.Cluster.Version(), r.kindChanges()
	r.lastLooks.sweep(now, func(last *lastLook) bool {
		return last.events == events && last.cluster == cluster && last.kinds == kinds
	}, r.wakeOne)
}

// cacheEvents counts what the caches tell of. It counts before anybody is woken, so
// where it stands still a look finds what the last one has found, or its layer
// is about to be woken.
type cacheEvents struct{ atomic.Uint64 }

// count returns a predicate that counts all events and passes those that another
// one passes.
func (c *cacheEvents) count(passes predicate.Predicate) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { c.Add(1); return passes.Create(e) },
		UpdateFunc:  func(e event.UpdateEvent) bool { c.Add(1); return passes.Update(e) },
		DeleteFunc:  func(e event.DeleteEvent) bool { c.Add(1); return passes.Delete(e) },
		GenericFunc: func(e event.GenericEvent) bool { c.Add(1); return passes.Generic(e) },
	}
}

// settled tells whether a look would find all as the last one has left it, or
// nothing to do yet, and when the layer is to be queued again then; 0 leaves it
// to the safety net. Where the caches have told of something since, it asks them
// for versions; it copies nothing.
func (r *AddonsLayerReconciler) settled(ctx context.Context, layer *v1alpha1.AddonsLayer) (time.Duration, bool) {
	last := r.lastLooks.get(layer.Name)
	now := r.now()
	if last == nil || last.layer != layer.ResourceVersion || last.cluster != r.Cluster.Version() || last.kinds != r.kindChanges() ||
		!last.until.IsZero() && !now.Before(last.until) {
		return 0, false
	}
	events := r.cacheEvents.Load()
	if events != r.lastLooks.eventsOf(last) {
		late, same := r.compare(ctx, layer, last)
		switch {
		case !same:
			return 0, false
		case late > 0:
			return min(late, r.untilNext(last, now)), true
		}
	}
	return r.leaveUntil(last, events, now), true
}

// leaveUntil returns when a layer that has nothing to do is to be queued again: where
// there is no moment to wait for, the safety net has it, and it is 0.
func (r *AddonsLayerReconciler) leaveUntil(last *lastLook, events uint64, now time.Time) time.Duration {
	next := r.untilNext(last, now)
	if last.until.IsZero() {
		r.lastLooks.leaveUntil(last, events, now.Add(next))
		return 0
	}
	r.lastLooks.leaveUntil(last, events, time.Time{})
	return next
}

// untilNext returns how long it is until a layer is looked at in any case.
func (r *AddonsLayerReconciler) untilNext(last *lastLook, now time.Time) time.Duration {
	next := jittered(last.interval)
	if !last.until.IsZero() {
		next = min(next, max(last.until.Sub(now), time.Millisecond))
	}
	return next
}

// compare asks the caches again what the last look has asked them, and tells
// whether they answer the same. Where only the source has moved, late is how long
// the layer may leave it at that.
func (r *AddonsLayerReconciler) compare(ctx context.Context, layer *v1alpha1.AddonsLayer, last *lastLook) (late time.Duration, same bool) {
	for asked, was := range last.answers {
		is, err := asked.ask(ctx, r)
		if err != nil {
			return 0, false
		}
		if is == was {
			continue
		}
		if _, ofSource := asked.(sourceQuestion); !ofSource {
			return 0, false
		}
		if late = r.moved(ctx, layer, last); late <= 0 {
			return 0, false
		}
	}
	return late, true
}

// moved returns how long a layer may leave it that its source has moved to a
// revision that holds what the layer has; 0 where there is more to it,
// or the time to write that down has come. So what a commit is about does not
// stand in one queue with whole looks at all other layers.
func (r *AddonsLayerReconciler) moved(ctx context.Context, layer *v1alpha1.AddonsLayer, last *lastLook) time.Duration {
	_, source, found, err := r.readSource(ctx, layer, false)
	if err != nil || found == nil {
		return 0
	}
	as := *source
	as.Revision, as.Digest, as.URL = last.source.Revision, last.source.Digest, last.source.URL
	if as != last.source {
		return 0
	}
	digest, missing, err := found.digest(ctx)
	if err != nil || digest != last.digest || missing {
		return 0
	}
	return r.putOff(layer.Name)
}

// putOff returns how long a layer still waits to write down the name of a
// revision.
func (r *AddonsLayerReconciler) putOff(layer string) time.Duration {
	return r.recentLayers.PutOff(layer, r.now(), wait.Jitter(layers.RevisionLag, 1))
}

func (p *Process) kindChanges() int {
	return p.kinds.Changed() + p.sources.Changed() + p.remotes.Changed()
}

// settledLook returns what is to be remembered of a look that had nothing to
// do: it has written nothing, or nothing but a status after which there is
// nothing to do, has left nothing open but moments to come, and its answers are
// all that it was decided from. Otherwise it returns nil.
func (o *observer) settledLook(ctx context.Context, h *hands, interval time.Duration) *lastLook {
	if h.acted || h.decision == nil || o.Source == nil || o.Directory == nil || o.reads.opaque || o.OthersUnread || len(o.Stale) > 0 ||
		!o.Layer.DeletionTimestamp.IsZero() {
		return nil
	}
	d := h.decision
	if d.State != v1alpha1.StateDeployed || d.Retry != nil || len(d.ClearAfter) > 0 || o.r.kindIsComing(o.Observation, *d) {
		return nil
	}
	if h.told {
		if d = o.afterStatus(ctx); d == nil {
			return nil
		}
	}
	return &lastLook{
		source: *o.Source, digest: o.Directory.Digest,
		answers: o.reads.answers, events: o.reads.events, layer: o.Layer.ResourceVersion, cluster: o.reads.cluster, kinds: o.reads.kinds,
		until: d.Until, interval: interval,
	}
}

// afterStatus returns what another look at the same, but for the status that was
// written, decides; nil where there would be more to do or something else to say.
func (o *observer) afterStatus(ctx context.Context) *layers.Decision {
	if o.observeDeployed(ctx) != nil {
		return nil
	}
	d := layers.Decide(*o.Observation)
	status, d := layers.Report(*o.Observation, d, nil)
	if d.Plan.Writes() || len(d.ConsumeFirst) > 0 || len(d.ClearAfter) > 0 || !equality.Semantic.DeepEqual(o.Layer.Status, status) {
		return nil
	}
	return &d
}

// intervalOf returns the interval of a layer's safety net.
func (r *AddonsLayerReconciler) intervalOf(layer *v1alpha1.AddonsLayer) time.Duration {
	if layer.Spec.Interval != nil {
		return layer.Spec.Interval.Duration
	}
	return r.Settings.Interval
}
