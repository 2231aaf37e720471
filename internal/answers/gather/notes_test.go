// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"strings"
	"testing"
)

// A plan of some layers says nothing of what is only about others.
func TestNotesOf(t *testing.T) {
	g := &Plan{}
	g.note("about all")
	g.noteOf([]string{"a"}, "about %s", "a")
	g.noteOf([]string{"b"}, "about %s", "b")
	g.noteOf([]string{"a"}, "about both")
	g.noteOf([]string{"b"}, "about both")
	g.noteOf([]string{"a"}, "said of a, and then of all")
	g.note("said of a, and then of all")
	g.note("about all, said again")
	g.noteOf([]string{"a"}, "about all, said again")
	for names, want := range map[string]string{
		"":    "about all; about a; about b; about both; said of a, and then of all; about all, said again",
		"a":   "about all; about a; about both; said of a, and then of all; about all, said again",
		"b":   "about all; about b; about both; said of a, and then of all; about all, said again",
		"c":   "about all; said of a, and then of all; about all, said again",
		"a b": "about all; about a; about b; about both; said of a, and then of all; about all, said again",
	} {
		if got := strings.Join(g.notesOf(strings.Fields(names)), "; "); got != want {
			t.Errorf("%s: %s", names, got)
		}
	}
}
