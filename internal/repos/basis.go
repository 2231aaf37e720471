// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"io/fs"
	"sync"
)

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
		found = answer{'f', content.sum}
	} else if folder, ok := x.folders[q.name]; ok {
		found = answer{'d', folder.sum}
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
