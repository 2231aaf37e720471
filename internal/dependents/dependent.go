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
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ID identifies an object, whatever version it is read in.
type ID struct {
	// Cluster that holds the object, by the name that the primary has for it;
	// empty for the cluster that the primary is on.
	Cluster   string
	Group     string
	Kind      string
	Namespace string
	Name      string
}

// IDOf returns the ID of an object on the primary's own cluster.
func IDOf(obj *unstructured.Unstructured) ID {
	gvk := obj.GroupVersionKind()
	return ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// GroupKind returns the group and kind of the object.
func (id ID) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: id.Group, Kind: id.Kind}
}

// ServedKind is a kind as one cluster serves it.
type ServedKind struct {
	// Cluster as in an ID.
	Cluster string
	schema.GroupKind
}

// ServedVersion is a version of a kind as one cluster serves it.
type ServedVersion struct {
	// Cluster as in an ID.
	Cluster string
	schema.GroupVersionKind
}

// ServedKind returns the kind of the object on its cluster.
func (id ID) ServedKind() ServedKind { return ServedKind{id.Cluster, id.GroupKind()} }

// On returns the ID of the same object on another cluster.
func (id ID) On(cluster string) ID {
	id.Cluster = cluster
	return id
}

// Key returns the namespace and name of the object.
func (id ID) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: id.Namespace, Name: id.Name}
}

// String returns the ID as messages show it: "HelmRelease default/podinfo", and
// "ConfigMap default/flags on fleet/prod" for one of another cluster.
func (id ID) String() string {
	text := id.Kind + " " + id.Name
	if id.Namespace != "" {
		text = id.Kind + " " + id.Namespace + "/" + id.Name
	}
	if id.Cluster != "" {
		text += " on " + id.Cluster
	}
	return text
}

// Compare orders IDs by group, kind, namespace, name and cluster.
func (id ID) Compare(other ID) int {
	return cmp.Or(
		strings.Compare(id.Group, other.Group),
		strings.Compare(id.Kind, other.Kind),
		strings.Compare(id.Namespace, other.Namespace),
		strings.Compare(id.Name, other.Name),
		strings.Compare(id.Cluster, other.Cluster),
	)
}

// SortIDs sorts ids in place and returns them without repetitions.
func SortIDs(ids []ID) []ID {
	slices.SortFunc(ids, ID.Compare)
	return slices.Compact(ids)
}

// Mode is how a dependent is brought about.
type Mode string

const (
	// ModeApply keeps the object as wanted. It is the zero value's meaning.
	ModeApply Mode = "Apply"
	// ModeCreateOnce creates the object and leaves it alone from then on.
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

// Assess says how to tell whether an object is ready.
type Assess string

const (
	// AssessStatus asks kstatus. It is the zero value's meaning.
	AssessStatus Assess = "Status"
	// AssessCondition wants the condition Ready at the object's own
	// generation: a missing condition is not ready, and a suspended object
	// neither blocks nor counts. It is the rule of Flux's kinds.
	AssessCondition Assess = "Condition"
	// AssessExistence is content with an object that exists.
	AssessExistence Assess = "Existence"
)

// Dependent is one object that a primary wants.
type Dependent struct {
	ID ID
	// Object is what it should be; ignored with ModeObserve.
	Object *unstructured.Unstructured
	// Digest identifies Object.
	Digest string
	// Stage orders writes: a stage is written when all before it have been.
	Stage int
	// Detached objects do not hold up later stages when they cannot be
	// written.
	Detached bool
	// DependsOn lists dependents that must be ready first, and that go later.
	DependsOn []ID
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
	Assess Assess
	// Exclusive names what only one live object may stand for, such as a Helm
	// release. Empty where there is no such thing.
	Exclusive string
	// Origin is the file it comes from.
	Origin string
}

// Entry is what the inventory remembers of one object.
type Entry struct {
	ID ID
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
	// Status is the object's standing in one word; see the Status constants.
	Status string
	// Since is when Status became what it is.
	Since time.Time
	// DependsOn lists the objects that must outlive this one.
	DependsOn []ID
	// Rank orders deletions: objects of a higher rank go first. It follows
	// from the kind and is not stored.
	Rank int
	// Deletion is what becomes of the object when it is no longer wanted. It
	// follows from the live object and is not stored.
	Deletion Deletion
	// Spared says why an object stays that says itself that it may go; empty for any
	// other. It follows from the live object and is not stored.
	Spared string
	// Assess is how to tell whether the object is ready; it follows from the
	// kind and is not stored.
	Assess Assess
	// Target is the cluster that a release installs on, where that is another
	// one. It follows from the live object and is not stored.
	Target string
	// Origin is the file that listed it last.
	Origin string
}

// Words for Entry.Status. Besides them, the reason of an object's own Ready
// condition is used.
const (
	StatusReady      = "Deployed"
	StatusMissing    = "NotDeployed"
	StatusSuspended  = "Suspended"
	StatusOrphaned   = "Orphaned"
	StatusSuperseded = "Superseded"
	StatusDeleting   = "Deleting"
	StatusNotServed  = "KindNotServed"
	StatusProgress   = "InProgress"
	StatusFailed     = "Failed"
	StatusKept       = "Kept"
)
