// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// LiveStateError is the API server's refusal to change an object into what is wanted, where
// it would create that very object: what the object is now is in the way, and its manifest
// is not wrong.
type LiveStateError struct {
	// Err is what the API server says.
	Err error
	// Field is what it is about, such as spec.ports; empty where it does not say.
	Field string
	// Managers have written that field beside the primary; sorted.
	Managers []string
}

// Error says what the API server says, and who else has written the field.
func (e *LiveStateError) Error() string {
	text := e.Err.Error()
	if len(e.Managers) > 0 {
		text += "; " + e.Field + " was also written by " + strings.Join(e.Managers, ", ")
	}
	return text
}

// Unwrap returns what the API server says.
func (e *LiveStateError) Unwrap() error { return e.Err }

// mistakes are words by which the API server refuses a manifest for a field that its kind
// does not have or that is of another type, or for an entry of a list that is there twice,
// other than as invalid.
var mistakes = []string{"strict decoding error", "field not declared in schema", "duplicate entries for key", "cannot be handled as a "}

// IsMistake tells whether an error says that a manifest is wrong, so that its author has to
// mend it.
func IsMistake(err error) bool {
	var live *LiveStateError
	if errors.As(err, &live) {
		return false
	}
	if apierrors.IsInvalid(err) {
		return true
	}
	text := err.Error()
	for _, words := range mistakes {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}
