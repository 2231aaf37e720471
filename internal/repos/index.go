// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"
)

// sum identifies a content.
type sum [sha256.Size]byte

// index says what an unpacked artifact holds under each name, without reading
// a file again.
type index struct {
	files   map[string]sum
	folders map[string]sum
}

// newIndex returns the index of some files and folders, named as io/fs does.
// The folder of every file must be among the folders; those above it are added.
func newIndex(files map[string]sum, folders map[string]bool) *index {
	x := &index{files: files, folders: map[string]sum{".": {}}}
	children := map[string][]string{}
	for name := range folders {
		for ; name != "."; name = path.Dir(name) {
			if _, known := x.folders[name]; known {
				break
			}
			x.folders[name] = sum{}
			children[path.Dir(name)] = append(children[path.Dir(name)], "d "+path.Base(name))
		}
	}
	for name := range files {
		children[path.Dir(name)] = append(children[path.Dir(name)], "f "+path.Base(name))
	}
	for name := range x.folders {
		slices.Sort(children[name])
		x.folders[name] = sha256.Sum256(fmt.Appendf(nil, "%q", children[name]))
	}
	return x
}

// size is how many names there are.
func (x *index) size() int { return len(x.files) + len(x.folders) }

// question is what the reading of a directory asks an artifact: what a name
// holds, or only whether it is a file, a folder or nothing.
type question struct {
	name     string
	presence bool
}

// answer to a question. The sum is that of a file's content, or of the names in
// a folder; it is zero where that was not asked.
type answer struct {
	kind byte
	sum  sum
}

// answer says what the artifact holds.
func (x *index) answer(q question) answer {
	found := answer{kind: '-'}
	if content, ok := x.files[q.name]; ok {
		found = answer{'f', content}
	} else if names, ok := x.folders[q.name]; ok {
		found = answer{'d', names}
	}
	if q.presence {
		found.sum = sum{}
	}
	return found
}

// basis is all that the reading of a directory has asked, with the answers. An
// artifact that answers the same holds the same directory.
type basis map[question]answer

// holds tells whether an artifact gives the same answers.
func (b basis) holds(x *index) bool {
	if b == nil || x == nil {
		return false
	}
	for q, a := range b {
		if x.answer(q) != a {
			return false
		}
	}
	return true
}

// recorder notes what is asked of the files of an artifact.
type recorder struct {
	files fs.FS
	mu    sync.Mutex
	asked map[question]struct{}
}

var (
	_ fs.StatFS    = &recorder{}
	_ fs.ReadDirFS = &recorder{}
)

func newRecorder(files fs.FS) *recorder {
	return &recorder{files: files, asked: map[question]struct{}{}}
}

func (r *recorder) ask(q question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked[q] = struct{}{}
}

// Open opens a file or a folder.
func (r *recorder) Open(name string) (fs.File, error) {
	r.ask(question{name: name})
	return r.files.Open(name)
}

// Stat is asked for what a name is, and for nothing else.
func (r *recorder) Stat(name string) (fs.FileInfo, error) {
	r.ask(question{name: name, presence: true})
	return fs.Stat(r.files, name)
}

// ReadDir returns what is in a folder.
func (r *recorder) ReadDir(name string) ([]fs.DirEntry, error) {
	r.ask(question{name: name})
	return fs.ReadDir(r.files, name)
}

// basis returns what was asked, as an artifact answers it; nil where that is
// not known.
func (r *recorder) basis(x *index) basis {
	if x == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := make(basis, len(r.asked))
	for q := range r.asked {
		b[q] = x.answer(q)
	}
	return b
}
