// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"io"
	"io/fs"
	"path"
	"syscall"
	"time"
)

// packedFS shows an artifact whose files lie one after the other in one
// content. To make a file of each would take most of the time between a commit
// and the first write.
type packedFS struct {
	content io.ReaderAt
	index   *index
}

var (
	_ fs.StatFS    = packedFS{}
	_ fs.ReadDirFS = packedFS{}
)

// Open opens a file or a folder.
func (p packedFS) Open(name string) (fs.File, error) {
	info, err := p.info("open", name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return &packedFolder{packedInfo: info, entries: p.entries(name)}, nil
	}
	file := p.index.files[name]
	return &packedFile{packedInfo: info, SectionReader: io.NewSectionReader(p.content, file.offset, file.size)}, nil
}

// Stat says what a name is.
func (p packedFS) Stat(name string) (fs.FileInfo, error) { return p.info("stat", name) }

// ReadDir returns what is in a folder, in the order of the names.
func (p packedFS) ReadDir(name string) ([]fs.DirEntry, error) {
	info, err := p.info("readdir", name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: syscall.ENOTDIR}
	}
	return p.entries(name), nil
}

func (p packedFS) info(op, name string) (packedInfo, error) {
	if !fs.ValidPath(name) {
		return packedInfo{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	if file, found := p.index.files[name]; found {
		return packedInfo{name: path.Base(name), size: file.size, mode: 0o400}, nil
	}
	if p.index.folders[name] != nil {
		return packedInfo{name: path.Base(name), mode: fs.ModeDir | 0o500}, nil
	}
	return packedInfo{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

func (p packedFS) entries(name string) []fs.DirEntry {
	children := p.index.folders[name].children
	entries := make([]fs.DirEntry, 0, len(children))
	for _, child := range children {
		info, err := p.info("readdir", path.Join(name, child.name))
		if err == nil {
			entries = append(entries, fs.FileInfoToDirEntry(info))
		}
	}
	return entries
}

// packedInfo describes a file or a folder. It implements fs.FileInfo.
type packedInfo struct {
	name string
	size int64
	mode fs.FileMode
}

func (i packedInfo) Name() string               { return i.name }
func (i packedInfo) Size() int64                { return i.size }
func (i packedInfo) Mode() fs.FileMode          { return i.mode }
func (i packedInfo) ModTime() time.Time         { return time.Time{} }
func (i packedInfo) IsDir() bool                { return i.mode.IsDir() }
func (i packedInfo) Sys() any                   { return nil }
func (i packedInfo) Stat() (fs.FileInfo, error) { return i, nil }
func (i packedInfo) Close() error               { return nil }

// packedFile is an open file.
type packedFile struct {
	packedInfo
	*io.SectionReader
}

// Size is that of the file.
func (f *packedFile) Size() int64 { return f.size }

// packedFolder is an open folder.
type packedFolder struct {
	packedInfo
	entries []fs.DirEntry
}

// Read fails: a folder is no file.
func (f *packedFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.name, Err: syscall.EISDIR}
}

// ReadDir returns the next entries, or all that are left.
func (f *packedFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(f.entries) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(f.entries) {
		n = len(f.entries)
	}
	next := f.entries[:n]
	f.entries = f.entries[n:]
	return next, nil
}
