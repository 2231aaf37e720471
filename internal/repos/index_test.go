// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/directories"
)

// indexed returns the index of an artifact's files.
func indexed(files fstest.MapFS) *index {
	sums := map[string]stored{}
	var folders []string
	for name, file := range files {
		if file.Mode.IsDir() {
			folders = append(folders, name)
			continue
		}
		sums[name] = stored{size: int64(len(file.Data)), sum: sha256.Sum256(file.Data)}
	}
	return newIndex(sums, folders)
}

func TestBasis(t *testing.T) {
	kustomization := "resources: [../base]\n"
	before := files("layers/a/r.yaml", release("a"), "layers/a/deep/s.yaml", release("s"), "layers/b/r.yaml", release("b"),
		"top/kustomization.yaml", kustomization, "base/kustomization.yaml", "resources: [r.yaml]\n", "base/r.yaml", release("base"), "README.md", "")
	tests := map[string]struct {
		path   string
		change func(fstest.MapFS)
		same   bool
	}{
		"nothing":                         {"layers/a", func(fstest.MapFS) {}, true},
		"another layer":                   {"layers/a", func(f fstest.MapFS) { f["layers/b/r.yaml"].Data = []byte("x") }, true},
		"a new layer beside it":           {"layers/a", func(f fstest.MapFS) { f["layers/c/r.yaml"] = &fstest.MapFile{} }, true},
		"a file":                          {"layers/a", func(f fstest.MapFS) { f["layers/a/r.yaml"].Data = []byte("x") }, false},
		"a file further down":             {"layers/a", func(f fstest.MapFS) { f["layers/a/deep/s.yaml"].Data = []byte("x") }, false},
		"a new file":                      {"layers/a", func(f fstest.MapFS) { f["layers/a/t.yaml"] = &fstest.MapFile{} }, false},
		"a new folder":                    {"layers/a", func(f fstest.MapFS) { f["layers/a/new/t.yaml"] = &fstest.MapFile{} }, false},
		"a file that is gone":             {"layers/a", func(f fstest.MapFS) { delete(f, "layers/a/r.yaml") }, false},
		"a file that is a folder":         {"layers/a", func(f fstest.MapFS) { f["layers/a/r.yaml"].Mode = fs.ModeDir }, false},
		"the folder is gone":              {"layers/a", func(f fstest.MapFS) { delete(f, "layers/a/r.yaml"); delete(f, "layers/a/deep/s.yaml") }, false},
		"a kustomization appears":         {"layers/a", func(f fstest.MapFS) { f["layers/a/kustomization.yaml"] = &fstest.MapFile{} }, false},
		"what nobody reads":               {"layers/a", func(f fstest.MapFS) { f["README.md"].Data = []byte("x") }, true},
		"what a kustomization leads to":   {"top", func(f fstest.MapFS) { f["base/r.yaml"].Data = []byte("x") }, false},
		"beside what it leads to":         {"top", func(f fstest.MapFS) { f["base/other.yaml"] = &fstest.MapFile{} }, true},
		"a layer that was never there":    {"layers/none", func(f fstest.MapFS) { f["layers/b/r.yaml"].Data = []byte("x") }, true},
		"one that was not there is there": {"layers/none", func(f fstest.MapFS) { f["layers/none/r.yaml"] = &fstest.MapFile{} }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			recorder := newRecorder(before)
			if _, err := Parse(t.Context(), recorder, test.path); err != nil {
				t.Fatal(err)
			}
			read := recorder.basis(indexed(before))
			after := fstest.MapFS{}
			for name, file := range before {
				changed := *file
				after[name] = &changed
			}
			test.change(after)
			if same := read.holds(indexed(after)); same != test.same {
				t.Errorf("the directory counts as the same: %t, want %t", same, test.same)
			}
		})
	}
	if newRecorder(before).basis(nil) != nil || basis(nil).holds(indexed(before)) || (basis{}).holds(nil) {
		t.Error("a directory of which nothing is known counts as the same")
	}
}

