// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package ownwrites

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Newest remembers objects of one kind as this process has written them last, so that a cache
// that has not seen that yet is not believed. The zero value remembers nothing yet. It is
// safe for concurrent use.
type Newest[T metav1.Object] struct {
	mu    sync.Mutex
	known map[types.NamespacedName]T
}

// Wrote records an object as it was after a write.
func (n *Newest[T]) Wrote(object T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = map[types.NamespacedName]T{}
	}
	n.known[keyOf(object)] = object
}

// Of returns the newer one of an object as a cache has it and as it was written last. Once
// the cache has seen the write, that is forgotten.
func (n *Newest[T]) Of(cached T) T {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := keyOf(cached)
	last, known := n.known[key]
	if known && last.GetUID() == cached.GetUID() && Older(cached.GetResourceVersion(), last.GetResourceVersion()) {
		return last
	}
	delete(n.known, key)
	return cached
}

// Forget forgets an object that has gone.
func (n *Newest[T]) Forget(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.known, key)
}

func keyOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}
