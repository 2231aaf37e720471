// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package atrest

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue is the queue of a controller, which sees what goes through it. It puts items off itself,
// since the queue within does not tell when they come.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	name    string
	by      *Observer
	limiter workqueue.TypedRateLimiter[reconcile.Request]
	// add adds an item to the queue within.
	add func(item reconcile.Request, options priorityqueue.AddOpts)

	mu sync.Mutex
	// workers is how many have asked for something to do.
	workers int
	// delays are those of the items that were put off, and looks those that are under way.
	delays map[reconcile.Request]*delay
	looks  map[reconcile.Request]*look
	// causes say why the items that wait do so.
	causes map[reconcile.Request]cause
	// did says of each item what its last look did; nothing where it began by the clock alone, and
	// did nothing.
	did map[reconcile.Request]string
}

// delay is how long an item is put off.
type delay struct {
	until time.Time
	timer *time.Timer
}

// look is one reconciliation.
type look struct {
	// timed is true where nothing but the clock has begun it, and failed where it is to be
	// repeated.
	timed, failed bool
	// asked is a request that was made with its context; nil where none was.
	asked atomic.Pointer[string]
}

// reconciler makes looks, each with a context that names it.
type reconciler struct {
	reconcile.Reconciler
	of *queue
}

type lookKey struct{}

// did says what a look did; nothing where it began by the clock alone, made no request and did not
// fail.
func (l *look) did() string {
	switch {
	case l == nil:
		return "was not seen"
	case l.failed:
		return "failed"
	case !l.timed:
		return "had something to look at"
	}
	if asked := l.asked.Load(); asked != nil {
		return "asked " + *asked
	}
	return ""
}

// Reconcile makes a look.
func (r *reconciler) Reconcile(ctx context.Context, item reconcile.Request) (reconcile.Result, error) {
	r.of.mu.Lock()
	under := r.of.looks[item]
	r.of.mu.Unlock()
	return r.Reconciler.Reconcile(context.WithValue(ctx, lookKey{}, under), item)
}

// asks notes a request.
func (o *Observer) asks(req *http.Request) {
	o.moves.Add(1)
	if under, is := req.Context().Value(lookKey{}).(*look); is && under != nil {
		what := req.Method + " " + req.URL.Path
		under.asked.Store(&what)
	}
}

// cause is why an item waits: for a clock that has come, or for anything else, or both.
type cause struct{ clock, other bool }

// observe makes the queue of a controller, which is observed.
func (r *reconciler) observe(
	o *Observer,
	name string,
	limiter workqueue.TypedRateLimiter[reconcile.Request],
	makes newQueue,
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	q := &queue{
		TypedRateLimitingInterface: makes(name, limiter), name: name, by: o, limiter: limiter,
		delays: map[reconcile.Request]*delay{}, looks: map[reconcile.Request]*look{},
		causes: map[reconcile.Request]cause{}, did: map[reconcile.Request]string{},
	}
	q.add = func(item reconcile.Request, _ priorityqueue.AddOpts) { q.TypedRateLimitingInterface.Add(item) }
	r.of = q
	o.mu.Lock()
	o.queues = append(o.queues, q)
	o.mu.Unlock()
	if inner, is := q.TypedRateLimitingInterface.(priorityqueue.PriorityQueue[reconcile.Request]); is {
		q.add = func(item reconcile.Request, options priorityqueue.AddOpts) { inner.AddWithOpts(options, item) }
		return &prioritized{q, inner}
	}
	return q
}

// put adds an item, now or later. Of two moments the earlier one counts.
func (q *queue) put(item reconcile.Request, options priorityqueue.AddOpts) {
	q.mu.Lock()
	defer q.mu.Unlock()
	after := options.After
	if options.RateLimited {
		if under := q.looks[item]; under != nil {
			under.failed = true
		}
		after = max(after, q.limiter.When(item))
	}
	options.After, options.RateLimited = 0, false
	if after <= 0 {
		q.by.moves.Add(1)
		q.causes[item] = cause{clock: q.causes[item].clock, other: true}
		q.add(item, options)
		return
	}
	made := &delay{until: time.Now().Add(after)}
	if known := q.delays[item]; known != nil {
		if !made.until.Before(known.until) {
			return
		}
		known.timer.Stop()
	}
	q.delays[item] = made
	made.timer = time.AfterFunc(after, func() { q.comes(item, made, options) })
}

// comes adds an item that was put off. It counts as put off until it is in the queue.
func (q *queue) comes(item reconcile.Request, of *delay, options priorityqueue.AddOpts) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.delays[item] != of {
		return // another moment counts
	}
	q.causes[item] = cause{clock: true, other: q.causes[item].other}
	q.add(item, options)
	delete(q.delays, item)
}

// Add adds an item.
func (q *queue) Add(item reconcile.Request) { q.put(item, priorityqueue.AddOpts{}) }

// AddAfter adds an item later.
func (q *queue) AddAfter(item reconcile.Request, after time.Duration) {
	q.put(item, priorityqueue.AddOpts{After: after})
}

// AddRateLimited adds an item when the limiter says.
func (q *queue) AddRateLimited(item reconcile.Request) {
	q.put(item, priorityqueue.AddOpts{RateLimited: true})
}

// Get returns the next item, whose look begins.
func (q *queue) Get() (reconcile.Request, bool) {
	q.asks()
	item, shutdown := q.TypedRateLimitingInterface.Get()
	q.begins(item)
	return item, shutdown
}

// Done ends the look at an item.
func (q *queue) Done(item reconcile.Request) {
	q.ends(item)
	q.TypedRateLimitingInterface.Done(item)
}

// ShutDown ends the queue.
func (q *queue) ShutDown() {
	q.mu.Lock()
	for _, each := range q.delays {
		each.timer.Stop()
	}
	q.mu.Unlock()
	q.TypedRateLimitingInterface.ShutDown()
}

func (q *queue) asks() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.workers++
}

func (q *queue) begins(item reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	timed := q.causes[item] == cause{clock: true}
	if !timed {
		q.by.moves.Add(1)
	}
	q.looks[item] = &look{timed: timed}
	delete(q.causes, item)
	delete(q.did, item)
}

func (q *queue) ends(item reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	did := q.looks[item].did()
	if did != "" {
		q.by.moves.Add(1)
	}
	q.did[item] = did
	delete(q.looks, item)
}

// idle returns what there is still to do.
func (q *queue) idle(soon time.Duration) error {
	if waiting := q.Len(); waiting > 0 {
		return fmt.Errorf("%d wait in the queue of %s", waiting, q.name)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.workers == 0 {
		return fmt.Errorf("no worker of %s has started", q.name)
	}
	for item := range q.looks {
		return fmt.Errorf("%s looks at %s", q.name, item)
	}
	for item, each := range q.delays {
		did, looked := q.did[item]
		if until := time.Until(each.until); until < soon && (did != "" || !looked) {
			return fmt.Errorf("%s looks at %s again in %s; the last look %s", q.name, item, until, did)
		}
	}
	return nil
}

// prioritized is a queue with priorities.
type prioritized struct {
	*queue
	inner priorityqueue.PriorityQueue[reconcile.Request]
}

// AddWithOpts adds items.
func (p *prioritized) AddWithOpts(options priorityqueue.AddOpts, items ...reconcile.Request) {
	for _, item := range items {
		p.put(item, options)
	}
}

// GetWithPriority returns the next item, whose look begins.
func (p *prioritized) GetWithPriority() (reconcile.Request, int, bool) {
	p.asks()
	item, priority, shutdown := p.inner.GetWithPriority()
	p.begins(item)
	return item, priority, shutdown
}
