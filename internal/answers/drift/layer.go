// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"fmt"
	"strings"

	"github.com/strata-project/strata/internal/answers/preview"
	"github.com/strata-project/strata/internal/fields"
)

// Layer is what of a layer is not as it is wanted.
type Layer struct {
	Layer string `json:"layer"`
	// Objects that differ, of the layer itself and of its releases; Release is empty
	// for the layer's own.
	Objects []Object `json:"objects"`
	// Beside are fields of the layer's own objects that others have: they are no drift, and
	// stay, or go with the next change of their object.
	Beside []Beside `json:"beside"`
	// Unknown says what could not be compared, and why.
	Unknown []string `json:"unknown"`
}

// Beside is what a manager has of an object beside what git says.
type Beside struct {
	// Object is its kind, namespace and name.
	Object string `json:"object"`
	fields.Held
}

// mostFields is how many fields of one manager a line names.
const mostFields = 5

// String says who has what.
func (b Beside) String() string {
	named := strings.Join(b.Fields[:min(len(b.Fields), mostFields)], ", ")
	if more := len(b.Fields) - mostFields; more > 0 {
		named += fmt.Sprintf(" and %d more fields", more)
	}
	if b.Goes {
		return fmt.Sprintf("%s: %s has %s from before; the next change of the object takes it back", b.Object, b.Manager, named)
	}
	return fmt.Sprintf("%s: %s has %s, which stays", b.Object, b.Manager, named)
}

// Object is an object that is not as it is wanted.
type Object struct {
	Release string `json:"release,omitempty"`
	preview.ObjectChange
}
