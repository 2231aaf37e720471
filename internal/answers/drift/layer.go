// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package drift

import "github.com/strata-project/strata/internal/answers/preview"

// Layer is what of a layer is not as it is wanted.
type Layer struct {
	Layer string `json:"layer"`
	// Objects that differ, of the layer itself and of its releases; Release is empty
	// for the layer's own.
	Objects []Object `json:"objects"`
	// Unknown says what could not be compared, and why.
	Unknown []string `json:"unknown"`
}

// Object is an object that is not as it is wanted.
type Object struct {
	Release string `json:"release,omitempty"`
	preview.ObjectChange
}
