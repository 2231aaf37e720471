// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/fields"
	"github.com/strata-project/strata/internal/objects"
)

// noteCompletion notes in an entry whether the object was seen to complete with the content
// that is wanted. What was seen counts for this content alone.
func (p *planner) noteCompletion(d *Dependent, entry Entry, live *unstructured.Unstructured) Entry {
	if live != nil && p.completes(d, entry, live) {
		entry.Completed = true
	}
	return entry
}

// completes tells whether a live object has done the work of the content that is wanted, and
// goes for that. The generation does not count: what such an object does cannot be changed, and
// its deletion alone makes another one. Nor does an object that people have changed by hand: it
// may go for what they have written, which is taken back.
func (p *planner) completes(d *Dependent, entry Entry, live *unstructured.Unstructured) bool {
	if fields.NoteOf(live).Hands && !d.Merges {
		return false
	}
	return objects.GoesWhenDone(live) && p.owner(live) == p.Owner && entry.Digest != "" && entry.Digest == d.Digest &&
		(entry.UID == "" || entry.UID == shortUID(live.GetUID()))
}

// isDone tells whether an object that is gone, or about to go, has done the work of the content
// that is wanted: it is not made again. Of another kind than a Job an inventory cannot say so.
func (p *planner) isDone(d *Dependent, entry Entry, live *unstructured.Unstructured) bool {
	return entry.Completed && entry.Digest == d.Digest && objects.IsJobKind(d.ID.GroupKind()) &&
		(live == nil || live.GetDeletionTimestamp() != nil)
}

// done is where an object stands that has done its work and is gone for that.
func done() objects.Standing {
	return objects.Standing{Health: objects.Ready, Status: objects.StatusReady, Message: "has completed, and is not run again", Current: true}
}
