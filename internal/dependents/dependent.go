// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dependents decides what must happen to the objects that a primary
// object wants, from plain values: it reads no clock, no cluster and no file.
//
// A primary (an AddonsLayer is the first) says what it wants as Dependents and
// what it had as an inventory of Entries; the caller adds what lives on the
// cluster and what other primaries list. Plan answers with Actions, and with
// the standing of every object. Package apply carries the actions out.
package dependents

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/objects"
)

// Mode is how a dependent is brought about.
type Mode string

const (
	// ModeApply keeps the object as wanted. It is the zero value's meaning.
	ModeApply Mode = "Apply"
	// ModeCreateOnce creates the object where it is missing, and leaves it alone otherwise.
	ModeCreateOnce Mode = "CreateOnce"
	// ModeObserve only looks at the object; somebody else makes it.
	ModeObserve Mode = "Observe"
)

// Deletion is what becomes of an object that is no longer wanted.
type Deletion string

const (
	// DeletionDelete deletes the object after its grace. It is the zero
	// value's meaning.
	DeletionDelete Deletion = "Delete"
	// DeletionOrphan takes the owner off at once and leaves the object.
	DeletionOrphan Deletion = "Orphan"
)

// Dependent is one object that a primary wants.
type Dependent struct {
	ID objects.ID
	// Object is what it should be; absent with ModeObserve, where others say so.
	Object Content
	// Digest identifies Object.
	Digest string
	// Confidential is true where nobody may be told what Object holds, as with Secrets.
	Confidential bool
	// Decrypted is true where that is so of all fields, and not only of those that hold
	// a value that is known.
	Decrypted bool
	// Stage orders writes: a stage is written when all before it have been.
	Stage int
	// Detached objects do not hold up later stages when they cannot be
	// written.
	Detached bool
	// DependsOn lists dependents that must be ready first, and that go later.
	DependsOn []objects.ID
	// Mode is how it is brought about.
	Mode Mode
	// Shared objects belong to nobody: they are created where they are missing,
	// and left from then on, whoever made them and whoever wants them no more.
	Shared bool
	// NotesOrigin is true for an object that says for whom it was created, so that it
	// can be told from one that was there before; see Keys.CreatedFor.
	NotesOrigin bool
	// Optional objects hold nothing up: whoever depends on one does not wait for
	// it, and one that is not ready is told and does not count.
	Optional bool
	// Withheld says why an object that is only observed is not to be had, as what
	// follows its name; empty where it is. Whether it exists does not count then.
	Withheld string
	// Assess says when it is ready.
	Assess objects.Assess
	// Ready says instead of Assess how the object fares, also to objects that wait for it; nil
	// where Assess does.
	Ready func(live *unstructured.Unstructured) objects.Standing `json:"-"`
	// Judge says instead of Assess how the object fares, where the primary has rules of
	// its own; nil where it has none. What other objects wait for is Assess.
	Judge func(live *unstructured.Unstructured) objects.Standing `json:"-"`
	// LeftAlone says why the object is left as it is, whoever has it; empty where it is
	// not.
	LeftAlone string
	// Merges leaves the fields that people have written beside what is wanted.
	Merges bool
	// Recreate allows deleting the object and creating it again where a field is to change
	// that cannot be changed.
	Recreate bool
	// Exclusive names what only one live object may stand for, such as a Helm
	// release. Empty where there is no such thing.
	Exclusive string
	// Origin is the file it comes from.
	Origin string
}

// Entry is what the inventory remembers of one object.
type Entry struct {
	ID objects.ID
	// Digest of the object as it was last applied; empty before that.
	Digest string
	// UID is the beginning of the UID of the object that was last applied; empty
	// where that is not known.
	UID string
	// Generation that the last apply led to; 0 for kinds without one.
	Generation int64
	// ResourceVersion that the last apply led to, for kinds without a
	// generation.
	ResourceVersion string
	// Fields identifies the fields that were the primary's after the last apply; empty
	// where that is not known, and for strict kinds. See fields.Note.
	Fields string
	// Completed is true where the object was seen to do its work with the content
	// of Digest, and to be one that goes for that: it is not made again then.
	Completed bool
	// Status is the object's standing in one word; see the Status constants.
	Status string
	// Since is when Status became what it is.
	Since time.Time
	// DependsOn lists the objects that must outlive this one.
	DependsOn []objects.ID
	// Rank orders deletions: objects of a higher rank go first. It follows
	// from the kind and is not stored.
	Rank int
	// Deletion is what becomes of the object when it is no longer wanted. It
	// follows from the live object and is not stored.
	Deletion Deletion
	// Spared says why an object stays that says itself that it may go; empty for any
	// other. It follows from the live object and is not stored.
	Spared string
	// Stays is true for an object that is left as it is while its primary is there, although
	// that does not want it any more. It is not stored.
	Stays bool
	// Assess is how to tell whether the object is ready; it follows from the
	// kind and is not stored.
	Assess objects.Assess
	// Target is the cluster that a release installs on, where that is another
	// one. It follows from the live object and is not stored.
	Target string
	// Origin is the file that listed it last.
	Origin string
}