// Whatever a directory follows from, and whatever has changed: where the basis
// holds, reading it again gives the same.
func TestBasisAgainstReadingAgain(t *testing.T) {
	names := []string{
		"a/r.yaml", "a/s.yml", "a/deep/t.yaml", "a/.hidden/u.yaml", "a/kustomization.yaml", "a/values.txt", "b/r.yaml",
		"b/kustomization.yaml", "base/r.yaml", "base/kustomization.yaml", "base", "a", "a/deep",
	}
	contents := []string{
		release("one"), release("two"), "no: object\n", "resources: [r.yaml]\n", "resources: [../base, r.yaml]\n", "resources: [../../out]\n",
		"configMapGenerator: [{name: c, files: [values.txt]}]\n", "text",
	}
	draw := func(t *rapid.T, tree fstest.MapFS, count int) {
		for range count {
			name := rapid.SampledFrom(names).Draw(t, "name")
			delete(tree, name)
			if rapid.IntRange(0, 3).Draw(t, "keep") > 0 {
				tree[name] = &fstest.MapFile{Data: []byte(rapid.SampledFrom(contents).Draw(t, "content")), Mode: 0o600}
			}
		}
		for name := range tree { // a name below a file cannot be
			for above := path.Dir(name); above != "."; above = path.Dir(above) {
				delete(tree, above)
			}
		}
	}
	type outcome struct {
		Directory *directories.Directory
		Error     string
	}
	held := 0
	read := func(tree fs.FS, name string) outcome {
		directory, err := Parse(context.Background(), tree, name)
		return outcome{directory, fmt.Sprint(err)}
	}
	rapid.Check(t, func(t *rapid.T) {
		before := fstest.MapFS{}
		draw(t, before, 8)
		recorder, name := newRecorder(before), rapid.SampledFrom([]string{"a", "b", ".", "none"}).Draw(t, "path")
		was := read(recorder, name)
		follows := recorder.basis(indexed(before))
		after := maps.Clone(before)
		draw(t, after, rapid.IntRange(0, 2).Draw(t, "changes"))
		if !follows.holds(indexed(after)) {
			return
		}
		held++
		if diff := cmp.Diff(was, read(after, name)); diff != "" {
			t.Fatalf("it reads otherwise (-before +after) in %v:\n%s", slices.Sorted(maps.Keys(after)), diff)
		}
	})
	if held == 0 {
		t.Error("no basis has held: the test shows nothing")
	}
}

// Of the next artifact only what differs is read, what is the same takes no
// more memory, and a process that starts anew does not change that.
func TestNextArtifact(t *testing.T) {
	origin, options := newOrigin(t), Options{Dir: t.TempDir()}
	content := func(b string) []string {
		return []string{"a/r.yaml", release("a"), "b/r.yaml", release(b), "c/r.yaml", "no: object\n"}
	}
	first := origin.serve("1", archive(t, content("b")...))
	second := origin.serve("2", archive(t, content("other")...))
	third := origin.serve("3", archive(t, content("b")...))
	for _, restarted := range []bool{false, true} {
		store := newStore(t, options)
		read := func(artifact Artifact, path string) *directories.Directory {
			t.Helper()
			directory, err := store.Directory(t.Context(), artifact, path, builds.Build{})
			if err != nil {
				t.Fatal(err)
			}
			return directory
		}
		a, b := read(first, "a"), read(first, "b")
		_, wrong := store.Directory(t.Context(), first, "c", builds.Build{})
		size := store.parsed.size
		if next := read(second, "a"); next.Manifests[0].Object != a.Manifests[0].Object || next.Revision != second.Revision {
			t.Errorf("restarted %t: what is the same was read again, or has revision %s", restarted, next.Revision)
		}
		if grown := store.parsed.size - size; grown != entryWeight {
			t.Errorf("restarted %t: what is the same takes %d more", restarted, grown)
		}
		if next := read(second, "b"); next.Digest == b.Digest {
			t.Errorf("restarted %t: what has changed was not read", restarted)
		}
		_, again := store.Directory(t.Context(), second, "c", builds.Build{})
		for _, err := range []error{wrong, again} {
			if _, message := mistake(err); message != "c/r.yaml:1: apiVersion: is missing: every object needs it" {
				t.Errorf("restarted %t: the mistake is %q", restarted, message)
			}
		}
		if next := read(third, "b"); next.Digest != b.Digest {
			t.Errorf("restarted %t: what was changed back is not what it was", restarted)
		}
	}
}

// What is shared by several artifacts is weighed once, and no longer when the
// last of them is forgotten.
func TestWeightOfWhatIsShared(t *testing.T) {
	m := newParsedCache(1 << 30)
	shared := newParsed(&directories.Directory{Digest: "shared"}, nil, basis{question{name: "a"}: answer{}})
	shared.weight = 1000
	one, two := parsedKey{artifact: "1", path: "a"}, parsedKey{artifact: "2", path: "a"}
	m.add(one, shared)
	m.add(two, shared)
	m.add(two, shared)
	if want := int64(2*entryWeight + 1000); m.size != want {
		t.Errorf("weighs %d, want %d", m.size, want)
	}
	if last, ok := m.last(parsedKey{path: "a"}); !ok || last != shared {
		t.Error("the last one of the path is not found")
	}
	for _, key := range []parsedKey{one, two} {
		m.remove(m.byKey[key])
	}
	if _, ok := m.last(parsedKey{path: "a"}); ok || m.size != 0 || shared.keys != 0 {
		t.Errorf("weighs %d when all is forgotten", m.size)
	}
}

