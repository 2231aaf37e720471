// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// suffix of what the cache holds, so that nothing else in its folder is removed.
const suffix = ".chart"

// cache keeps packed charts in files that are named by their SHA-256. It is a help
// only: what cannot be kept or read is fetched again. A nil cache keeps nothing.
type cache struct {
	dir   string
	limit int64
}

// sum returns the SHA-256 of data in hexadecimal digits.
func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

// isSum tells whether a text is a SHA-256 as sum writes it, and so a name of a file.
func isSum(text string) bool {
	return len(text) == 2*sha256.Size && strings.Trim(text, "0123456789abcdef") == ""
}

// get returns what has a digest, or nil.
func (c *cache) get(digest string) []byte {
	if c == nil || !isSum(digest) {
		return nil
	}
	name := filepath.Join(c.dir, digest+suffix)
	data, err := os.ReadFile(name) //nolint:gosec // a folder of ours and a digest
	if err != nil || sum(data) != digest {
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(name, now, now) // how long it is kept depends on it, and nothing else
	return data
}

// put keeps data that has a digest, and removes what was not used for longest.
func (c *cache) put(digest string, data []byte) {
	if c == nil || int64(len(data)) > c.limit {
		return
	}
	file, err := os.CreateTemp(c.dir, "new-*"+suffix)
	if err != nil {
		return
	}
	_, err = file.Write(data)
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err == nil {
		// The file system's own clock may be behind by some milliseconds, by which what
		// is new would look older than what get has just returned.
		now := time.Now()
		err = os.Chtimes(file.Name(), now, now)
	}
	if err == nil {
		err = os.Rename(file.Name(), filepath.Join(c.dir, digest+suffix))
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return
	}
	c.shrink()
}

// shrink removes charts until the rest is within the limit.
func (c *cache) shrink() {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	var kept []fs.FileInfo
	var total int64
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.HasSuffix(entry.Name(), suffix) {
			continue
		}
		kept = append(kept, info)
		total += info.Size()
	}
	slices.SortFunc(kept, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	for _, info := range kept {
		if total <= c.limit {
			return
		}
		if os.Remove(filepath.Join(c.dir, info.Name())) == nil {
			total -= info.Size()
		}
	}
}
