// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// begun names the layers that are under way: what they want is written, or in
// part, and not ready yet. It is safe for concurrent use.
type begun struct {
	mu     sync.Mutex
	layers map[string]bool
}

// set says whether a layer is under way.
func (b *begun) set(layer string, is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !is:
		delete(b.layers, layer)
	case b.layers == nil:
		b.layers = map[string]bool{layer: true}
	default:
		b.layers[layer] = true
	}
}

func (b *begun) has(layer string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.layers[layer]
}

// turns is how many turns in a row layers have that are not under way while some
// wait that are (ADR 0018).
const turns = 2

// lines are two lines of layers, each first come, first served: layers that are
// under way, and all others. What has begun is so brought to its end, and lets its
// dependants begin, while more is begun, and layers that never get ready hold up
// nobody.
type lines struct {
	begun            *begun
	underWay, others workqueue.Queue[ctrl.Request]
	// inRow counts the turns of the others since the last one of those under way.
	inRow int
}

var _ workqueue.Queue[ctrl.Request] = (*lines)(nil)

func newLines(begun *begun) *lines {
	return &lines{begun: begun, underWay: workqueue.DefaultQueue[ctrl.Request](), others: workqueue.DefaultQueue[ctrl.Request]()}
}

// Touch leaves a layer where it stands.
func (l *lines) Touch(ctrl.Request) {}

// Push has a layer wait at the end of its line.
func (l *lines) Push(layer ctrl.Request) {
	if l.begun.has(layer.Name) {
		l.underWay.Push(layer)
		return
	}
	l.others.Push(layer)
}

// Len returns how many layers wait.
func (l *lines) Len() int { return l.underWay.Len() + l.others.Len() }

// Pop takes the layer whose turn it is; there must be one.
func (l *lines) Pop() ctrl.Request {
	if l.others.Len() == 0 || l.underWay.Len() > 0 && l.inRow >= turns {
		l.inRow = 0
		return l.underWay.Pop()
	}
	l.inRow++
	return l.others.Pop()
}

// newQueue returns a queue in which layers that are under way have a line of their
// own. It is not controller-runtime's: that of 0.24 may wait for itself when it is
// shut down, which keeps the process until it is killed.
func newQueue(begun *begun) func(string, workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
	return func(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
		queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[ctrl.Request]{
			Name: name, Queue: newLines(begun), Clock: unhurried{},
		})
		return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[ctrl.Request]{
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[ctrl.Request]{Name: name, Queue: queue}),
		})
	}
}

// plainQueue returns client-go's own queue, but that it measures itself seldom.
func plainQueue(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[ctrl.Request]{
		Name: name, Clock: unhurried{},
	})
}

// measureEvery is how often a queue measures how long its work has been under way.
const measureEvery = 10 * time.Second

// unhurried is the clock of a queue. Each queue measures itself twice a second, also when
// it is empty, which makes up most of what the controller does at rest; nobody asks for
// metrics that often.
type unhurried struct{ clock.RealClock }

// NewTicker returns a ticker that is not faster than what is measured is asked for.
func (u unhurried) NewTicker(period time.Duration) clock.Ticker {
	return u.RealClock.NewTicker(max(period, measureEvery))
}

// newQueue returns the controller's queue, which it asks for once, when it starts.
func (r *AddonsLayerReconciler) newQueue(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
	close(r.started)
	return newQueue(r.begun)(name, limiter)
}

// controllerOptions returns how the objects of a kind are looked at, some of them side
// by side.
// The queue is the plain one. That with priorities, which is the default, may hand an
// item to a worker that has just been told to stop, and waits for ever for it to be
// taken: a controller that is busy then stops only when it is killed.
func controllerOptions(reconciler reconcile.Reconciler, concurrent int) controller.Options {
	no := false
	return controller.Options{
		Reconciler: reconciler, MaxConcurrentReconciles: max(concurrent, 1), UsePriorityQueue: &no, NewQueue: plainQueue,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](minRetry, maxRetry),
	}
}
