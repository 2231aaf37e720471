// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/internal/kinds"
)

// classes remembers of the StorageClasses of a cluster whether their volumes wait for
// consumers. An API server lets nobody change that.
type classes struct {
	mu    sync.Mutex
	waits map[string]bool
}

// KnownClass tells whether volumes of a StorageClass wait for consumers, where that was
// asked before.
func (k *Kinds) KnownClass(name string) (waits, known bool) {
	k.classes.mu.Lock()
	defer k.classes.mu.Unlock()
	waits, known = k.classes.waits[name]
	return waits, known
}

// AskClass asks the cluster, past its cache, which holds the StorageClasses of layers alone.
func (k *Kinds) AskClass(ctx context.Context, name string) (waits bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, FirstSync)
	defer cancel()
	class := &unstructured.Unstructured{}
	class.SetGroupVersionKind(kinds.StorageClassKind.WithVersion("v1"))
	if err := k.Past.Get(ctx, types.NamespacedName{Name: name}, class); err != nil {
		return false, err
	}
	k.classes.mu.Lock()
	defer k.classes.mu.Unlock()
	if k.classes.waits == nil {
		k.classes.waits = map[string]bool{}
	}
	k.classes.waits[name] = kinds.WaitsForConsumers(class)
	return k.classes.waits[name], nil
}
