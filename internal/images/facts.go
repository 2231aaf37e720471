// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// factsFolder has what is known of images.
	factsFolder = "images"
	// maxPrograms is how many programs are kept, the last used ones.
	maxPrograms = 20
)

// facts are what is known of an image.
type facts struct {
	// Program is the digest of its file.
	Program string `json:"program"`
	// Signatures that the image had when it was last asked for.
	Signatures []signature `json:"signatures,omitempty"`
}

func (s *Store) path(digest string) string {
	return filepath.Join(s.folder, strings.Replace(digest, ":", "-", 1))
}

// factsPath returns the file of what is known of an image. Each address has its own: what one
// registry says of a digest counts for no other one.
func (s *Store) factsPath(image Image) string {
	address := sha256.Sum256([]byte(image.Address))
	name := strings.Replace(image.Digest, ":", "-", 1) + "-" + hex.EncodeToString(address[:10]) + ".json"
	return filepath.Join(s.folder, factsFolder, name)
}

// facts returns what is known of an image. Of one whose program is not there, nothing is.
func (s *Store) facts(image Image) facts {
	var known facts
	data, err := os.ReadFile(s.factsPath(image))
	if err != nil || json.Unmarshal(data, &known) != nil {
		return facts{}
	}
	if _, err := os.Stat(s.path(known.Program)); err != nil {
		known.Program = ""
	}
	return known
}

// keep writes what is known of an image.
func (s *Store) keep(image Image, known facts) error {
	data, err := json.Marshal(known)
	if err != nil {
		return fmt.Errorf("cannot keep what is known of image %s: %w", image, err)
	}
	temporary := s.factsPath(image) + ".new"
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return fmt.Errorf("cannot keep what is known of image %s: %w", image, err)
	}
	if err := os.Rename(temporary, s.factsPath(image)); err != nil {
		return fmt.Errorf("cannot keep what is known of image %s: %w", image, err)
	}
	return nil
}

// trim removes the programs that were not used for longest, where there are too many, but one.
func (s *Store) trim(but string) {
	type used struct {
		path string
		at   time.Time
	}
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return // the next fetch says what is wrong
	}
	var all []used
	for _, entry := range entries {
		info, err := entry.Info()
		path := filepath.Join(s.folder, entry.Name())
		if err == nil && strings.HasPrefix(entry.Name(), "sha256-") && path != s.path(but) {
			all = append(all, used{path, info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b used) int { return b.at.Compare(a.at) })
	for i := maxPrograms - 1; i < len(all); i++ {
		_ = os.Remove(all[i].path) // the next fetch tries again
	}
}
