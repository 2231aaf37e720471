// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package trim

import (
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"sync"
)

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

// intern returns a value of a decoded object with texts and maps of many objects in it,
// and other maps that are as large as need be. What is in a cache is never changed, so
// that maps can be had in common.
func intern(value any) any {
	interned, _ := internPart(value)
	return interned
}

// internPart is as intern, and returns by which number a map is known that many objects
// have; 0 for what is no such map.
func internPart(value any) (any, int) {
	switch v := value.(type) {
	case string:
		return interned.of(v), 0
	case map[string]any:
		return internMap(v)
	case []any:
		for i := range v {
			v[i] = intern(v[i])
		}
		return v, 0
	default:
		return value, 0
	}
}

// internMap interns what is in a map, and the map.
func internMap(v map[string]any) (any, int) {
	var room [mostFields]field
	fields, small := room[:0], len(v) <= mostFields
	made := map[string]any(nil)
	if !small {
		made = make(map[string]any, len(v))
	}
	for key, each := range v {
		one, number := internPart(each)
		if !small {
			made[interned.of(key)] = one
			continue
		}
		fields = append(fields, field{interned.of(key), one, number})
	}
	if !small {
		return made, 0
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return commonParts.of(fields)
}

// commonParts are the maps that objects in the caches have in common, such as where a
// chart comes from. They are never changed.
var commonParts = parts{known: map[string]part{}, once: map[uint64]bool{}, seed: maphash.MakeSeed()}

// A map with more fields, or with more in them, is nobody's but its object's. So is one
// beyond those that came first. Of what was seen once a hash is remembered: most maps
// never come again.
const (
	mostFields   = 8
	longestPart  = 512
	mostParts    = 4096
	mostSeenOnce = 4 * mostParts
)

// field is one of a map, with the number of the value where that is known.
type field struct {
	name   string
	value  any
	number int
}

// part is a map that many objects have.
type part struct {
	value  map[string]any
	number int
}

type parts struct {
	mu    sync.Mutex
	known map[string]part
	once  map[uint64]bool
	seed  maphash.Seed
}

// of returns a map of sorted fields: that which stands for all that are the same, with
// its number, or a new one.
func (p *parts) of(fields []field) (map[string]any, int) {
	var room [longestPart]byte
	key, same := keyOf(room[:0], fields)
	if !same {
		return mapOf(fields), 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if one, known := p.known[string(key)]; known {
		return one.value, one.number
	}
	made := mapOf(fields)
	hash := maphash.Bytes(p.seed, key)
	switch {
	case len(p.known) >= mostParts:
	case p.once[hash]:
		delete(p.once, hash)
		one := part{made, len(p.known) + 1}
		p.known[string(key)] = one
		return one.value, one.number
	default:
		if len(p.once) >= mostSeenOnce {
			clear(p.once)
		}
		p.once[hash] = true
	}
	return made, 0
}

func mapOf(fields []field) map[string]any {
	made := make(map[string]any, len(fields))
	for _, each := range fields {
		made[each.name] = each.value
	}
	return made
}

// keyOf appends what is the same in maps that are the same, and in no others. It returns
// false for a map that nothing else can be the same as: one that holds a list, or a map
// that is not known itself, or much.
func keyOf(key []byte, fields []field) ([]byte, bool) {
	for _, each := range fields {
		if len(key)+len(each.name) > longestPart-longestInterned-32 {
			return nil, false
		}
		key = strconv.AppendQuote(key, each.name)
		switch v := each.value.(type) {
		case string:
			if len(v) > longestInterned {
				return nil, false
			}
			key = strconv.AppendQuote(key, v)
		case bool:
			key = strconv.AppendBool(key, v)
		case int64:
			key = strconv.AppendInt(append(key, 'i'), v, 10)
		case float64:
			key = strconv.AppendFloat(append(key, 'f'), v, 'g', -1, 64)
		case nil:
			key = append(key, 'n')
		case map[string]any:
			if each.number == 0 {
				return nil, false
			}
			key = strconv.AppendInt(append(key, 'm'), int64(each.number), 10)
		default:
			return nil, false
		}
	}
	return key, true
}
