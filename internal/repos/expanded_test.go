// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/directories"
)

// checkMemory fails where a memory does not weigh what it keeps, or keeps more
// than it may.
func checkMemory(t rapid.TB, m *parsedCache) {
	t.Helper()
	var size, expanded int64
	count := 0
	seen := map[*parsed]bool{}
	for element := m.order.Front(); element != nil; element = element.Next() {
		p := element.Value.(*remembered).parsed
		size += entryWeight
		if seen[p] {
			continue
		}
		seen[p] = true
		size += p.weight
		if p.expansion != nil {
			expanded += p.expanded
			count++
		}
		if p.objects != nil && p.expansion == nil && p.manifests != nil {
			t.Fatal("manifests are kept that are not weighed")
		}
	}
	if size != m.size || size > m.max && m.order.Len() > 1 {
		t.Fatalf("weighs %d, is said to weigh %d, and may weigh %d", size, m.size, m.max)
	}
	if expanded != m.expandedSize || expanded > m.maxExpanded || count != m.expanded.Len() {
		t.Fatalf("%d of %d are expanded and weigh %d, are said to weigh %d, and may weigh %d", count, m.expanded.Len(), expanded, m.expandedSize, m.maxExpanded)
	}
}

// Whatever is added, asked for and forgotten: a directory is what was added, and
// a memory is bounded.
func TestMemoryProperty(t *testing.T) {
	var listings []*directories.Directory
	for _, count := range []int{0, 1, 2, 3, 5, 8} {
		text := ""
		for i := range count {
			text += "---\n" + fullRelease(fmt.Sprintf("r-%d-%d", count, i))
		}
		listings = append(listings, parsedFrom(t, "a.yaml", text))
	}
	rapid.Check(t, func(t *rapid.T) {
		m := newParsedCache(rapid.Int64Range(0, 300_000).Draw(t, "limit"))
		type known struct {
			*parsed
			want *directories.Directory
		}
		var all []known
		for range 30 {
			key := parsedKey{artifact: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "artifact"), path: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "path")}
			switch n := rapid.IntRange(0, 4).Draw(t, "operation"); {
			case n == 0 || len(all) == 0:
				want := rapid.SampledFrom(listings).Draw(t, "directory")
				all = append(all, known{m.add(key, newParsed(want, nil, basis{})), want})
			case n == 1: // again, and maybe after it was forgotten
				m.add(key, rapid.SampledFrom(all).Draw(t, "known").parsed)
			case n == 2 && m.byKey[key] != nil:
				m.remove(m.byKey[key])
			default:
				k := rapid.SampledFrom(all).Draw(t, "known")
				got, err := m.directory(k.parsed)
				if diff := cmp.Diff(k.want, got); diff != "" || err != nil {
					t.Fatalf("%v (-added +got):\n%s", err, diff)
				}
			}
			checkMemory(t, m)
		}
	})
}

// Asking for a digest expands nothing, and asking several times in a row expands one
// archive.
func TestDigestDoesNotExpand(t *testing.T) {
	store, origin := newStore(t, Options{}), newOrigin(t)
	artifact := origin.serve("x", archive(t, "a/r.yaml", release("a"), "b/r.yaml", "no: object\n", "c", ""))
	want, err := store.Directory(t.Context(), artifact, "a", builds.Build{})
	if err != nil {
		t.Fatal(err)
	}
	key := parsedKey{artifact: artifact.Digest, path: "a"}
	found, ok := store.parsed.get(key)
	if !ok {
		t.Fatal("it is not in memory")
	}
	store.parsed.dropExpanded(found)
	if digest, missing, err := store.Digest(t.Context(), artifact, "./a", builds.Build{}); digest != want.Digest || missing || err != nil {
		t.Errorf("digest %s, missing %t, %v", digest, missing, err)
	}
	if store.parsed.expanded.Len() != 0 {
		t.Error("a digest has cost the objects")
	}
	one, err := store.Directory(t.Context(), artifact, "a", builds.Build{})
	if diff := cmp.Diff(want, one); diff != "" || err != nil {
		t.Fatalf("%v (-before +after):\n%s", err, diff)
	}
	two, ok := store.ByDigest(want.Digest)
	if !ok || two.Manifests[0].Object != one.Manifests[0].Object || one.Manifests[0].Object == want.Manifests[0].Object {
		t.Error("it was not expanded once")
	}
	for path, want := range map[string]string{
		"b": "apiVersion: is missing", "c": "is a file", "none": "<nil>", "../out": "must stay inside the source",
	} {
		directory, wrong := store.Directory(t.Context(), artifact, path, builds.Build{})
		digest, missing, err := store.Digest(t.Context(), artifact, path, builds.Build{})
		if fmt.Sprint(err) != fmt.Sprint(wrong) || directory != nil && (digest != directory.Digest || missing != directory.Missing) || !strings.Contains(fmt.Sprint(wrong), want) {
			t.Errorf("%s: digest %s, missing %t, %v; the directory is %v, %v, want %q", path, digest, missing, err, directory, wrong, want)
		}
		var mistake, again *directories.ContentError
		if errors.As(wrong, &mistake) && errors.As(err, &again) && mistake == again {
			t.Errorf("%s: callers share one mistake", path)
		}
	}
	checkMemory(t, store.parsed)
}

// Callers that expand, evict and forget at once must all get their objects.
func TestConcurrentExpansion(t *testing.T) {
	const folders = 6
	var content []string
	for i := range folders {
		content = append(content, fmt.Sprintf("%d/r.yaml", i), fullRelease(fmt.Sprint("r", i)))
	}
	artifact := newOrigin(t).serve("x", archive(t, content...))
	// Some two directories may stay expanded, and all as JSON.
	store := newStore(t, Options{MaxParsed: 15_000 * expandedShare})
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 200 {
				n := (worker + i) % folders
				got, err := store.Directory(t.Context(), artifact, fmt.Sprint(n), builds.Build{})
				if err != nil || len(got.Manifests) != 1 || got.Manifests[0].Object.GetName() != fmt.Sprint("r", n) {
					t.Errorf("directory %d: %v %v", n, objs(got), err)
					return
				}
				if again, ok := store.ByDigest(got.Digest); !ok || !cmp.Equal(again.Manifests, got.Manifests) {
					t.Errorf("directory %d is another one by its digest", n)
					return
				}
			}
		})
	}
	all.Wait()
	if kept := store.parsed.expanded.Len(); kept < 1 || kept >= folders {
		t.Errorf("%d of %d directories are expanded: the test shows nothing", kept, folders)
	}
	checkMemory(t, store.parsed)
}
