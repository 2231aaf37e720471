// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/strata-project/strata/internal/objects/objectstest"
)

// TestNoWorldPanics plans for worlds that lack any of their optional parts, and for objects
// that are only observed, whatever else is so.
func TestNoWorldPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawWorld(t)
		for i := range in.Wanted {
			if in.Wanted[i].Mode != ModeObserve && chance(t, 50, "has content") {
				in.Wanted[i].Object = ContentOf(objectstest.Live(in.Wanted[i].ID))
			}
			in.Wanted[i].NotesOrigin = chance(t, 20, "notes its origin")
		}
		plan := Make(objectstest.Bare(t, in))
		for _, action := range plan.Actions {
			if action.Wanted == nil {
				continue
			}
			action.Wanted.Created("base", testKeys)
			action.Wanted.Applied(objectstest.Live(action.ID), testKeys)
			if action.Verb == VerbWrite && action.Wanted.Mode == ModeObserve {
				t.Fatalf("%s is only observed, and written", action.ID)
			}
		}
	})
}
