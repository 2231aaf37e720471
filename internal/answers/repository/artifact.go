// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"
	"github.com/fluxcd/pkg/sourceignore/gitignore"
)

// maxIgnoreFile is how large a .sourceignore file may be.
const maxIgnoreFile = 1 << 20

// Artifact returns the files of which Flux would make the artifact of a
// GitRepository: no links, and none that .sourceignore files or ignore, which is the
// spec.ignore of the GitRepository, leave out. Where neither has a pattern there are
// those that source-controller has by default. It fails where the files cannot be
// read.
func (r *Repository) Artifact(ctx context.Context, ignore string) (fs.FS, error) {
	patterns, err := r.ignored(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot find the %s files of %s: %w", sourceignore.IgnoreFile, r.Name, err)
	}
	patterns = append(patterns, sourceignore.ReadPatterns(strings.NewReader(ignore), nil)...)
	matcher := sourceignore.NewDefaultMatcher(nil, nil)
	if len(patterns) > 0 {
		matcher = sourceignore.NewMatcher(append(sourceignore.VCSPatterns(nil), patterns...))
	}
	return artifact{r.Files, matcher}, nil
}

// ignored returns the patterns of all .sourceignore files, those of a folder before
// those of the folders in it.
func (r *Repository) ignored(ctx context.Context) ([]gitignore.Pattern, error) {
	var patterns []gitignore.Pattern
	err := fs.WalkDir(r.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case !entry.IsDir():
			return nil
		case entry.Name() == ".git":
			return fs.SkipDir
		}
		found, err := r.ignoreFile(name)
		patterns = append(patterns, found...)
		return err
	})
	return patterns, err
}

// ignoreFile returns the patterns of the .sourceignore file of a folder, if it has one.
func (r *Repository) ignoreFile(folder string) ([]gitignore.Pattern, error) {
	file, err := r.Files.Open(path.Join(folder, sourceignore.IgnoreFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxIgnoreFile:
		return nil, fmt.Errorf("%s is no file of at most %d KiB", path.Join(folder, sourceignore.IgnoreFile), maxIgnoreFile>>10)
	}
	return sourceignore.ReadPatterns(io.LimitReader(file, maxIgnoreFile), domainOf(folder)), nil
}

// domainOf returns where the patterns of a folder count.
func domainOf(folder string) []string {
	if folder == "." {
		return nil
	}
	return strings.Split(folder, "/")
}

// artifact hides what an artifact does not have.
type artifact struct {
	files   fs.FS
	matcher gitignore.Matcher
}

var (
	_ fs.StatFS    = artifact{}
	_ fs.ReadDirFS = artifact{}
)

// Open implements fs.FS. A folder is read with ReadDir.
func (a artifact) Open(name string) (fs.File, error) {
	if err := a.check("open", name); err != nil {
		return nil, err
	}
	return a.files.Open(name)
}

// Stat implements fs.StatFS.
func (a artifact) Stat(name string) (fs.FileInfo, error) {
	if err := a.check("stat", name); err != nil {
		return nil, err
	}
	return fs.Stat(a.files, name)
}

// ReadDir implements fs.ReadDirFS.
func (a artifact) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := a.check("readdir", name); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(a.files, name)
	var kept []fs.DirEntry
	for _, entry := range entries {
		if a.keeps(path.Join(name, entry.Name()), entry.Type()) {
			kept = append(kept, entry)
		}
	}
	return kept, err
}

// check fails for what is not in the artifact, and for what only a link leads to.
func (a artifact) check(op, name string) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if info, err := fs.Lstat(a.files, folder); err != nil || !info.IsDir() {
			return &fs.PathError{Op: op, Path: name, Err: cmp.Or(err, fs.ErrNotExist)}
		}
	}
	info, err := fs.Lstat(a.files, name)
	if err != nil || name != "." && !a.keeps(name, info.Mode().Type()) {
		return &fs.PathError{Op: op, Path: name, Err: cmp.Or(err, fs.ErrNotExist)}
	}
	return nil
}

// keeps tells whether the artifact has a file, or a folder with what is in it. What a
// pattern leaves out of a folder another may take in again.
func (a artifact) keeps(name string, mode fs.FileMode) bool {
	isFolder := mode.IsDir()
	if !isFolder && !mode.IsRegular() {
		return false
	}
	if !a.matcher.Match(strings.Split(name, "/"), isFolder) {
		return true
	}
	if !isFolder {
		return false
	}
	entries, err := fs.ReadDir(a.files, name)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		if a.keeps(path.Join(name, entry.Name()), entry.Type()) {
			return true
		}
	}
	return false
}
