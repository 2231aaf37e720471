// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// story returns what a seed does: the world after some commits, and their
// words.
func story(seed uint64, commits int) (*world, []string) {
	random := seeded(seed)
	w := newWorld(random, 3)
	var words []string
	for i := range commits {
		words = append(words, w.commit(random, time.Unix(int64(i), 0)))
	}
	return w, words
}

func TestOneSeedIsOneStory(t *testing.T) {
	_, first := story(7, 200)
	_, second := story(7, 200)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the same seed (-first +second):\n%s", diff)
	}
	if _, other := story(8, 200); slices.Equal(first, other) {
		t.Error("another seed tells the same")
	}
	for _, kind := range []string{"change ", "add ", "remove ", "move layer ", "move "} {
		if !slices.ContainsFunc(first, func(s string) bool { return strings.HasPrefix(s, kind) }) {
			t.Errorf("200 commits never %s", kind)
		}
	}
	random := seeded(7)
	if a, b := nextBlow(seeded(7)), nextBlow(random); !cmp.Equal(a, b) {
		t.Errorf("the same seed strikes %+v and %+v", a, b)
	}
}

// The record and the files must not differ, or the verdict is about nothing.
func TestFilesAreTheRecord(t *testing.T) {
	for seed := range uint64(20) {
		w, _ := story(seed, 60)
		files := w.files()
		listed := map[string]int{}
		for _, l := range w.Layers {
			if len(l.Releases) < fewest {
				t.Errorf("seed %d: layer %s has %d releases left", seed, l.Name, len(l.Releases))
			}
			for name, want := range l.Releases {
				listed[name]++
				obj := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(files[path.Join(l.directory(), name+".yaml")]), &obj.Object); err != nil {
					t.Fatal(err)
				}
				if got := contentOf(obj); got != want || obj.GetName() != name {
					t.Errorf("seed %d: %s is committed as %+v, want %+v", seed, name, got, want)
				}
			}
		}
		for name, life := range w.Lives {
			if last := life.Contents[len(life.Contents)-1]; w.home(name) != nil && w.home(name).Releases[name] != last {
				t.Errorf("seed %d: the record of %s ends with %+v", seed, name, last)
			}
			if (listed[name] == 1) != life.Removed.IsZero() || listed[name] > 1 {
				t.Errorf("seed %d: %s is listed %d times, removed %s", seed, name, listed[name], life.Removed)
			}
			seen := map[content]bool{}
			for _, c := range life.Contents {
				if seen[c] {
					t.Errorf("seed %d: %s has been given %+v twice", seed, name, c)
				}
				seen[c] = true
			}
		}
	}
}

// A layer's directory is there as long as the layer may still name it.
func TestBumpKeepsTheDirectoryBefore(t *testing.T) {
	w, _ := story(1, 0)
	base := w.layer("base")
	before := base.directory()
	w.Commits++
	w.bump(seeded(1), base)
	if base.directory() == before {
		t.Fatal("the directory has not changed")
	}
	for _, directory := range []string{before, base.directory()} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(w.files())), func(name string) bool { return strings.HasPrefix(name, directory+"/") }) {
			t.Errorf("%s is not there", directory)
		}
	}
	if want := []string{"base@" + base.version()}; !slices.Equal(w.dependsOn(w.layer("network")), want) {
		t.Errorf("network depends on %v, want %v", w.dependsOn(w.layer("network")), want)
	}
}

func TestBlows(t *testing.T) {
	random := seeded(3)
	struck := map[string]int{}
	for range 2000 {
		b := nextBlow(random)
		if len(b.Victims) == 0 || len(b.Victims) > 2 || b.Wait < 0 || b.Down < 0 || !slices.IsSortedFunc(b.Victims, func(x, y string) int { return order(x) - order(y) }) {
			t.Fatalf("%+v", b)
		}
		for _, name := range b.Victims {
			struck[name]++
		}
	}
	for _, v := range victims {
		if struck[v.name] < 100 {
			t.Errorf("%s was killed %d times of 2000", v.name, struck[v.name])
		}
	}
}
