// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package solver

import (
	"fmt"
	"strings"
)

// Invalid is input that cannot be understood.
type Invalid struct {
	// Application is the name of the one that it is about; empty where it has none.
	Application string
	// Version of the application as it is written; empty where it is about no
	// version in the catalogue.
	Version string
	// Field is the path below the version, or below the Problem.
	Field string
	// Reason says what is wrong.
	Reason string
}

// Error names application, version and field.
func (e *Invalid) Error() string {
	where := e.Field
	switch {
	case e.Version != "":
		where = fmt.Sprintf("application %s, version %s, %s", e.Application, e.Version, e.Field)
	case e.Application != "":
		where = fmt.Sprintf("application %s, %s", e.Application, e.Field)
	}
	return where + ": " + e.Reason
}

// Unsatisfiable says that no versions fit.
type Unsatisfiable struct {
	// Facts that cannot all hold, in plain words: picks, then dependencies, then what
	// bars versions, then which versions there are. Without any one of them the rest
	// would leave a choice.
	Facts []string

	facts []*fact
}

// Error lists the facts.
func (e *Unsatisfiable) Error() string {
	return "no versions fit together: " + strings.Join(e.Facts, "; ")
}

// Cycle says that the versions that fit depend on each other in a circle.
type Cycle struct {
	// Paths are the circles that leave no choice, each beginning and ending with the
	// same name. There are several where one can be avoided only by way of another.
	Paths [][]string
}

// Error names the circles.
func (e *Cycle) Error() string {
	paths := make([]string, len(e.Paths))
	for i, path := range e.Paths {
		paths[i] = strings.Join(path, " -> ")
	}
	return "applications depend on each other, and no other versions fit: " + strings.Join(paths, "; ")
}

// Entangled says that no answer was found in time, because too many applications
// depend on each other, or recommend each other, in circles.
type Entangled struct {
	// Path is one of the circles of dependencies, beginning and ending with the same
	// name; empty where there are only others.
	Path []string
}

// Error names the circle.
func (e *Entangled) Error() string {
	text := "too many applications of the catalogue lead to each other in circles to choose between their versions"
	if len(e.Path) > 0 {
		text += ", for example " + strings.Join(e.Path, " -> ")
	}
	return text
}
