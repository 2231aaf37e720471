// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/objects"
)

// untold remembers what was done for layers until it is told: the status write
// that comes before may fail, and the next look finds nothing left to do. It is
// safe for concurrent use. Its zero value is ready to be used.
type untold struct {
	mu     sync.Mutex
	layers map[string]*news
}

// news is what has happened to one layer since its status was last told.
type news struct {
	// before is the status as it was told last.
	before v1alpha1.AddonsLayerStatus
	done   []dependents.Result
}

// add notes what a look has done, and the status that the layer had before it.
// Of several looks it keeps the status before the first.
func (u *untold) add(layer string, before v1alpha1.AddonsLayerStatus, results []dependents.Result) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.layers == nil {
		u.layers = map[string]*news{}
	}
	n := u.layers[layer]
	if n == nil {
		n = &news{before: before}
		u.layers[layer] = n
	}
	known := make(map[objects.ID]dependents.Verb, len(n.done))
	for _, result := range n.done {
		known[result.Action.ID] = result.Action.Verb
	}
	for _, result := range results {
		if result.Err != nil || result.Outdated || known[result.Action.ID] == result.Action.Verb {
			continue
		}
		// The manifest is not kept: it may hold secrets, and nobody is told it.
		n.done = append(n.done, dependents.Result{Changed: result.Changed, Action: dependents.Action{
			Verb: result.Action.Verb, ID: result.Action.ID, From: result.Action.From, Mark: result.Action.Mark, Spared: result.Action.Spared,
			Correction: result.Action.Correction,
		}})
	}
}

// swap notes that a status of a layer is told while what was done is not, and
// returns the one that was told before it: the same where nothing is untold.
func (u *untold) swap(layer string, told v1alpha1.AddonsLayerStatus) (before v1alpha1.AddonsLayerStatus) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := u.layers[layer]
	if n == nil {
		return told
	}
	before, n.before = n.before, told
	return before
}

// take returns what is to be told of a layer, which then counts as told.
func (u *untold) take(layer string) (before v1alpha1.AddonsLayerStatus, done []dependents.Result) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := u.layers[layer]
	if n == nil {
		return before, nil
	}
	delete(u.layers, layer)
	return n.before, n.done
}

// forget drops what was never told of a layer that is gone.
func (u *untold) forget(layer string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.layers, layer)
}