// The names of artifacts take a bounded amount of memory: the indexes that were
// used longest ago go first, and are read again.
func TestIndexesAreBounded(t *testing.T) {
	dir := t.TempDir()
	d := &disk{}
	small := indexed(files("a", "a"))
	data, err := small.marshal()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, treeName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	entries := make([]*entry, 4)
	for i := range entries {
		large := indexed(files("a", "a"))
		large.weight = maxIndexed/2 - 1000
		entries[i] = &entry{path: dir, index: large}
		if _, err := d.indexOf(entries[i]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.indexOf(entries[2]); err != nil {
		t.Fatal(err)
	}
	if entries[0].index != nil || entries[1].index != nil || entries[2].index == nil || entries[3].index == nil || len(d.indexed) != 2 {
		t.Errorf("%d indexes of nearly half the limit each are kept", len(d.indexed))
	}
	again, err := d.indexOf(entries[0])
	if err != nil || again.digest() != small.digest() || entries[3].index == nil || entries[2].index == nil {
		t.Errorf("the index that was forgotten is not read again: %v", err)
	}
}

// What is written down of an index is read back, and nothing else is.
func TestIndexIsWrittenDown(t *testing.T) {
	content, index := unpacked(t, "a/r.yaml", "one", "a/empty", "", "b", "three", "a/deep/s.yaml", "four")
	data, err := index.marshal()
	if err != nil {
		t.Fatal(err)
	}
	read, err := parseIndex(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(index, read, cmp.AllowUnexported(*index, stored{}, folder{}, child{})); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
	if err := read.verify(bytes.NewReader(content)); err != nil {
		t.Error(err)
	}
	for _, damaged := range []struct {
		content []byte
		want    string
	}{
		{content[1:], "a/r.yaml has changed"},
		{content[:len(content)-1], "a/deep/s.yaml: EOF"},
		{append(slices.Clone(content), 'x'), "there is more than its files"},
		{bytes.ToUpper(content), "a/r.yaml has changed"},
	} {
		if err := read.verify(bytes.NewReader(damaged.content)); err == nil || err.Error() != damaged.want {
			t.Errorf("%q: %v, want %q", damaged.content, err, damaged.want)
		}
	}
	for _, change := range [][3]string{
		{`"name":"b"`, `"name":"../b"`, `it cannot hold "../b"`},
		{`"name":"b"`, `"name":"a/r.yaml"`, `it cannot hold "a/r.yaml"`},
		{`"name":"b"`, `"name":"a"`, `"a" is a file and a folder`},
		{`"name":"b"`, `"name":"c"`, `its names have changed`},
		{`"size":3`, `"size":-3`, `it cannot hold "`},
		{`"size":3`, `"size":9223372036854775807`, `it cannot hold "`},
		{`"a/deep"`, `"/a"`, `it cannot hold folder "/a"`},
		{`"sum":"`, `"sum":"00`, `66 digits are no sum`},
		{`"digest":"`, `"digest":"0`, `its names have changed`},
	} {
		if _, err := parseIndex([]byte(strings.Replace(string(data), change[0], change[1], 1))); err == nil || !strings.Contains(err.Error(), change[2]) {
			t.Errorf("%s instead of %s: %v, want %q", change[1], change[0], err, change[2])
		}
	}
}

// unpacked returns the content and the index of an artifact of names and
// contents.
func unpacked(t *testing.T, pairs ...string) ([]byte, *index) {
	t.Helper()
	var content bytes.Buffer
	index, err := untar(bytes.NewReader(archive(t, pairs...)), &content, DefaultMaxArtifact)
	if err != nil {
		t.Fatal(err)
	}
	return content.Bytes(), index
}

func TestPackedFiles(t *testing.T) {
	content, index := unpacked(t, "a/r.yaml", "one", "a/empty", "", "b", "three", "a/deep/s.yaml", "four")
	packed := packedFS{content: bytes.NewReader(content), index: index}
	if err := fstest.TestFS(packed, "a/r.yaml", "a/empty", "b", "a/deep/s.yaml"); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"a/r.yaml": "one", "a/empty": "", "b": "three", "a/deep/s.yaml": "four"} {
		if got, err := fs.ReadFile(packed, name); err != nil || string(got) != want {
			t.Errorf("%s holds %q, want %q: %v", name, got, want, err)
		}
	}
	for name, want := range map[string]error{"c": fs.ErrNotExist, "b/c": fs.ErrNotExist, "../a": fs.ErrInvalid, "/a": fs.ErrInvalid, "a/": fs.ErrInvalid} {
		if _, err := packed.Open(name); !errors.Is(err, want) {
			t.Errorf("%s is opened: %v, want %v", name, err, want)
		}
		if _, err := packed.ReadDir(name); !errors.Is(err, want) {
			t.Errorf("%s is read as a folder: %v, want %v", name, err, want)
		}
	}
	if _, err := packed.ReadDir("b"); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file is read as a folder: %v", err)
	}
	if _, err := fs.ReadFile(packed, "a"); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a folder is read as a file: %v", err)
	}
}
