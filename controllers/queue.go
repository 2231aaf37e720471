// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
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

// lines are two lines of layers, first come, first served. Those that are under
// way have the first, however many others wait: what has begun is brought to its
// end, and lets its dependants begin, while more is begun. The lines take turns.
type lines struct {
	begun         *begun
	first, second workqueue.Queue[ctrl.Request]
	// wasFirst is true where the last turn was one of the first line.
	wasFirst bool
}

var _ workqueue.Queue[ctrl.Request] = (*lines)(nil)

func newLines(begun *begun) *lines {
	return &lines{begun: begun, first: workqueue.DefaultQueue[ctrl.Request](), second: workqueue.DefaultQueue[ctrl.Request]()}
}

// Touch leaves a layer where it stands.
func (l *lines) Touch(ctrl.Request) {}

// Push has a layer wait at the end of its line.
func (l *lines) Push(layer ctrl.Request) {
	if l.begun.has(layer.Name) {
		l.first.Push(layer)
		return
	}
	l.second.Push(layer)
}

// Len returns how many layers wait.
func (l *lines) Len() int { return l.first.Len() + l.second.Len() }

// Pop takes the layer whose turn it is; there must be one.
func (l *lines) Pop() ctrl.Request {
	l.wasFirst = l.second.Len() == 0 || l.first.Len() > 0 && !l.wasFirst
	if l.wasFirst {
		return l.first.Pop()
	}
	return l.second.Pop()
}

// newQueue returns a queue in which layers that are under way go first. It is not
// controller-runtime's: that of 0.24 may wait for itself when it is shut down,
// which keeps the process until it is killed.
func newQueue(begun *begun) func(string, workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
	return func(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
		queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[ctrl.Request]{Name: name, Queue: newLines(begun)})
		return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[ctrl.Request]{
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[ctrl.Request]{Name: name, Queue: queue}),
		})
	}
}
