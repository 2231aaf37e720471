// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/builds"
)

// Builds remembers how the directories of layers became objects when each was looked
// at last. It is safe for concurrent use.
type Builds struct {
	mu sync.Mutex
	of map[string]build
}

type build struct {
	uid        types.UID
	generation int64
	how        builds.Build
}

// Note remembers that of a layer.
func (k *Builds) Note(layer *v1alpha1.AddonsLayer, how builds.Build) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if how.IsZero() {
		delete(k.of, layer.Name)
		return
	}
	if k.of == nil {
		k.of = map[string]build{}
	}
	k.of[layer.Name] = build{layer.UID, layer.Generation, how}
}

// Forget drops that of a layer that is gone.
func (k *Builds) Forget(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.of, name)
}

// Known returns that of a layer as it is specified now. It is false where that is not
// known.
func (k *Builds) Known(layer *v1alpha1.AddonsLayer) (builds.Build, bool) {
	if !builds.IsGiven(&layer.Spec) {
		return builds.Build{}, true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	found := k.of[layer.Name]
	return found.how, found.uid == layer.UID && found.generation == layer.Generation
}
