// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"container/list"
	"sync"

	"github.com/strata-project/strata/internal/directories"
)

// parsedKey names a directory of an artifact, or the artifact itself where it
// is refused as a whole.
type parsedKey struct {
	artifact, path string
	// build is the key of how it becomes objects.
	build   string
	refused bool
}

// place is the key without the artifact.
func (k parsedKey) place() parsedKey {
	k.artifact = ""
	return k
}

// parsed is what a directory turned out to be: its objects or its mistake.
type parsed struct {
	// head is the directory without its manifests.
	head directories.Directory
	// objects are nil where there is a mistake, or CBOR would not give back the
	// manifests: these stay then.
	objects *condensed
	err     *directories.ContentError
	weight  int64
	// basis is what it follows from; nil where that is not known.
	basis basis
	// keys counts the directories of artifacts that it is remembered for.
	keys int

	// manifests are those of the objects, while expansion is in its list; they
	// weigh expanded.
	manifests []directories.Manifest
	expansion *list.Element
	expanded  int64
}

// What an entry weighs beside its objects, and a question beside its name.
const (
	entryWeight = 1 << 10
	askedWeight = 1 << 7
)

func newParsed(directory *directories.Directory, err *directories.ContentError, b basis) *parsed {
	p := &parsed{err: err, basis: b}
	for asked := range b {
		p.weight += askedWeight + int64(len(asked.name))
	}
	if directory == nil {
		return p
	}
	p.head, p.manifests = *directory, directory.Manifests
	p.head.Manifests = nil
	p.objects, p.expanded = condense(directory.Manifests)
	if p.objects == nil {
		p.weight += p.expanded
	} else {
		p.weight += p.objects.weight()
	}
	return p
}

// directory returns the directory without its manifests, or its mistake.
func (p *parsed) directory() (directories.Directory, error) {
	if p.err != nil {
		mistake := *p.err
		return directories.Directory{}, &mistake
	}
	return p.head, nil
}

// expandedShare is the part of the memory that directories may take as they are
// handed out, beside all of them as CBOR: with the default, 4 MiB or some 60
// layers of 10 releases. A layer that is under way asks for its directory several
// times in a row; one that is settled does not ask. To expand such a directory
// takes a fraction of a millisecond, so that more would be of little use.
const expandedShare = 16

// parsedCache keeps parsed directories, the most recently used first.
type parsedCache struct {
	max, maxExpanded int64

	mu      sync.Mutex
	size    int64
	order   *list.List // of *remembered
	byKey   map[parsedKey]*list.Element
	byPath  map[parsedKey]*list.Element // the one that was added last
	content map[string]*list.Element    // by the digest of the objects

	// expanded holds the *parsed that have manifests beside their objects, the
	// most recently used first.
	expanded     *list.List
	expandedSize int64
}

type remembered struct {
	key parsedKey
	*parsed
}

func newParsedCache(limit int64) *parsedCache {
	expanded := limit / expandedShare
	return &parsedCache{
		max: limit - expanded, maxExpanded: expanded, order: list.New(), expanded: list.New(),
		byKey: map[parsedKey]*list.Element{}, byPath: map[parsedKey]*list.Element{}, content: map[string]*list.Element{},
	}
}

func (m *parsedCache) get(key parsedKey) (*parsed, bool) {
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
func (m *parsedCache) last(key parsedKey) (*parsed, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	element, ok := m.byPath[key.place()]
	if !ok {
		return nil, false
	}
	return element.Value.(*remembered).parsed, true
}

func (m *parsedCache) byDigest(digest string) (*parsed, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	element, ok := m.content[digest]
	if !ok {
		return nil, false
	}
	m.order.MoveToFront(element)
	return element.Value.(*remembered).parsed, true
}

// add remembers what key turned out to be and returns it.
func (m *parsedCache) add(key parsedKey, p *parsed) *parsed {
	m.mu.Lock()
	defer m.mu.Unlock()
	if element, ok := m.byKey[key]; ok {
		m.remove(element)
	}
	element := m.order.PushFront(&remembered{key, p})
	m.byKey[key] = element
	if p.basis != nil {
		m.byPath[key.place()] = element
	}
	if p.err == nil {
		m.content[p.head.Digest] = element
	}
	m.size += entryWeight
	p.keys++
	if p.keys == 1 {
		m.size += p.weight
		// One that was forgotten meanwhile has its objects alone.
		if p.objects != nil && p.manifests != nil {
			m.keepExpanded(p)
		}
	}
	for m.size > m.max && m.order.Len() > 1 {
		m.remove(m.order.Back())
	}
	return p
}

func (m *parsedCache) remove(element *list.Element) {
	old := m.order.Remove(element).(*remembered)
	delete(m.byKey, old.key)
	if m.byPath[old.key.place()] == element {
		delete(m.byPath, old.key.place())
	}
	m.size -= entryWeight
	old.keys--
	if old.keys == 0 {
		m.size -= old.weight
		m.dropExpanded(old.parsed)
	}
	if old.err != nil || m.content[old.head.Digest] != element {
		return
	}
	delete(m.content, old.head.Digest)
	// Another path or artifact may hold the same objects.
	for other := m.order.Front(); other != nil; other = other.Next() {
		if r := other.Value.(*remembered); r.err == nil && r.head.Digest == old.head.Digest {
			m.content[r.head.Digest] = other
			return
		}
	}
}
