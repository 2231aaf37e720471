// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"iter"
	"sync"

	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// Listings remembers what every layer lists, so that an event on an object
// finds all layers that care, and which layers wait for others to be read. It
// is safe for concurrent use.
type Listings struct {
	mu      sync.Mutex
	byLayer map[string]listing
	// asRead holds what other layers have read of a layer since its own look.
	asRead      map[string]listing
	byID        map[objects.ID]names
	byExclusive map[string]names
	// waiting holds layers with orphans, conflicts or kinds that are not
	// served: a change of another layer's listing may free them.
	waiting names
	// unserved holds the API groups that layers wait for.
	unserved map[string]map[string]bool
}

type names map[string]struct{}

// listing is what one layer lists, at one state of its directory.
type listing struct {
	// digest is the directory's, as DigestOf returns it; empty where it cannot be
	// read.
	digest string
	// origin is where that was read last; empty where it is not known.
	origin Origin
	layers.Listing
}

// Origin is where a directory is read. What is there never changes.
type Origin struct {
	// Artifact is the digest of an archive, and Path the directory in it, as a
	// layer writes it.
	Artifact, Path string
	// Cluster that the directory is put on, as IDs name it.
	Cluster string
}

// DigestOf identifies what a directory lists where it is put; empty for nil.
func DigestOf(dir *directories.Directory) string {
	if dir == nil {
		return ""
	}
	return DigestOn(dir.Digest, dir.Cluster)
}

// DigestOn is as DigestOf, of the directory of a digest.
func DigestOn(digest, cluster string) string {
	if cluster == "" {
		return digest
	}
	return digest + "@" + cluster
}

// Question asks what a layer lists at an origin.
type Question struct {
	Layer string
	Origin
}

// NewListings returns one without memory.
func NewListings() *Listings {
	return &Listings{
		byLayer: map[string]listing{}, asRead: map[string]listing{}, byID: map[objects.ID]names{}, byExclusive: map[string]names{},
		waiting: names{}, unserved: map[string]map[string]bool{},
	}
}

// Update records what a layer lists; dir is nil where it cannot be read. It
// tells whether that is something new.
func (l *Listings) Update(layer string, dir *directories.Directory) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, known := l.byLayer[layer]
	digest := DigestOf(dir)
	if known && last.digest == digest {
		return false
	}
	l.remove(layer)
	next := listing{digest: digest}
	if read, known := l.asRead[layer]; known && read.digest == digest {
		next = read
	} else if dir != nil {
		next.Listing = layers.ListingOf(dir)
	}
	l.byLayer[layer] = next
	if digest != "" {
		delete(l.asRead, layer)
	} else if _, read := l.asRead[layer]; !read && last.digest != "" {
		last.origin = Origin{} // where it cannot be read now
		l.asRead[layer] = last
	}
	for id := range next.Files {
		add(l.byID, id, layer)
	}
	for exclusive := range next.Exclusive {
		add(l.byExclusive, exclusive, layer)
	}
	return true
}

// Known returns what a layer lists in the directory of a digest, where that has
// been read last.
func (l *Listings) Known(layer, digest string) (layers.Listing, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known(layer, digest)
}

func (l *Listings) known(layer, digest string) (layers.Listing, bool) {
	for _, last := range []map[string]listing{l.byLayer, l.asRead} {
		if read, ok := last[layer]; ok && read.digest == digest {
			return read.Listing, true
		}
	}
	return layers.Listing{}, false
}

// Of returns what a layer lists in a directory as another layer reads it. That
// may be newer or older than what its own look has recorded, and changes nothing
// of it; the last one is remembered, as every new release asks for all layers.
func (l *Listings) Of(layer string, dir *directories.Directory) layers.Listing {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.known(layer, DigestOf(dir)); ok {
		return known
	}
	read := listing{digest: DigestOf(dir), Listing: layers.ListingOf(dir)}
	l.asRead[layer] = read
	return read.Listing
}

