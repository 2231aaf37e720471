// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"

	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/objects"
)

// What a layer listed last is known for as long as it cannot be read.
func TestWhatWasListedLast(t *testing.T) {
	l := NewListings()
	lists := func(reason, want string) {
		t.Helper()
		listing, known := l.Last("apps")
		if known != (want != "") {
			t.Fatalf("%s: it is known: %t", reason, known)
		}
		if _, listed := listing.Files[objects.IDOf(directoriestest.HelmRelease("x").Object)]; listed {
			t.Fatalf("%s: it lists what it never did", reason)
		}
		if known && listing.Files[directoriestest.HelmRelease(want).ID()] == "" {
			t.Errorf("%s: it lists %v, not %s", reason, listing.Files, want)
		}
	}
	one, two := directoriestest.Of("one", directoriestest.HelmRelease("a")), directoriestest.Of("two", directoriestest.HelmRelease("b"))
	lists("nothing was read", "")
	l.Update("apps", one)
	lists("its own look", "a")
	l.Update("apps", nil)
	l.Update("apps", nil)
	lists("it cannot be read any more", "a")
	if owners := l.WhoLists(directoriestest.HelmRelease("a").ID(), ""); len(owners) > 0 {
		t.Errorf("%v is woken for what is not read", owners)
	}
	l.Of("apps", two)
	l.Update("apps", nil)
	lists("another layer has read it", "b")
	l.Update("apps", one)
	lists("its own look again", "a")
	l.Forget("apps")
	lists("it is gone", "")
}
