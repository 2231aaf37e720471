// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/internal/builds"
)

const settingsMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n"

// session returns one that is closed with the test.
func session(t *testing.T) *Session {
	t.Helper()
	s := NewSession()
	t.Cleanup(s.Close)
	return s
}

func TestAllMistakesOfADirectoryAreFound(t *testing.T) {
	files := fstest.MapFS{
		"addons/a.yaml":    {Data: []byte("kind: [")},
		"addons/b.yaml":    {Data: []byte(settingsMap)},
		"addons/c.yaml":    {Data: []byte("---\nkind: ConfigMap\n---\n" + strings.Replace(settingsMap, "settings", "others", 1))},
		"addons/d.yaml":    {Data: []byte(settingsMap)},
		"addons/.hidden/e": {Data: []byte("[")},
	}
	directory, mistakes, err := session(t).ParseAll(t.Context(), files, "addons", builds.Build{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, mistake := range mistakes {
		got = append(got, mistake.Error())
	}
	want := []string{
		"addons/a.yaml:1: cannot be read as YAML: did not find expected node content",
		"addons/c.yaml:2: apiVersion: is missing: every object needs it",
		"addons/d.yaml:1: ConfigMap settings is there twice, first in addons/b.yaml:1: remove one",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mistakes, -want +got:\n%s", diff)
	}
	if len(directory.Manifests) != 2 {
		t.Errorf("%d objects are left, want those of the good files and documents, 2", len(directory.Manifests))
	}
	if _, err := Parse(t.Context(), files, "addons"); err == nil || err.Error() != want[0] {
		t.Errorf("Parse says %v, want the first mistake", err)
	}
}

func TestAPathOutsideIsAMistake(t *testing.T) {
	_, mistakes, err := session(t).ParseAll(t.Context(), fstest.MapFS{}, "../secrets", builds.Build{})
	if err != nil || len(mistakes) != 1 || mistakes[0].Field != "spec.source.path" {
		t.Errorf("got %v, %v", mistakes, err)
	}
}

func TestPositionsOfFields(t *testing.T) {
	text := "# first\n---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: a\n    labels: {x.y/z: b}\n  list:\n  - 1\n  - two\n"
	documents, mistakes := Documents("a.yaml", []byte(text))
	if len(mistakes) > 0 || len(documents) != 1 {
		t.Fatalf("got %d documents and %v", len(documents), mistakes)
	}
	for field, want := range map[string][2]int{
		"":                         {6, 3},
		"metadata":                 {8, 3},
		"metadata.name":            {9, 5},
		"metadata.labels[x.y/z]":   {10, 14},
		"list[1]":                  {13, 5},
		"list[7]":                  {11, 3},
		"list[-1]":                 {11, 3},
		"metadata.namespace.below": {8, 3},
	} {
		if line, column := documents[0].Position(field); line != want[0] || column != want[1] {
			t.Errorf("%q is at %d:%d, want %d:%d", field, line, column, want[0], want[1])
		}
	}
}

func TestDocumentsLeavesOutWhatIsNoObject(t *testing.T) {
	for text, want := range map[string]int{
		"a: 1\n":                            0,
		"- 1\n":                             0,
		"":                                  0,
		settingsMap:                         1,
		"just text\n":                       0,
		settingsMap + "---\n" + settingsMap: 2,
	} {
		if documents, mistakes := Documents("a.yaml", []byte(text)); len(documents) != want || len(mistakes) > 0 {
			t.Errorf("%q has %d documents and %v, want %d", text, len(documents), mistakes, want)
		}
	}
}

func TestDocumentsRefusesBombs(t *testing.T) {
	text := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 'b'; i < 'k'; i++ {
		text += string(i) + ": &" + string(i) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(i-1)+", ", 10), ", ") + "]\n"
	}
	if _, mistakes := Documents("bomb.yaml", []byte(text)); len(mistakes) != 1 || !strings.Contains(mistakes[0].Message, "aliases") {
		t.Errorf("got %v", mistakes)
	}
}

// What is too many is said once, and not of each object that comes after it.
func TestTooManyObjectsAreOneMistake(t *testing.T) {
	var text strings.Builder
	for i := range maxObjects + 500 {
		fmt.Fprintf(&text, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%d, namespace: b}\n---\n", i)
	}
	_, mistakes, err := session(t).ParseAll(t.Context(), files("base/a.yaml", text.String()), "./base", builds.Build{})
	if err != nil || len(mistakes) != 1 || !strings.Contains(mistakes[0].Message, "is one object more than the 10000") {
		t.Errorf("there are %d mistakes, %v", len(mistakes), err)
	}
}
