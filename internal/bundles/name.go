// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxName is how long names may be: as long as a label's value, which many of them
// become.
const maxName = 63

// Name joins parts with dashes to a name of at most 63 characters. One that is too
// long is cut, with a hash of all of it behind, so that no two are the same that
// differ only where they are cut. Equal parts always make equal names.
func Name(parts ...string) string {
	name := strings.Join(parts, "-")
	if len(name) <= maxName {
		return name
	}
	return cut(name, maxName-hashLength-1) + "-" + hashOf(name)
}

// hashLength is how many characters of a hash are in names.
const hashLength = 10

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:hashLength]
}

// cut returns the beginning of a name that something is put behind.
func cut(name string, most int) string {
	if len(name) > most {
		name = name[:most]
	}
	return strings.TrimRight(name, "-.")
}

// slug makes readable letters for a name of any text.
func slug(text string) string {
	letters := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(text))
	return strings.Trim(letters, "-")
}
