// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package atrest

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue sees what goes through the queue of a controller.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	name string
	by   *Observer

	mu sync.Mutex
	// workers is how many have asked for something to do.
	workers int
	// due is when each item that was put off comes.
	due map[reconcile.Request]time.Time
	// looks are those that are under way.
	looks map[reconcile.Request]*look
	// still are the items whose last look began by the clock alone, and has done nothing.
	still map[reconcile.Request]bool
}

// look is one reconciliation.
type look struct {
	// timed is true where nothing but the clock has begun it, and failed where it is to be
	// repeated.
	timed, failed bool
	// asked is how many requests there had been before.
	asked int64
}

// observe makes a queue that is observed.
func (o *Observer) observe(
	name string,
	limiter workqueue.TypedRateLimiter[reconcile.Request],
	makes newQueue,
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	q := &queue{name: name, by: o, due: map[reconcile.Request]time.Time{}, looks: map[reconcile.Request]*look{}, still: map[reconcile.Request]bool{}}
	q.TypedRateLimitingInterface = makes(name, &observedLimiter{limiter, q})
	o.mu.Lock()
	o.queues = append(o.queues, q)
	o.mu.Unlock()
	if inner, is := q.TypedRateLimitingInterface.(priorityqueue.PriorityQueue[reconcile.Request]); is {
		return &prioritized{q, inner}
	}
	return q
}

// observedLimiter tells when something that has failed comes again.
type observedLimiter struct {
	workqueue.TypedRateLimiter[reconcile.Request]
	of *queue
}

// When returns how long an item is put off.
func (l *observedLimiter) When(item reconcile.Request) time.Duration {
	after := l.TypedRateLimiter.When(item)
	l.of.later(item, after)
	return after
}

// later notes that an item was put off. Of two moments a queue takes the earlier one.
func (q *queue) later(item reconcile.Request, after time.Duration) {
	q.by.moves.Add(1)
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := time.Now().Add(after); q.due[item].IsZero() || at.Before(q.due[item]) {
		q.due[item] = at
	}
}

// Add notes that something has happened.
func (q *queue) Add(item reconcile.Request) {
	q.by.moves.Add(1)
	q.TypedRateLimitingInterface.Add(item)
}

// AddAfter notes when the item comes.
func (q *queue) AddAfter(item reconcile.Request, after time.Duration) {
	if after > 0 {
		q.later(item, after)
	}
	q.TypedRateLimitingInterface.AddAfter(item, after)
}

// AddRateLimited notes that a look has failed. When it comes again the limiter says.
func (q *queue) AddRateLimited(item reconcile.Request) {
	q.fails(item)
	q.TypedRateLimitingInterface.AddRateLimited(item)
}

func (q *queue) fails(item reconcile.Request) {
	q.by.moves.Add(1)
	q.mu.Lock()
	defer q.mu.Unlock()
	if under := q.looks[item]; under != nil {
		under.failed = true
	}
}

// Get notes that a look begins.
func (q *queue) Get() (reconcile.Request, bool) {
	q.asks()
	item, shutdown := q.TypedRateLimitingInterface.Get()
	q.begins(item)
	return item, shutdown
}

// Done notes that a look has ended.
func (q *queue) Done(item reconcile.Request) {
	q.ends(item)
	q.TypedRateLimitingInterface.Done(item)
}

func (q *queue) asks() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.workers++
}

func (q *queue) begins(item reconcile.Request) {
	q.by.moves.Add(1)
	q.mu.Lock()
	defer q.mu.Unlock()
	at, put := q.due[item]
	timed := put && !time.Now().Before(at)
	if timed {
		delete(q.due, item)
	}
	delete(q.still, item)
	q.looks[item] = &look{timed: timed, asked: q.by.asked.Load()}
}

func (q *queue) ends(item reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if under := q.looks[item]; under != nil && under.timed && !under.failed && under.asked == q.by.asked.Load() {
		q.still[item] = true
	}
	delete(q.looks, item)
	q.by.moves.Add(1)
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
	for item, at := range q.due {
		if until := time.Until(at); until < soon && !q.still[item] {
			return fmt.Errorf("%s looks at %s again in %s", q.name, item, until)
		}
	}
	return nil
}

// prioritized is a queue with priorities.
type prioritized struct {
	*queue
	inner priorityqueue.PriorityQueue[reconcile.Request]
}

// AddWithOpts notes when the items come.
func (p *prioritized) AddWithOpts(options priorityqueue.AddOpts, items ...reconcile.Request) {
	for _, item := range items {
		if options.RateLimited {
			p.fails(item)
		}
		if options.After > 0 {
			p.later(item, options.After)
		}
	}
	p.by.moves.Add(1)
	p.inner.AddWithOpts(options, items...)
}

// GetWithPriority notes that a look begins.
func (p *prioritized) GetWithPriority() (reconcile.Request, int, bool) {
	p.asks()
	item, priority, shutdown := p.inner.GetWithPriority()
	p.begins(item)
	return item, priority, shutdown
}
