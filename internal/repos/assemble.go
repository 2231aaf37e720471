// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"fmt"
	"strings"

	"github.com/strata-project/strata/internal/directories"
)

// Assemble returns the directory of objects that were not read from an artifact,
// as Directory returns those of an artifact: checked, converted and in order. It
// is kept in memory under key, which must be another whenever made would return
// something else, and made is called where it is not there. The error is that of
// made, or a *layers.ContentError.
func (s *Store) Assemble(key, revision string, made func() ([]directories.Manifest, error)) (*directories.Directory, error) {
	found, err := s.assembled(key, made)
	if err != nil {
		return nil, err
	}
	directory, err := s.parsed.directory(found)
	if err != nil {
		return nil, err
	}
	directory.Revision = revision
	return directory, nil
}

// AssembledDigest returns the Digest of what Assemble returns. It does not have to
// expand the objects.
func (s *Store) AssembledDigest(key string, made func() ([]directories.Manifest, error)) (string, error) {
	found, err := s.assembled(key, made)
	if err != nil {
		return "", err
	}
	return found.head.Digest, nil
}

func (s *Store) assembled(key string, made func() ([]directories.Manifest, error)) (*parsed, error) {
	at := parsedKey{artifact: "assembled:" + key, path: "."}
	if found, ok := s.parsed.get(at); ok {
		return found, nil
	}
	manifests, err := made()
	if err != nil {
		return nil, err
	}
	directory, err := assemble(manifests)
	if err != nil {
		return nil, err
	}
	s.sign(directory)
	return s.parsed.add(at, newParsed(directory, nil, nil)), nil
}

// assemble returns the directory of some objects, which it changes.
func assemble(manifests []directories.Manifest) (*directories.Directory, error) {
	set, size := newObjectSet(), 0
	for _, manifest := range manifests {
		if mistake := checkObject(manifest.Object.Object); mistake != nil {
			mistake.File, mistake.Line = manifest.File, manifest.Line
			return nil, mistake
		}
		if kind := manifest.Object.GetKind(); strings.HasSuffix(kind, "List") && manifest.Object.Object["items"] != nil {
			return nil, invalid(manifest.File, manifest.Line, "kind", "is a list: write the objects one by one")
		}
		stripServerFields(manifest.Object)
		if mistake := convert(manifest.Object); mistake != nil {
			mistake.File, mistake.Line = manifest.File, manifest.Line
			return nil, mistake
		}
		if size += len(canonical(manifest.Object)); size > maxDirectory {
			return nil, fmt.Errorf("the objects have more than %d bytes: %w", maxDirectory, invalid(manifest.File, manifest.Line, "", "is too much: split the layer"))
		}
		if err := set.add(manifest); err != nil {
			return nil, err
		}
	}
	return set.directory(), nil
}
