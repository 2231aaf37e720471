// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"path"
	"slices"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
)

// cleanPath returns a path as io/fs wants it. Nothing is bent to stay inside:
// what would leave the artifact is refused.
func cleanPath(name string) (string, error) {
	outside := func(message string) error {
		return &directories.ContentError{Reason: v1alpha1.ReasonPathOutsideArtifact, Field: "spec.source.path", Message: message}
	}
	switch {
	case strings.HasPrefix(name, "/"):
		return "", outside("must not be absolute: begin it with ./ and name a directory below the root of the source")
	case slices.Contains(strings.Split(name, "/"), ".."):
		return "", outside("must stay inside the source: remove the .. from it")
	case strings.ContainsRune(name, 0):
		return "", outside("must not contain a NUL character")
	}
	return path.Clean(name), nil
}
