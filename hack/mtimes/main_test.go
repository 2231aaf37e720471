// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Files with one content have one time wherever and whenever they were written, and a folder's
// follows from the names in it. Nothing else is touched, and git sees no change.
func TestTimesFollowFromContents(t *testing.T) {
	t.Parallel()
	tree := func(files map[string]string) string {
		t.Helper()
		root := t.TempDir()
		git(t, root, "init", "--quiet")
		for name, content := range files {
			write(t, root, name, content)
		}
		git(t, root, "add", ".")
		git(t, root, "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "-m", "all")
		write(t, root, "new.txt", "new")
		if err := run(root); err != nil {
			t.Fatal(err)
		}
		return root
	}
	files := map[string]string{"a/one.txt": "1", "a/b/two.txt": "2", "same.txt": "1", ".gitignore": "made/\n", "made/by.hand": "x"}
	first, second := tree(files), tree(files)
	files["a/b/three.txt"], files["a/one.txt"] = "3", "one"
	third := tree(files)
	for _, name := range []string{"a", "a/b", "a/one.txt", "a/b/two.txt", "same.txt", "new.txt", "."} {
		if at := timeOf(t, first, name); !at.Equal(timeOf(t, second, name)) || at.Year() >= 2020 {
			t.Errorf("%s: %s in one clone, %s in another one", name, at, timeOf(t, second, name))
		}
		changed := name == "a/b" || name == "a/one.txt"
		if changed == timeOf(t, first, name).Equal(timeOf(t, third, name)) {
			t.Errorf("%s: changed is %v, and the times are %s and %s", name, changed, timeOf(t, first, name), timeOf(t, third, name))
		}
	}
	if timeOf(t, first, "same.txt") != timeOf(t, first, "a/one.txt") {
		t.Error("two files of one content have two times")
	}
	if timeOf(t, first, "made/by.hand").Year() < 2020 {
		t.Error("a file that git ignores was touched")
	}
	if out := git(t, first, "status", "--porcelain"); out != "?? new.txt\n" {
		t.Errorf("git sees changes: %s", out)
	}
	if err := os.Remove(filepath.Join(first, "same.txt")); err != nil {
		t.Fatal(err)
	}
	if err := run(first); err != nil {
		t.Errorf("a file is deleted: %v", err)
	}
}

func write(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func timeOf(t *testing.T, root, name string) time.Time {
	t.Helper()
	info, err := os.Stat(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

func git(t *testing.T, root string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir = root
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}
