// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Command mtimes gives each file of the tree a modification time that follows from its
// content, and each folder one that follows from the names in it.
//
// go test keeps the results of tests by the sizes and times of the files that they read. A
// clone, another branch and a generator that writes what was there all give files new times,
// and with these the tests would run again although nothing has changed. Ignored files keep
// their times.
package main

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintf(os.Stderr, "mtimes: %v\n", err)
		os.Exit(1)
	}
}

// run gives files and folders of a work tree their times. What has its time already is
// left alone.
func run(root string) error {
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("cannot list the files: %w", err)
	}
	folders := map[string][]string{}
	for _, name := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) { // deleted, and not committed yet
			continue
		}
		if err != nil {
			return err
		}
		if err := give(filepath.Join(root, name), content); err != nil {
			return err
		}
		for child := name; child != "."; child = path.Dir(child) {
			folders[path.Dir(child)] = append(folders[path.Dir(child)], path.Base(child))
		}
	}
	for name, children := range folders {
		slices.Sort(children)
		if err := give(filepath.Join(root, name), []byte(strings.Join(slices.Compact(children), "\n"))); err != nil {
			return err
		}
	}
	refresh := exec.Command("git", "update-index", "-q", "--refresh") // or git would read each file again
	refresh.Dir = root
	_ = refresh.Run() // it fails where a file is changed
	return nil
}

// give sets the time of a file that has a content: one of the years 2000 to 2019.
func give(name string, content []byte) error {
	info, err := os.Lstat(name)
	if err != nil || info.Mode()&fs.ModeSymlink != 0 {
		return err
	}
	const years = 20 * 365 * 24 * time.Hour
	sum := sha256.Sum256(content)
	since := time.Duration(binary.BigEndian.Uint64(sum[:8]) % uint64(years))
	at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(since)
	if info.ModTime().Equal(at) {
		return nil
	}
	return os.Chtimes(name, at, at)
}
