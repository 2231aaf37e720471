// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package layers holds the rules of an AddonsLayer as pure functions: what its
// directory means, which gates are open, what is to be done, and what its
// status says. It reads no clock, no cluster and no file.
package layers

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	// Object as it was written, but for the version of Flux kinds.
	Object *unstructured.Unstructured
}

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
