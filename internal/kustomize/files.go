// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

var (
	errReadOnly = errors.New("the files of a build cannot be written to")
	errNoList   = errors.New("the files of a build are not listed")
)

// memoryFiles shows the files of a request to kustomize, below Mount.
type memoryFiles struct {
	files   map[string][]byte
	folders map[string]bool
}

var _ filesys.FileSystem = &memoryFiles{}

// Files shows files, by their names from the top, below Mount, and nothing else.
func Files(files map[string][]byte) filesys.FileSystem {
	m := &memoryFiles{files: make(map[string][]byte, len(files)), folders: map[string]bool{Mount: true}}
	for name, content := range files {
		name = path.Join(Mount, name)
		m.files[name] = content
		for folder := path.Dir(name); !m.folders[folder] && folder != "/"; folder = path.Dir(folder) {
			m.folders[folder] = true
		}
	}
	return m
}

// ReadFile returns the content of a file.
func (m *memoryFiles) ReadFile(name string) ([]byte, error) {
	content, ok := m.files[path.Clean(name)]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return content, nil
}

// CleanedAbs splits a name into a directory and a file of it.
func (m *memoryFiles) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	if !path.IsAbs(name) {
		name = path.Join(Mount, name)
	}
	clean := path.Clean(name)
	if m.folders[clean] {
		return filesys.ConfirmedDir(clean), "", nil
	}
	if _, ok := m.files[clean]; !ok {
		return "", "", fmt.Errorf("cannot load %s: %w", name, fs.ErrNotExist)
	}
	return filesys.ConfirmedDir(path.Dir(clean)), path.Base(clean), nil
}

// IsDir reports whether a directory is there.
func (m *memoryFiles) IsDir(name string) bool { return m.folders[path.Clean(name)] }

// Exists reports whether a file or directory is there.
func (m *memoryFiles) Exists(name string) bool {
	_, ok := m.files[path.Clean(name)]
	return ok || m.IsDir(name)
}

// ReadDir is not used by a build.
func (m *memoryFiles) ReadDir(string) ([]string, error) { return nil, errNoList }

// Glob is not used by a build.
func (m *memoryFiles) Glob(string) ([]string, error) { return nil, errNoList }

// Walk is not used by a build.
func (m *memoryFiles) Walk(string, filepath.WalkFunc) error { return errNoList }

// Open is not used by a build.
func (m *memoryFiles) Open(string) (filesys.File, error) { return nil, errReadOnly }

// Create is refused.
func (m *memoryFiles) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir is refused.
func (m *memoryFiles) Mkdir(string) error { return errReadOnly }

// MkdirAll is refused.
func (m *memoryFiles) MkdirAll(string) error { return errReadOnly }

// RemoveAll is refused.
func (m *memoryFiles) RemoveAll(string) error { return errReadOnly }

// WriteFile is refused.
func (m *memoryFiles) WriteFile(string, []byte) error { return errReadOnly }
