// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/internal/fields"
	"github.com/strata-project/strata/internal/objects"
)

// Result is what happened to one action.
type Result struct {
	Action Action
	// UID, Generation and ResourceVersion of the object afterwards.
	UID             types.UID
	Generation      int64
	ResourceVersion string
	// Fields identifies the fields that are the primary's afterwards; see Entry.Fields.
	Fields string
	// Changed is true where the object is not what it was before.
	Changed bool
	// Rivals are those whose changes a correction has undone, a few of them.
	Rivals []fields.Rival
	// Outdated is true where the object was not as the plan had seen it, so
	// that nothing was done: the next look decides anew.
	Outdated bool
	// Err says why the action failed.
	Err error
}

// Record returns an inventory with the results of a plan's actions in it.
func Record(inventory []Entry, results []Result) []Entry {
	recorded := slices.Clone(inventory)
	index := make(map[objects.ID]int, len(recorded))
	for i, entry := range recorded {
		index[entry.ID] = i
	}
	for _, result := range results {
		i, known := index[result.Action.ID]
		if !known || result.Err != nil || result.Outdated || result.Action.Verb != VerbWrite {
			continue
		}
		recorded[i].Digest = result.Action.Wanted.Digest
		recorded[i].UID = shortUID(result.UID)
		recorded[i].Completed = false // what was written has yet to do its work
		recorded[i].Generation = result.Generation
		recorded[i].Fields = result.Fields
		recorded[i].ResourceVersion = ""
		if result.Generation == 0 {
			recorded[i].ResourceVersion = result.ResourceVersion
		}
	}
	return recorded
}

// shortUID returns the beginning of a UID, which is enough to tell an object
// from one that was made in its place, and is kept for every object.
func shortUID(uid types.UID) string { return string(uid[:min(len(uid), 8)]) }

// IsAdoption tells whether the action took an object over from somebody.
func (r Result) IsAdoption() bool {
	return r.Action.Verb == VerbAdopt || r.Action.Verb == VerbWrite && len(r.Action.From) > 0
}

// IsCorrection tells whether the action undid somebody else's change.
func (r Result) IsCorrection() bool {
	return r.Action.Verb == VerbWrite && r.Action.Correction && r.Changed
}
