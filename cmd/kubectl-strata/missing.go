// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/answers/summary"
)

// missingError is an object that does not exist.
type missingError struct {
	kind   kind
	wanted reference
	near   []string
	cause  error
}

// missing says which of the objects that there are may have been meant by the name
// of one that does not exist.
func (o *showOptions) missing(wanted reference, listed []unstructured.Unstructured, cause error) error {
	var names []string
	for i := range listed {
		name := reference{namespace: listed[i].GetNamespace(), name: listed[i].GetName()}
		if wanted.anywhere {
			name.namespace = ""
		}
		names = append(names, name.String())
	}
	slices.Sort(names)
	return &missingError{kind: o.kind, wanted: wanted, near: summary.Near(wanted.String(), slices.Compact(names)), cause: cause}
}

// Error suggests what may have been meant.
func (e *missingError) Error() string {
	text := fmt.Sprintf("there is no %s %s; ", e.kind.noun, e.wanted)
	switch {
	case len(e.near) > 0:
		return text + fmt.Sprintf("did you mean %s?", strings.Join(e.near, " or "))
	case e.kind.instead[e.wanted.name] != "":
		return text + e.kind.instead[e.wanted.name]
	}
	return text + e.kind.command + " lists those there are"
}

// Unwrap returns the API server's answer.
func (e *missingError) Unwrap() error { return e.cause }
