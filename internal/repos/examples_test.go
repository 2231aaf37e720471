// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A new version of Strata makes of every directory what the one before has made of it:
// another digest would roll everything out again. The digests are those of the first
// version that had builds of its own for some layers; UPDATE_DIGESTS=1 writes them anew,
// for new examples.
func TestExamplesKeepTheirDigests(t *testing.T) {
	const golden = "testdata/examples.digests"
	root := os.DirFS("../..")
	var lines []string
	err := fs.WalkDir(root, "examples", func(name string, item fs.DirEntry, err error) error {
		if err != nil || !item.IsDir() {
			return err
		}
		directory, err := Parse(t.Context(), root, "./"+name)
		if err != nil {
			lines = append(lines, name+" is refused")
			return nil
		}
		lines = append(lines, name+" "+directory.Digest)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(lines, "\n") + "\n"
	if os.Getenv("UPDATE_DIGESTS") != "" {
		if err := os.MkdirAll(path.Dir(golden), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
