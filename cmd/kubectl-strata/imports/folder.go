// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/strata-project/strata/internal/answers/adoption"
)

// folder is where files are written to.
type folder struct {
	path          string
	force, dryRun bool
	// mode of the files.
	mode fs.FileMode
}

// write writes all files, or none: a file that is there and holds something else is
// not overwritten without force. It tells how many were written.
func (f folder) write(files []adoption.File) (int, error) {
	if len(files) == 0 || f.dryRun {
		return 0, nil
	}
	there, err := os.ReadDir(f.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(there) == 0 {
		return len(files), f.create(files)
	}
	root, err := os.OpenRoot(f.path)
	if err != nil {
		return 0, fmt.Errorf("cannot open the folder: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing is buffered
	changed, err := f.changed(root, files)
	if err != nil || len(changed) == 0 {
		return 0, err
	}
	return len(changed), f.replace(root, changed)
}

// create makes the folder with all files in it, at one stroke.
func (f folder) create(files []adoption.File) (err error) {
	target := filepath.Clean(f.path)
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return fmt.Errorf("cannot make the folder: %w", err)
	}
	staging, err := os.MkdirTemp(filepath.Dir(target), ".strata-import-")
	if err != nil {
		return fmt.Errorf("cannot make the folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staging)) }()
	root, err := os.OpenRoot(staging)
	if err != nil {
		return fmt.Errorf("cannot open the folder: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing is buffered
	if err := f.stage(root, ".", files); err != nil {
		return err
	}
	if err := os.Chmod(staging, f.mode|0o110); err != nil {
		return fmt.Errorf("cannot make the folder: %w", err)
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot make the folder: %w", err)
	}
	if err := os.Rename(staging, target); err != nil {
		return fmt.Errorf("cannot make the folder: %w", err)
	}
	return nil
}

// stage writes files below a folder of the root.
func (f folder) stage(root *os.Root, below string, files []adoption.File) error {
	for _, file := range files {
		staged := path.Join(below, file.Path)
		if err := root.MkdirAll(path.Dir(staged), 0o750); err != nil {
			return fmt.Errorf("cannot write %s: %w", file.Path, err)
		}
		if err := root.WriteFile(staged, file.Data, f.mode); err != nil {
			return fmt.Errorf("cannot write %s: %w", file.Path, err)
		}
	}
	return nil
}

// changed returns the files that are not there as they are to be.
func (f folder) changed(root *os.Root, files []adoption.File) ([]adoption.File, error) {
	var changed []adoption.File
	var inTheWay []string
	for _, file := range files {
		there, err := root.ReadFile(filepath.FromSlash(file.Path))
		switch {
		case err == nil && bytes.Equal(there, file.Data):
			continue
		case err == nil && !f.force:
			inTheWay = append(inTheWay, file.Path)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("cannot look at what is in the folder %s: %w", f.path, err)
		}
		changed = append(changed, file)
	}
	if len(inTheWay) > 0 {
		return nil, fmt.Errorf("%s holds something else in %s: choose another folder, or use --force to overwrite", f.path, strings.Join(inTheWay, ", "))
	}
	return changed, nil
}

// replace stages all files beside those that are there, and moves them in place
// when all are written. When a move fails, those before are taken back.
func (f folder) replace(root *os.Root, files []adoption.File) (err error) {
	const staging, former = ".strata-import/new", ".strata-import/old"
	defer func() { err = errors.Join(err, root.RemoveAll(path.Dir(staging))) }()
	if err := f.stage(root, staging, files); err != nil {
		return err
	}
	var undo []func()
	for _, file := range files {
		back, err := move(root, path.Join(staging, file.Path), file.Path, path.Join(former, file.Path))
		undo = append(undo, back)
		if err != nil {
			for _, back := range slices.Backward(undo) {
				back()
			}
			return fmt.Errorf("cannot write %s, and left everything as it was: %w", file.Path, err)
		}
	}
	return nil
}

// move puts a staged file in its place, keeps the one that was there, and returns
// what takes that back.
func move(root *os.Root, staged, place, kept string) (func(), error) {
	made := missingFolders(root, path.Dir(place))
	hadOne := false
	back := func() {
		if hadOne {
			_ = root.Rename(kept, place) // as well as it can be
		}
		for _, folder := range slices.Backward(made) {
			_ = root.Remove(folder)
		}
	}
	if err := root.MkdirAll(path.Dir(place), 0o750); err != nil {
		return back, err
	}
	if _, err := root.Lstat(place); err == nil {
		if err := root.MkdirAll(path.Dir(kept), 0o750); err != nil {
			return back, err
		}
		if err := root.Rename(place, kept); err != nil {
			return back, err
		}
		hadOne = true
	}
	if err := root.Rename(staged, place); err != nil {
		return back, err
	}
	return func() {
		_ = root.Remove(place)
		back()
	}, nil
}

// missingFolders returns the folders on the way to one that are not there, from
// the top.
func missingFolders(root *os.Root, name string) []string {
	var missing []string
	for ; name != "." && name != "/"; name = path.Dir(name) {
		if _, err := root.Lstat(name); err == nil {
			break
		}
		missing = append([]string{name}, missing...)
	}
	return missing
}
