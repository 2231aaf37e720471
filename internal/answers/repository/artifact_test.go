// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// artifactOf returns the files that an artifact has, and what is in each folder.
func artifactOf(t *testing.T, dir, ignore string) string {
	t.Helper()
	r, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	files, err := r.Artifact(t.Context(), ignore)
	if err != nil {
		return err.Error()
	}
	var found []string
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = append(found, name)
			_, err = fs.ReadFile(files, name)
		}
		return err
	})
	if err != nil {
		t.Errorf("what is listed cannot be read: %v", err)
	}
	// What is hidden cannot be had by its name either.
	listed := " " + strings.Join(found, " ") + " "
	err = fs.WalkDir(r.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		_, opened := files.Open(name)
		_, stated := fs.Stat(files, name)
		if hidden := !strings.Contains(listed, " "+name+" "); hidden != errors.Is(opened, fs.ErrNotExist) || hidden != errors.Is(stated, fs.ErrNotExist) {
			t.Errorf("%s is hidden: %v, and its opening fails with %v, and its stat with %v", name, hidden, opened, stated)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return strings.Join(found, " ")
}

// The rules are those of source-controller; that it makes the same of them is for the
// end-to-end test of the plan.
func TestArtifact(t *testing.T) {
	files := map[string]string{
		"base/web.yaml": "x", "base/logo.png": "x", "base/deep/a.yaml": "x", "base/deep/b.yaml": "x", ".github/ci.yaml": "x", ".gitignore": "x",
		"apps/.flux.yaml": "x", "apps/shop.yaml": "x",
	}
	for name, test := range map[string]struct {
		ignore string
		files  map[string]string
		want   string
	}{
		"by default pictures and what is for CI stay out": {want: "apps/shop.yaml base/deep/a.yaml base/deep/b.yaml base/web.yaml"},
		"patterns take the place of the defaults": {
			ignore: "/apps\n", want: ".github/ci.yaml base/deep/a.yaml base/deep/b.yaml base/logo.png base/web.yaml",
		},
		"a pattern may take in again what is in a folder": {ignore: "/*\n!/base/deep\n", want: "base/deep/a.yaml base/deep/b.yaml"},
		"a file counts for its folder": {
			files: map[string]string{"base/.sourceignore": "# no pattern\n\n*.yaml\n"},
			want:  ".github/ci.yaml apps/.flux.yaml apps/shop.yaml base/.sourceignore base/logo.png",
		},
		"a folder in it decides after it": {
			files:  map[string]string{".sourceignore": "*.yaml\n", "base/deep/.sourceignore": "!b.yaml\n"},
			ignore: "*.png\n.sourceignore\n", want: "base/deep/b.yaml",
		},
		"spec.ignore decides last": {
			files:  map[string]string{".sourceignore": "/base\n/.*\n"},
			ignore: "!/base/web.yaml\n", want: "apps/.flux.yaml apps/shop.yaml base/web.yaml",
		},
		"what is not understood hides nothing": {ignore: "[\n", want: ".github/ci.yaml apps/.flux.yaml apps/shop.yaml base/deep/a.yaml base/deep/b.yaml base/logo.png base/web.yaml"},
		"a file that is too large": {
			files: map[string]string{".sourceignore": strings.Repeat("# a comment\n", maxIgnoreFile/12+1)},
			want:  ".sourceignore is no file of at most 1024 KiB",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, files)
			write(t, dir, test.files)
			for link, to := range map[string]string{"base/link.yaml": "web.yaml", "linked": "base", "out": "/etc"} {
				if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			got := artifactOf(t, dir, test.ignore)
			if strings.Contains(test.want, " is no file") {
				if !strings.HasSuffix(got, test.want) {
					t.Errorf("got %s, want %s", got, test.want)
				}
			} else if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestArtifactThroughLinks(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"base/web.yaml": "x"})
	if err := os.Symlink("base", filepath.Join(dir, "linked")); err != nil {
		t.Fatal(err)
	}
	r, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	files, err := r.Artifact(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"linked", "linked/web.yaml", "base/web.yaml/more", "nowhere"} {
		if _, err := fs.Stat(files, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("stat of %s: %v", name, err)
		}
	}
	if _, err := fs.Stat(files, "../x"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a path leads out: %v", err)
	}
	if _, err := fs.ReadDir(files, "linked"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link is listed: %v", err)
	}
}
