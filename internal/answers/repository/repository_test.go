// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

const layer = "apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: base}\n"

// write writes files below a folder.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func names(t *testing.T, r *Repository, paths ...string) string {
	t.Helper()
	found, err := r.Manifests(t.Context(), paths...)
	if err != nil {
		return err.Error()
	}
	var texts []string
	for _, m := range found {
		texts = append(texts, m.File+" "+m.Object.GetKind()+"/"+m.Object.GetName())
	}
	return strings.Join(texts, ", ")
}

func TestManifests(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"layers.yaml":                 layer + "---\n# nothing\n---\n" + strings.Replace(layer, "base", "apps", 1),
		"dev/layers.yml":              layer,
		"base/web.yaml":               "kind: HelmRelease\napiVersion: helm.toolkit.fluxcd.io/v2\nmetadata: {name: web, labels: {kraan.io/layer: base}}\n",
		".github/x.yaml":              layer,
		"chart/templates/layer.yaml":  "{{ if }}" + layer,
		"notes.txt":                   layer,
		"large.yaml":                  layer + strings.Repeat("# a comment\n", maxFile/12),
		"values-of-nobody/other.json": `{"apiVersion": "kraan.io/v1alpha1", "kind": "Platform", "metadata": {"name": "p"}}`,
	})
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "out.yaml")); err != nil {
		t.Fatal(err)
	}
	r, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	for path, want := range map[string]string{
		"":        "dev/layers.yml AddonsLayer/base, layers.yaml AddonsLayer/base, layers.yaml AddonsLayer/apps, values-of-nobody/other.json Platform/p",
		"dev":     "dev/layers.yml AddonsLayer/base",
		"./dev/":  "dev/layers.yml AddonsLayer/base",
		"nowhere": dir + " has no nowhere",
	} {
		paths := strings.Fields(path)
		if got := names(t, r, paths...); got != want {
			t.Errorf("below %q: %s, want %s", path, got, want)
		}
	}
	if got := names(t, r, "../x"); !strings.Contains(got, "invalid") {
		t.Errorf("a path leads out of the repository: %s", got)
	}
	write(t, dir, map[string]string{"bad.yaml": layer + "  wrong: [\n"})
	if got := names(t, r); !strings.Contains(got, "bad.yaml: ") || !strings.Contains(got, "line ") {
		t.Errorf("a file that cannot be parsed is not named: %s", got)
	}
}

func TestOpenGit(t *testing.T) {
	dir := t.TempDir()
	repository, err := git.PlainInit(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := repository.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	commit := func(files map[string]string) string {
		write(t, dir, files)
		for name := range files {
			if _, err := tree.Add(name); err != nil {
				t.Fatal(err)
			}
		}
		hash, err := tree.Commit("change", &git.CommitOptions{Author: &object.Signature{Name: "a", Email: "a@b.c", When: time.Unix(0, 0)}})
		if err != nil {
			t.Fatal(err)
		}
		return hash.String()
	}
	first := commit(map[string]string{"layers.yaml": layer})
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "out.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Add("out.yaml"); err != nil {
		t.Fatal(err)
	}
	second := commit(map[string]string{"apps/web.yaml": "kind: X\n", "layers.yaml": strings.Replace(layer, "base", "apps", 1)})
	write(t, dir, map[string]string{"layers.yaml": "not committed"})
	t.Chdir(filepath.Join(dir, "apps"))
	for name, want := range map[string][2]string{
		dir:      {"master@sha1:" + second, "layers.yaml AddonsLayer/apps"},
		"HEAD~1": {"HEAD~1@sha1:" + first, "layers.yaml AddonsLayer/base"},
		first:    {first + "@sha1:" + first, "layers.yaml AddonsLayer/base"},
		"master": {"master@sha1:" + second, "layers.yaml AddonsLayer/apps"},
	} {
		r, err := OpenGit(t.Context(), name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := names(t, r); r.Revision != want[0] || !strings.Contains(got, want[1]) {
			t.Errorf("%s: %s has %s, want %s", name, r.Revision, got, want)
		}
		if _, err := fs.ReadFile(r.Files, "out.yaml"); err == nil {
			t.Errorf("%s: a link leads out of the repository", name)
		}
		temp := r.temp
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(temp); err == nil {
			t.Errorf("%s: %s is left behind", name, temp)
		}
	}
	// A revision is one of the repository, and never a folder.
	for _, name := range []string{dir, ".", "../apps", "no-such-branch", "-x"} {
		if r, err := OpenRevision(t.Context(), dir, name); err == nil {
			t.Errorf("%s opens %s", name, r.Revision)
		}
	}
	if _, err := repository.CreateTag("v1", plumbing.NewHash(first), &git.CreateTagOptions{Message: "one", Tagger: &object.Signature{Name: "a", Email: "a@b.c"}}); err != nil {
		t.Fatal(err)
	}
	revisions, err := Revisions(t.Context(), filepath.Join(dir, "apps"), 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, revision := range revisions {
		got = append(got, revision.Name+" "+revision.Commit+" "+revision.Title)
	}
	if want := []string{"HEAD " + second[:12] + " change", "master " + second[:12] + " change", "v1 " + first[:12] + " change"}; !slices.Equal(got, want) {
		t.Errorf("the revisions are %q, want %q", got, want)
	}
	if few, err := Revisions(t.Context(), dir, 1); err != nil || len(few) != 1 {
		t.Errorf("of one revision %d are given: %v", len(few), err)
	}
	outside := t.TempDir()
	if _, err := Revisions(t.Context(), outside, 10); err == nil || InGit(outside) == nil || InGit(dir) != nil {
		t.Errorf("a folder in no repository has revisions: %v", err)
	}
	for name, want := range map[string]string{"no-such-branch": "the git repository has no no-such-branch", outside: "is in no git repository; --from-dir reads it as it is"} {
		if _, err := OpenGit(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	t.Chdir(outside)
	if _, err := OpenGit(t.Context(), "main"); err == nil || !strings.Contains(err.Error(), "is in no git repository") {
		t.Errorf("outside of any repository: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := OpenGit(ended, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("it goes on although it was interrupted: %v", err)
	}
}
