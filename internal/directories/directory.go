// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package directories holds what a directory of a source comes to: its manifests, and
// what is wrong with them.
package directories

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/objects"
)

// Directory is the content of a layer's directory at one revision.
type Directory struct {
	// Revision of the artifact it was read from.
	Revision string
	// Digest identifies the objects, whatever files hold them. All
	// directories without objects have the same digest.
	Digest string
	// Manifests in the order of their identity. They are shared and must not
	// be changed.
	Manifests []Manifest
	// Cluster that the directory was put on, as IDs name it; empty for the one
	// that Strata runs in.
	Cluster string
	// Written is the directory as it was before it was put on that cluster; nil
	// where it was not.
	Written *Directory
	// Sealed lists files that are encrypted and that no key was given for, in order. Their
	// objects are as they are written.
	Sealed []string
	// Ignored lists kustomizations of several documents, in order. kustomize reads the first
	// document alone, and says nothing of the others. It is known of what was just built.
	Ignored []string
	// Missing is true where the artifact has no such directory; Manifests is
	// empty then.
	Missing bool
}

// Manifest is one object of a layer's directory.
type Manifest struct {
	// File below the root of the artifact.
	File string
	// Line of File that the object begins at, counted from 1; 0 where a
	// kustomization made the object.
	Line int
	// Object as it was written, but for the version of Flux kinds, and for what
	// Place has changed.
	Object *unstructured.Unstructured
	// Cluster that the object goes to, as in its ID; empty for Strata's own.
	Cluster string
	// Ensured is true for an object that is created where it is missing, and
	// belongs to nobody; Observed for one that somebody else makes, of which
	// Object is no more than its identity. No directory lists either.
	Ensured, Observed bool
	// Home is true for an object that stays on the cluster that Strata runs in,
	// wherever its layer belongs.
	Home bool
	// Copy is true for what Place has copied beside a RemoteCluster, and no
	// directory lists there.
	Copy bool
	// Placed is true for a copy, and for a source that Place has put beside a
	// RemoteCluster.
	Placed bool
	// Unshared says how to give leave for what was copied without it; empty for
	// all else.
	Unshared string
	// Optional is true for one whose readers all do without it.
	Optional bool
	// Withheld says why an observed object is not to be had, whether it exists or
	// not, as what follows its name.
	Withheld string
	// Confidential is true for an object that was made with values of Secrets, or was
	// decrypted: what it holds is told no more than what a Secret holds.
	Confidential bool
	// Decrypted is true where any field of the object may be one that was encrypted. It
	// is Confidential then, too.
	Decrypted bool
	// AsFlux is true for an object that was built as Flux builds it. Releases keep what
	// they say of each other then: whoever takes them over from Flux changes nothing.
	AsFlux bool
	// Unset names the variables of the object that nobody gives, and that are empty.
	Unset []string
	// Named lists the variables with values of Secrets that the name, the namespace or the
	// kind of the object is made of. Statuses and messages tell these.
	Named []string
	// Needs lists what the object waits for beside what it says itself.
	Needs []objects.ID
}

// ID returns the ID of the object.
func (m Manifest) ID() objects.ID { return objects.IDOf(m.Object).On(m.Cluster) }

// ContentError is a mistake in a layer's directory or artifact that only its
// author can mend.
type ContentError struct {
	// Reason is the condition reason.
	Reason string
	// File below the root of the artifact, Line counted from 1 and Field; each
	// may be unknown.
	File  string
	Line  int
	Field string
	// Message says what is wrong and what to write instead.
	Message string
}

// Error names the place and what is wrong with it.
func (e *ContentError) Error() string {
	place := e.File
	if place != "" && e.Line > 0 {
		place += ":" + strconv.Itoa(e.Line)
	}
	if e.Field != "" {
		if place != "" {
			place += ": "
		}
		place += e.Field
	}
	if place == "" {
		return e.Message
	}
	return place + ": " + e.Message
}
