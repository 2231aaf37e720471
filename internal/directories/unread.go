// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package directories

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Unread is what there is of a directory that cannot be read. It says which names the
// directory may mean.
type Unread struct {
	// Listed holds what the objects of readable files say that could name an object,
	// each with its file.
	Listed map[string]string
	// Texts are the files that cannot be read, in the order of their names.
	Texts []Text
	// Unknown says why any object may be meant; empty where Listed and Texts have all
	// names.
	Unknown string
}

// Text is what a file holds.
type Text struct {
	File string
	Data []byte
}

// Mentions is which of the names in question a directory that cannot be read may mean.
type Mentions struct {
	// Names holds those that it has, each with a file.
	Names map[string]string
	// Unknown says why it may mean any; empty where it means no more than Names.
	Unknown string
}

// Find looks for names. The zero value of Unread means none.
func (u Unread) Find(names []string) Mentions {
	found := Mentions{Names: map[string]string{}, Unknown: u.Unknown}
	for _, name := range names {
		if file, listed := u.Listed[name]; listed {
			found.Names[name] = file
		}
	}
	for _, text := range u.Texts {
		if hidden := hides(text.Data); hidden && found.Unknown == "" {
			found.Unknown = text.File + " cannot be read, and its names may be written otherwise than in letters"
		}
		plain := unescaped(text.Data)
		for _, name := range names {
			if _, known := found.Names[name]; known || name == "" {
				continue
			}
			if bytes.Contains(text.Data, []byte(name)) || bytes.Contains(plain, []byte(name)) {
				found.Names[name] = text.File
			}
		}
	}
	return found
}

var (
	// encryptedName is a name that SOPS has encrypted.
	encryptedName = regexp.MustCompile(`\bname"?\s*:\s*["']?ENC\[`)
	// anyName is the key of a name.
	anyName = regexp.MustCompile(`\bname["']?\s*:`)
)

// hides tells whether a text may have names that are not in its bytes: in another encoding
// than UTF-8, in base64, or encrypted.
func hides(data []byte) bool {
	switch {
	case !utf8.Valid(data), bytes.IndexByte(data, 0) >= 0:
		return true
	case bytes.Contains(data, []byte("!!binary")), bytes.Contains(data, []byte("yaml.org,2002:binary")), bytes.Contains(data, []byte("%TAG")):
		return true
	case !bytes.Contains(data, []byte("ENC[")):
		return false
	}
	return encryptedName.Match(data) || !anyName.Match(data)
}

// unescaped returns a text with the escapes of YAML and JSON decoded that letters can be
// written with, wherever they are; nil where it has none.
func unescaped(data []byte) []byte {
	if bytes.IndexByte(data, '\\') < 0 {
		return nil
	}
	var plain strings.Builder
	plain.Grow(len(data))
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' || i+1 == len(data) {
			plain.WriteByte(data[i])
			continue
		}
		next := data[i+1]
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[next]
		switch {
		case digits > 0 && i+2+digits <= len(data):
			code, err := strconv.ParseUint(string(data[i+2:i+2+digits]), 16, 32)
			if err != nil {
				plain.WriteByte(data[i])
				continue
			}
			plain.WriteRune(rune(code)) // #nosec G115 -- what is no letter becomes one that no name has
			i += 1 + digits
		case next == '\n' || next == '\r': // a line that goes on
			i++
			for i+1 < len(data) && strings.IndexByte(" \t\r\n", data[i+1]) >= 0 {
				i++
			}
		default:
			plain.WriteByte(next)
			i++
		}
	}
	return []byte(plain.String())
}
