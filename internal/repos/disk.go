// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"bufio"
	"container/list"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
)

// Names in the cache folder. One artifact is one folder with its content and
// what that is expected to be; both appear at once, by a rename.
const (
	contentName = "files"
	treeName    = "tree.json"
	tempPrefix  = "strata-tmp-"
)

// blockSize is what a file takes on disk at the least.
const blockSize = 4 << 10

// blocks returns what a file of a size takes on disk.
func blocks(size int64) int64 { return (size/blockSize + 1) * blockSize }

var artifactName = regexp.MustCompile(`^[a-z0-9]+-[a-f0-9]{32,}$`)

// disk keeps unpacked artifacts below one folder, the most recently used first. A
// caller acquires what is there, or expects and retains what is about to come, and
// releases it.
type disk struct {
	dir string
	max int64
	log logr.Logger

	mu    sync.Mutex
	size  int64
	moved int
	// indexed holds the entries whose index is kept, the newest last.
	indexed  []*entry
	order    *list.List // of *entry
	byDigest map[string]*list.Element
	// expected counts the callers that wait for an artifact: it is not evicted
	// before they hold it.
	expected map[string]int
}

// entry is an unpacked artifact. While somebody holds it, its files stay.
type entry struct {
	digest string
	path   string
	// size on disk in bytes, in whole blocks.
	size int64
	// index of its files; nil where it is to be read first.
	index *index
	// check makes sure, once, of what an earlier process left.
	check func() error

	holders int
	evicted bool
}

