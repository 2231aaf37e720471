// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/internal/answers/adoption"
)

// written returns all files below a folder.
func written(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		found[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestFolderIsWrittenWholeOrNotAtAll(t *testing.T) {
	one := []adoption.File{{Path: "a/one.yaml", Data: []byte("1")}, {Path: "b/two.yaml", Data: []byte("2")}}
	into := filepath.Join(t.TempDir(), "deep", "folder")
	at := folder{path: into, mode: 0o640}
	if n, err := at.write(one); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := at.write(one); n != 0 || err != nil {
		t.Errorf("what is there is written again: %d, %v", n, err)
	}
	two := []adoption.File{{Path: "a/one.yaml", Data: []byte("other")}, {Path: "c/three.yaml", Data: []byte("3")}}
	if _, err := at.write(two); err == nil || !strings.Contains(err.Error(), "a/one.yaml") || !strings.Contains(err.Error(), "--force") {
		t.Errorf("%v", err)
	}
	want := map[string]string{"a/one.yaml": "1", "b/two.yaml": "2"}
	if diff := cmp.Diff(want, written(t, into)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// The second move fails, because a folder is in its way.
	if err := os.MkdirAll(filepath.Join(into, "z"), 0o750); err != nil {
		t.Fatal(err)
	}
	at.force = true
	blocked := append(slices.Clone(two), adoption.File{Path: "b/two.yaml/deeper.yaml", Data: []byte("x")})
	if _, err := at.write(blocked); err == nil {
		t.Error("a file was taken for a folder")
	}
	if diff := cmp.Diff(want, written(t, into)); diff != "" {
		t.Errorf("half of it is written, -want +got:\n%s", diff)
	}
	// As when somebody else writes there at the same time.
	root, err := os.OpenRoot(into)
	if err != nil {
		t.Fatal(err)
	}
	if err := at.replace(root, blocked); err == nil || !strings.Contains(err.Error(), "left everything as it was") {
		t.Errorf("a file was taken for a folder: %v", err)
	}
	if err := root.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, written(t, into)); diff != "" {
		t.Errorf("half of it is written, -want +got:\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(into, "c")); err == nil {
		t.Error("a folder is left")
	}
	if n, err := at.write(two); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	want["a/one.yaml"], want["c/three.yaml"] = "other", "3"
	if diff := cmp.Diff(want, written(t, into)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// A link leads out of the folder.
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(into, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := at.write([]adoption.File{{Path: "link/x.yaml", Data: []byte("x")}}); err == nil || len(written(t, outside)) > 0 {
		t.Errorf("it was followed: %v", err)
	}
}
