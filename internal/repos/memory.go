// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"container/list"
	"sync"

	"github.com/strata-project/strata/internal/layers"
)

// parsedKey names a directory of an artifact, or the artifact itself where it
// is refused as a whole.
type parsedKey struct {
	artifact, path string
	refused        bool
}

// parsed is what a directory turned out to be: its objects or its mistake.
type parsed struct {
	result *layers.Directory
	err    *layers.ContentError
	weight int64
	// basis is what it follows from; nil where that is not known.
	basis basis
	// keys counts the directories of artifacts that it is remembered for.
	keys int
}

// What an entry weighs beside its objects, an object beside its JSON, and a
// question beside its name.
const (
	entryWeight  = 1 << 10
	askedWeight  = 1 << 7
	objectWeight = 1 << 9
)

func newParsed(directory *layers.Directory, err *layers.ContentError, b basis) *parsed {
	p := &parsed{result: directory, err: err, basis: b}
	for asked := range b {
		p.weight += askedWeight + int64(len(asked.name))
	}
	if directory != nil {
		for _, manifest := range directory.Manifests {
			p.weight += objectWeight + int64(len(canonical(manifest.Object)))
		}
	}
	return p
}

// directory returns the result for one revision: artifacts with the same bytes
// may have several.
func (p *parsed) directory(revision string) (*layers.Directory, error) {
	if p.err != nil {
		mistake := *p.err
		return nil, &mistake
	}
	directory := *p.result
	directory.Revision = revision
	return &directory, nil
}

// memory keeps parsed directories, the most recently used first.
type memory struct {
	max int64

	mu      sync.Mutex
	size    int64
	order   *list.List // of *remembered
	byKey   map[parsedKey]*list.Element
	byPath  map[string]*list.Element // the one that was added last
	content map[string]*list.Element // by the digest of the objects
}

type remembered struct {
	key parsedKey
	*parsed
}

func newMemory(limit int64) *memory {
	return &memory{max: limit, order: list.New(), byKey: map[parsedKey]*list.Element{}, byPath: map[string]*list.Element{}, content: map[string]*list.Element{}}
}

func (m *memory) get(key parsedKey) (*parsed, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	element, ok := m.byKey[key]
	if !ok {
		return nil, false
	}
	m.order.MoveToFront(element)
	return element.Value.(*remembered).parsed, true
}

// last returns what a path turned out to be in the artifact that it was read
// from last.
func (m *memory) last(path string) (*parsed, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	element, ok := m.byPath[path]
	if !ok {
		return nil, false
	}
	return element.Value.(*remembered).parsed, true
}

func (m *memory) byDigest(digest string) (*layers.Directory, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	element, ok := m.content[digest]
	if !ok {
		return nil, false
	}
	m.order.MoveToFront(element)
	directory := *element.Value.(*remembered).result
	return &directory, true
}

// add remembers what key turned out to be and returns it.
func (m *memory) add(key parsedKey, p *parsed) *parsed {
	m.mu.Lock()
	defer m.mu.Unlock()
	if element, ok := m.byKey[key]; ok {
		m.remove(element)
	}
	element := m.order.PushFront(&remembered{key, p})
	m.byKey[key] = element
	if p.basis != nil {
		m.byPath[key.path] = element
	}
	if p.result != nil {
		m.content[p.result.Digest] = element
	}
	m.size += entryWeight
	p.keys++
	if p.keys == 1 {
		m.size += p.weight
	}
	for m.size > m.max && m.order.Len() > 1 {
		m.remove(m.order.Back())
	}
	return p
}

func (m *memory) remove(element *list.Element) {
	old := m.order.Remove(element).(*remembered)
	delete(m.byKey, old.key)
	if m.byPath[old.key.path] == element {
		delete(m.byPath, old.key.path)
	}
	m.size -= entryWeight
	old.keys--
	if old.keys == 0 {
		m.size -= old.weight
	}
	if old.result == nil || m.content[old.result.Digest] != element {
		return
	}
	delete(m.content, old.result.Digest)
	// Another path or artifact may hold the same objects.
	for other := m.order.Front(); other != nil; other = other.Next() {
		if r := other.Value.(*remembered).result; r != nil && r.Digest == old.result.Digest {
			m.content[r.Digest] = other
			return
		}
	}
}
