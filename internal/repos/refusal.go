// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"fmt"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
)

// unverifiedError refuses what was downloaded, which says nothing about the
// digest that was asked for: the next download may be fine.
type unverifiedError struct{ *directories.ContentError }

// Unwrap returns what the author is told.
func (e unverifiedError) Unwrap() error { return e.ContentError }

// refuse refuses an artifact for the sake of one of its files, if any.
func refuse(file, format string, args ...any) *directories.ContentError {
	return &directories.ContentError{Reason: v1alpha1.ReasonArtifactRefused, File: file, Message: fmt.Sprintf(format, args...)}
}
