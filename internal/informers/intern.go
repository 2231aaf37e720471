// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import "sync"

// interned are texts that many objects in the caches have, once for all of them: the
// names of fields, and the short values that came first, which are those that come again.
// Decoding makes a text anew for each field of each object.
var interned = texts{known: map[string]string{}}

// Beyond these a text is left as it is.
const (
	longestInterned = 48
	mostInterned    = 4096
)

type texts struct {
	mu    sync.RWMutex
	known map[string]string
}

// of returns the text that stands for all that are the same.
func (t *texts) of(text string) string {
	if len(text) > longestInterned {
		return text
	}
	t.mu.RLock()
	one, known := t.known[text]
	full := len(t.known) >= mostInterned
	t.mu.RUnlock()
	if known || full {
		if known {
			return one
		}
		return text
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if one, known := t.known[text]; known {
		return one
	}
	t.known[text] = text
	return text
}

// intern returns a value of a decoded object with texts of many objects in it, and maps
// that are as large as need be.
func intern(value any) any {
	switch v := value.(type) {
	case string:
		return interned.of(v)
	case map[string]any:
		made := make(map[string]any, len(v))
		for key, each := range v {
			made[interned.of(key)] = intern(each)
		}
		return made
	case []any:
		for i := range v {
			v[i] = intern(v[i])
		}
		return v
	default:
		return value
	}
}
