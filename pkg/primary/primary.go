// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package primary is the engine of operators: a kind of primaries, and the objects that each
// of them is to have. The author of an operator says which these are, as a function of
// values; the engine applies them in order, watches them, says in the status of the primary how each
// of them fares, deletes what is not wanted any more, and all of it with the primary.
// docs/engine.md leads through an operator.
package primary

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// Object is a primary: an object of a kind with a status of which the engine writes a part.
type Object interface {
	client.Object
	// PrimaryStatus returns the part of the object's own status that the engine writes. It is
	// never nil.
	PrimaryStatus() *Status
}

// Status is what the engine says of a primary. A kind embeds it in its status, inline.
type Status struct {
	// ObservedGeneration is the generation that the status speaks of.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Objects that the primary has, and how each of them fares. Nothing is deleted that is not
	// listed.
	Objects []v1alpha1.Dependent `json:"objects,omitempty"`
	// Conditions are Ready and, as kstatus understands them, Reconciling or Stalled.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DeepCopyInto copies a status, as generated code does.
func (s *Status) DeepCopyInto(out *Status) {
	*out = Status{ObservedGeneration: s.ObservedGeneration}
	for i := range s.Objects {
		out.Objects = append(out.Objects, *s.Objects[i].DeepCopy())
	}
	for i := range s.Conditions {
		out.Conditions = append(out.Conditions, *s.Conditions[i].DeepCopy())
	}
}

// The reasons of the condition Ready.
const (
	// ReasonReady says that all that a primary wants is as it should be.
	ReasonReady = "Ready"
	// ReasonProgressing says that something is on its way, or waits.
	ReasonProgressing = "Progressing"
	// ReasonObjectFailed says that an object cannot be made, or has failed.
	ReasonObjectFailed = "ObjectFailed"
	// ReasonInvalid says what is wrong with the primary. Somebody has to change it.
	ReasonInvalid = "Invalid"
	// ReasonDeleting says that the primary goes once its objects have.
	ReasonDeleting = "Deleting"
)

// Mode is how an object is brought about.
type Mode string

const (
	// Apply keeps the object as it is wanted; what others add to it stays. It is the zero
	// value's meaning.
	Apply Mode = ""
	// CreateOnce makes it where it is missing, and leaves it from then on.
	CreateOnce Mode = "CreateOnce"
	// Observe waits for an object that others make. It is neither written nor deleted.
	Observe Mode = "Observe"
)

// Dependent is an object that a primary is to have.
type Dependent struct {
	// ID of the object among those of its primary. It must not have a slash.
	ID string
	// Object as it is to be. It gets the namespace of its primary where it has none and its kind
	// has some. Nil is for an object that cannot be made yet: Waits says why. What there is of
	// it stays.
	Object client.Object
	// Waits says why Object cannot be made yet.
	Waits string
	// DependsOn has the IDs of the objects that must be ready before, and that go later.
	DependsOn []string
	// Mode is how it is brought about.
	Mode Mode
	// Ready says what an object that is there waits for; empty for one that is ready. Where it
	// is nil, kstatus says.
	Ready func(live *unstructured.Unstructured) string
	// Confidential is true where nobody may be told what Object holds; that of Secrets is never
	// told.
	Confidential bool
}

// Seen holds the objects of a primary as they are, by their IDs: those that are there. Of
// Secrets and ConfigMaps there are the metadata alone.
type Seen map[string]*unstructured.Unstructured

// As reads an object as a type; false where it is not there, or is not of that type.
func As[T any](seen Seen, id string) (T, bool) {
	var typed T
	live := seen[id]
	if live == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &typed) != nil {
		var none T
		return none, false
	}
	return typed, true
}

// Kind says how primaries of a kind are kept. Its functions are given copies, decide from
// those alone, and may be called at any time and side by side.
type Kind[P Object] struct {
	// New returns an object of the kind, without anything.
	New func() P
	// Default fills what a primary leaves out; it is not written down. Nil is nothing.
	Default func(primary P)
	// Validate says what is wrong with a primary, beginning with the field. Nothing is done for
	// it then, and what it has stays. Nil is nothing.
	Validate func(primary P) error
	// Wants returns what a primary is to have. Of what it has had and is not among them any
	// more the engine takes leave, last ones first. An error is as one of Validate.
	Wants func(primary P, seen Seen) ([]Dependent, error)
	// Publish writes into the primary's own status what it says beside the engine's part,
	// whenever the status is written. Nil is nothing.
	Publish func(primary P, seen Seen, ready bool)
	// Keeps is true where what is not wanted any more stays until the primary goes.
	Keeps bool
	// Concurrent is how many primaries are looked at side by side; 0 means 1.
	Concurrent int
}

// check says what is missing of a kind.
func (k Kind[P]) check() error {
	switch {
	case k.New == nil:
		return fmt.Errorf("a kind of primaries lacks New")
	case k.Wants == nil:
		return fmt.Errorf("a kind of primaries lacks Wants")
	}
	return nil
}
