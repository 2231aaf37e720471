// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/decisions"
	"github.com/strata-project/strata/test/forged"
)

// decisionsOf returns what a decision brings about: writes and deletions of objects, and that the
// layer goes.
func decisionsOf(d Decision) []string {
	all := []string{}
	for _, action := range d.Plan.Actions {
		all = append(all, string(action.Verb)+" "+action.ID.String())
	}
	if d.Finalized {
		all = append(all, "goes")
	}
	return all
}

func copied(status v1alpha1.AddonsLayerStatus) v1alpha1.AddonsLayerStatus { return *status.DeepCopy() }

// Whatever somebody has written into the fields of a layer's status of which nothing is to follow,
// and into those of others, nothing is written, deleted or let go that would not have been.
func TestForgedStatusBringsNothingAbout(t *testing.T) {
	brings := 0
	rapid.Check(t, func(r *rapid.T) {
		o := drawObservation(r)
		o.Layer = Trusted(o.Layer, decisions.Seal{})
		honest := decisionsOf(Decide(o))
		brings += len(honest)
		for _, forgery := range forged.Each(t, v1alpha1.AddonsLayerKind, o.Layer.Status, copied) {
			changed := o
			stored := o.Layer.DeepCopy()
			stored.Status = forgery.Status
			changed.Layer = Trusted(stored, decisions.Seal{})
			for _, done := range decisionsOf(Decide(changed)) {
				if !slices.Contains(honest, done) {
					r.Fatalf("%s: %s, and not only %v", forgery.Name, done, honest)
				}
			}
		}
		for name, other := range o.Layers {
			if other.Layer == nil {
				continue
			}
			for _, forgery := range forged.Each(t, v1alpha1.AddonsLayerKind, other.Layer.Status, copied) {
				changed := o
				changed.Layers = maps.Clone(o.Layers)
				with := other
				with.Layer = other.Layer.DeepCopy()
				with.Layer.Status = forgery.Status
				changed.Layers[name] = with
				for _, done := range decisionsOf(Decide(changed)) {
					if !slices.Contains(honest, done) {
						r.Fatalf("the status of %s, %s: %s, and not only %v", name, forgery.Name, done, honest)
					}
				}
			}
		}
	})
	if brings == 0 {
		t.Error("nothing was brought about")
	}
}
