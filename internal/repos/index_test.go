// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/internal/layers"
)

// indexed returns the index of an artifact's files.
func indexed(files fstest.MapFS) *index {
	sums, folders := map[string]sum{}, map[string]bool{".": true}
	for name, file := range files {
		if file.Mode.IsDir() {
			folders[name] = true
			continue
		}
		sums[name] = sha256.Sum256(file.Data)
		folders[path.Dir(name)] = true
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
		Directory *layers.Directory
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
		read := func(artifact Artifact, path string) *layers.Directory {
			t.Helper()
			directory, err := store.Directory(t.Context(), artifact, path)
			if err != nil {
				t.Fatal(err)
			}
			return directory
		}
		a, b := read(first, "a"), read(first, "b")
		_, wrong := store.Directory(t.Context(), first, "c")
		size := store.memory.size
		if next := read(second, "a"); next.Manifests[0].Object != a.Manifests[0].Object || next.Revision != second.Revision {
			t.Errorf("restarted %t: what is the same was read again, or has revision %s", restarted, next.Revision)
		}
		if grown := store.memory.size - size; grown != entryWeight {
			t.Errorf("restarted %t: what is the same takes %d more", restarted, grown)
		}
		if next := read(second, "b"); next.Digest == b.Digest {
			t.Errorf("restarted %t: what has changed was not read", restarted)
		}
		if _, err := store.Directory(t.Context(), second, "c"); err == nil || err.Error() != wrong.Error() {
			t.Errorf("restarted %t: the mistake is %v, want %v", restarted, err, wrong)
		}
		if next := read(third, "b"); next.Digest != b.Digest {
			t.Errorf("restarted %t: what was changed back is not what it was", restarted)
		}
	}
}

// What is shared by several artifacts is weighed once, and no longer when the
// last of them is forgotten.
func TestWeightOfWhatIsShared(t *testing.T) {
	m := newMemory(1 << 30)
	shared := newParsed(&layers.Directory{Digest: "shared"}, nil, basis{question{name: "a"}: answer{}})
	shared.weight = 1000
	one, two := parsedKey{artifact: "1", path: "a"}, parsedKey{artifact: "2", path: "a"}
	m.add(one, shared)
	m.add(two, shared)
	m.add(two, shared)
	if want := int64(2*entryWeight + 1000); m.size != want {
		t.Errorf("weighs %d, want %d", m.size, want)
	}
	if last, ok := m.last("a"); !ok || last != shared {
		t.Error("the last one of the path is not found")
	}
	for _, key := range []parsedKey{one, two} {
		m.remove(m.byKey[key])
	}
	if _, ok := m.last("a"); ok || m.size != 0 || shared.keys != 0 {
		t.Errorf("weighs %d when all is forgotten", m.size)
	}
}

// The names of artifacts take a bounded amount of memory: the indexes that were
// made first go first.
func TestIndexesAreBounded(t *testing.T) {
	d := &disk{}
	many := map[string]sum{}
	for i := range maxIndexed / 2 {
		many[fmt.Sprintf("%06d", i)] = sum{}
	}
	var entries []*entry
	for range 4 {
		entries = append(entries, &entry{tree: tree{index: newIndex(many, map[string]bool{".": true})}})
		if d.index(entries[len(entries)-1]) == nil {
			t.Fatal("the index that was just made is gone")
		}
	}
	kept := 0
	for _, e := range entries {
		if d.index(e) != nil {
			kept++
		}
	}
	if kept != 1 || len(d.indexed) != 1 {
		t.Errorf("%d indexes of half the limit and the top each are kept", kept)
	}
}
