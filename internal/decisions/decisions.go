// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decisions keeps what was decided for an object, and what neither its
// specification nor anything else says, in its annotation DecidedAnnotation. Its
// status reports that, too; the annotation is what counts, because whoever may write
// it may change the object itself.
package decisions

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// Read returns what was decided for an object; the zero value where nothing was, or
// where it cannot be read.
func Read[T any](obj metav1.Object) T {
	var kept, none T
	if json.Unmarshal([]byte(obj.GetAnnotations()[v1alpha1.DecidedAnnotation]), &kept) != nil {
		return none
	}
	return kept
}

// Text returns the annotation's value; empty for the zero value, which needs none. T
// must be made of what JSON can hold.
func Text[T comparable](made T) string {
	var none T
	if made == none {
		return ""
	}
	data, err := json.Marshal(made)
	if err != nil {
		return ""
	}
	return string(data)
}