// openDisk takes over what an earlier process left in a folder and removes
// what it did not finish.
func openDisk(dir string, limit int64, log logr.Logger) (*disk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	d := &disk{dir: dir, max: limit, log: log, order: list.New(), byDigest: map[string]*list.Element{}, expected: map[string]int{}}
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var kept []leftover
	for _, item := range found {
		name := filepath.Join(dir, item.Name())
		switch {
		case strings.HasPrefix(item.Name(), tempPrefix):
			err = os.RemoveAll(name)
		case artifactName.MatchString(item.Name()):
			var l *leftover
			if l, err = readLeftover(name, limit); l != nil {
				kept = append(kept, *l)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(kept, func(a, b leftover) int { return int(min(1, max(-1, b.used-a.used))) })
	for _, l := range kept {
		d.byDigest[l.digest] = d.order.PushBack(l.entry)
		d.size += l.size
	}
	return d, d.removeAll(d.evict())
}

type leftover struct {
	*entry
	used int64
}

// readLeftover returns nil for a folder that was no whole artifact, or is
// larger than the cache may be, and removes it.
func readLeftover(path string, limit int64) (*leftover, error) {
	e := &entry{path: path, digest: strings.Replace(filepath.Base(path), "-", ":", 1)}
	var used int64
	for _, name := range []string{contentName, treeName} {
		info, err := os.Lstat(filepath.Join(path, name))
		if err != nil || !info.Mode().IsRegular() {
			return nil, os.RemoveAll(path)
		}
		e.size += blocks(info.Size())
		used = info.ModTime().UnixNano()
	}
	if e.size > limit {
		return nil, os.RemoveAll(path)
	}
	e.check = sync.OnceValue(e.verify)
	return &leftover{e, used}, nil
}

// acquire returns the artifact and holds it, or nil if it is not there.
func (d *disk) acquire(digest string) *entry {
	d.mu.Lock()
	element, ok := d.byDigest[digest]
	if !ok {
		d.mu.Unlock()
		return nil
	}
	d.order.MoveToFront(element)
	e := element.Value.(*entry)
	e.holders++
	d.mu.Unlock()
	if e.check == nil {
		return e
	}
	if err := e.check(); err != nil {
		d.log.V(1).Info("Removed an artifact that an earlier process left", "digest", digest, "reason", err.Error())
		d.drop(e)
		d.release(e)
		return nil
	}
	return e
}

// maxIndexed is about how many bytes of memory the indexes of artifacts may
// take. The one that was used last stays, however large.
const maxIndexed = 32 << 20

// indexOf returns the index of an entry that somebody holds.
func (d *disk) indexOf(e *entry) (*index, error) {
	d.mu.Lock()
	found, folder := e.index, e.path
	d.mu.Unlock()
	if found == nil {
		var err error
		if found, err = readIndex(folder); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keep(e, found)
	return found, nil
}

// keep keeps the index of an entry, and forgets those that were used longest
// ago where they are too many.
func (d *disk) keep(e *entry, x *index) {
	if e.evicted {
		return
	}
	e.index = x
	d.indexed = append(slices.DeleteFunc(d.indexed, func(other *entry) bool { return other == e }), e)
	weight := 0
	for i, other := range slices.Backward(d.indexed) {
		weight += other.index.weight
		if weight <= maxIndexed || other == e {
			continue
		}
		for _, old := range d.indexed[:i+1] {
			old.index = nil
		}
		d.indexed = slices.Clone(d.indexed[i+1:])
		return
	}
}

func readIndex(folder string) (*index, error) {
	data, err := os.ReadFile(filepath.Join(folder, treeName)) // #nosec G304 -- a name below the cache folder
	if err != nil {
		return nil, err
	}
	x, err := parseIndex(data)
	if err != nil {
		return nil, fmt.Errorf("what it holds cannot be read: %w", err)
	}
	return x, nil
}

// retain holds an entry that its caller has not acquired, unless it is gone.
func (d *disk) retain(e *entry) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.evicted {
		return false
	}
	e.holders++
	return true
}

// expect keeps an artifact that is about to come until what it returns is called.
func (d *disk) expect(digest string) (arrived func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expected[digest]++
	return func() {
		d.mu.Lock()
		d.expected[digest]--
		if d.expected[digest] == 0 {
			delete(d.expected, digest)
		}
		gone := d.evict()
		d.mu.Unlock()
		d.logged(d.removeAll(gone))
	}
}

// release lets the entry's files go when it is evicted and nobody holds it.
func (d *disk) release(e *entry) {
	d.mu.Lock()
	e.holders--
	gone := d.evict()
	if e.evicted && e.holders == 0 {
		gone = append(gone, e)
	}
	d.mu.Unlock()
	d.logged(d.removeAll(gone))
}

// drop forgets an entry that somebody holds.
func (d *disk) drop(e *entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if element, ok := d.byDigest[e.digest]; ok && element.Value == any(e) {
		d.forget(element)
	}
}

func (d *disk) forget(element *list.Element) {
	e := d.order.Remove(element).(*entry)
	delete(d.byDigest, e.digest)
	d.size -= e.size
	e.evicted = true
	e.index = nil
	d.indexed = slices.DeleteFunc(d.indexed, func(other *entry) bool { return other == e })
	// The same artifact may come back before this one is removed. Whoever has
	// it open is not disturbed by its new name.
	d.moved++
	away := filepath.Join(d.dir, fmt.Sprintf("%sgone-%d", tempPrefix, d.moved))
	if err := os.Rename(e.path, away); err == nil {
		e.path = away
	}
}

// evict forgets what is too much, the least recently used first, and returns
// what nobody holds.
func (d *disk) evict() []*entry {
	var gone []*entry
	for element := d.order.Back(); element != nil && d.size > d.max; {
		previous := element.Prev()
		if e := element.Value.(*entry); e.holders == 0 && d.expected[e.digest] == 0 {
			d.forget(element)
			gone = append(gone, e)
		}
		element = previous
	}
	return gone
}

func (d *disk) removeAll(gone []*entry) error {
	var all error
	for _, e := range gone {
		d.log.V(1).Info("Removed an artifact from the cache", "digest", e.digest, "bytes", e.size)
		all = errors.Join(all, os.RemoveAll(e.path))
	}
	return all
}

func (d *disk) logged(err error) {
	if err != nil {
		d.log.Error(err, "Cannot remove an artifact from the cache")
	}
}

// put adds an artifact: fill writes the archive to one name and the content of
// its files to another. The entry is not held.
func (d *disk) put(digest string, fill func(archive, content string) (*index, error)) (_ *entry, err error) {
	temp, err := os.MkdirTemp(d.dir, tempPrefix)
	if err != nil {
		return nil, fmt.Errorf("cannot store artifact: %w", err)
	}
	defer func() { d.logged(os.RemoveAll(temp)) }()
	whole := filepath.Join(temp, "artifact")
	content := filepath.Join(whole, contentName)
	if err := os.Mkdir(whole, 0o700); err != nil {
		return nil, fmt.Errorf("cannot store artifact: %w", err)
	}
	filled, err := fill(filepath.Join(temp, "archive"), content)
	if err != nil {
		return nil, err
	}
	e := &entry{digest: digest, path: filepath.Join(d.dir, strings.Replace(digest, ":", "-", 1)), index: filled}
	if err := d.store(e, whole); err != nil {
		return nil, fmt.Errorf("cannot store artifact: %w", err)
	}
	return e, nil
}

// store completes an artifact, whose content is there, and adds it.
func (d *disk) store(e *entry, whole string) error {
	info, err := os.Stat(filepath.Join(whole, contentName))
	if err != nil {
		return err
	}
	data, err := e.index.marshal()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(whole, treeName), data, 0o600); err != nil {
		return err
	}
	e.size = blocks(info.Size()) + blocks(int64(len(data)))
	return d.add(e, whole)
}

// add moves a whole artifact to its place and makes room for it.
func (d *disk) add(e *entry, whole string) error {
	d.mu.Lock()
	// One flight per digest: nothing that the cache knows is in the way.
	err := os.RemoveAll(e.path)
	if err == nil {
		err = os.Rename(whole, e.path)
	}
	if err != nil {
		d.mu.Unlock()
		return err
	}
	d.byDigest[e.digest] = d.order.PushFront(e)
	d.size += e.size
	// The new one stays for whoever asked for it: release makes the room that
	// it alone takes too much of.
	e.holders++
	gone := d.evict()
	e.holders--
	d.mu.Unlock()
	d.logged(d.removeAll(gone))
	return nil
}

// read hands the files of an entry to a function.
func (d *disk) read(e *entry, x *index, use func(fs.FS) error) error {
	d.mu.Lock()
	name := filepath.Join(e.path, contentName)
	d.mu.Unlock()
	content, err := os.Open(name) // #nosec G304 -- a name below the cache folder
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	return use(packedFS{content: content, index: x})
}

// verify compares the content with what it was when it was unpacked.
func (e *entry) verify() error {
	found, err := readIndex(e.path)
	if err != nil {
		return err
	}
	content, err := os.Open(filepath.Join(e.path, contentName))
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	return found.verify(bufio.NewReader(content))
}