// Last returns what a layer listed when it was read last, by itself or by another layer.
func (l *Listings) Last(layer string) (_ layers.Listing, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, last := range []map[string]listing{l.byLayer, l.asRead} {
		if read, ok := last[layer]; ok && read.digest != "" {
			return read.Listing, true
		}
	}
	return layers.Listing{}, false
}

// Found records where the directory of a digest was read, if a layer is known to
// list that.
func (l *Listings) Found(layer, digest string, origin Origin) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, last := range []map[string]listing{l.byLayer, l.asRead} {
		if read, ok := last[layer]; ok && read.digest == digest {
			read.origin = origin
			last[layer] = read
		}
	}
}

// Concerning answers questions at once, so that a layer need not look at what
// every other one lists: it returns what those list that may list one of the
// objects, or one that stands for one of the exclusive things. Unknown has the
// indexes of the questions that have to be answered by reading.
func (l *Listings) Concerning(questions []Question, ids iter.Seq[objects.ID], exclusives iter.Seq[string]) (found map[string]layers.Listing, unknown []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	indexed := names{}
	for id := range ids {
		for layer := range l.byID[id] {
			indexed[layer] = struct{}{}
		}
	}
	for exclusive := range exclusives {
		for layer := range l.byExclusive[exclusive] {
			indexed[layer] = struct{}{}
		}
	}
	found = map[string]layers.Listing{}
	for i, question := range questions {
		last, read := l.byLayer[question.Layer], l.asRead[question.Layer]
		switch {
		case question.Artifact == "":
			unknown = append(unknown, i)
		case last.origin == question.Origin:
			if _, lists := indexed[question.Layer]; lists {
				found[question.Layer] = last.Listing
			}
		case read.origin == question.Origin:
			found[question.Layer] = read.Listing
		default:
			unknown = append(unknown, i)
		}
	}
	return found, unknown
}

// Forget removes a layer.
func (l *Listings) Forget(layer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(layer)
	delete(l.asRead, layer)
	delete(l.waiting, layer)
	delete(l.unserved, layer)
}

func (l *Listings) remove(layer string) {
	last := l.byLayer[layer]
	for id := range last.Files {
		drop(l.byID, id, layer)
	}
	for exclusive := range last.Exclusive {
		drop(l.byExclusive, exclusive, layer)
	}
	delete(l.byLayer, layer)
}

// SetWaiting records whether a layer waits for others, and for which groups.
func (l *Listings) SetWaiting(layer string, waits bool, groups map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, layer)
	if waits {
		l.waiting[layer] = struct{}{}
	}
	delete(l.unserved, layer)
	if len(groups) > 0 {
		l.unserved[layer] = groups
	}
}

// WhoWaits returns the layers that wait for others.
func (l *Listings) WhoWaits() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := make([]string, 0, len(l.waiting))
	for layer := range l.waiting {
		found = append(found, layer)
	}
	return found
}

// WhoWaitsFor returns the layers that wait for kinds of an API group.
func (l *Listings) WhoWaitsFor(group string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for layer, groups := range l.unserved {
		if groups[group] {
			found = append(found, layer)
		}
	}
	return found
}

// WhoLists returns the layers that list an object, or one that stands for the
// same exclusive thing.
func (l *Listings) WhoLists(id objects.ID, exclusive string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for layer := range l.byID[id] {
		found = append(found, layer)
	}
	if exclusive != "" {
		for layer := range l.byExclusive[exclusive] {
			found = append(found, layer)
		}
	}
	return found
}

// WhoListsKind returns the layers that list objects of a kind.
func (l *Listings) WhoListsKind(kind objects.ServedKind) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for layer, listing := range l.byLayer {
		for id := range listing.Files {
			if id.ServedKind() == kind {
				found = append(found, layer)
				break
			}
		}
	}
	return found
}

func add[K comparable](index map[K]names, key K, layer string) {
	if index[key] == nil {
		index[key] = names{}
	}
	index[key][layer] = struct{}{}
}

func drop[K comparable](index map[K]names, key K, layer string) {
	delete(index[key], layer)
	if len(index[key]) == 0 {
		delete(index, key)
	}
}
