// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"testing"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/objects"
)

func TestNeedsOthers(t *testing.T) {
	goesBackTo := func(dir *directories.Directory) func(*Observation) { return func(o *Observation) { o.Restored = dir } }
	tests := map[string]struct {
		reason string
		layer  *v1alpha1.AddonsLayer
		dir    *directories.Directory
		change func(*Observation)
		want   bool
	}{
		"all as listed":        {"nothing changes hands", layer(), firstDir, lives(live("a"), live("b")), false},
		"a release is lacking": {"somebody else may be about to make it", layer(), firstDir, lives(live("a")), true},
		"listed no more":       {"somebody else may list it", layer(), firstDir, lives(live("a"), live("b"), live("c")), true},
		"of another layer":     {"that one may list it, too", layer(), firstDir, lives(live("a"), live("b", of("apps"))), true},
		"nobody's":             {"it may be taken", layer(), firstDir, lives(live("a"), live("b", of(""))), false},
		"cannot be read":       {"nothing is known to be listed", layer(), nil, lives(live("a")), true},
		"being deleted":        {"everything leaves", layer(deleted), firstDir, lives(live("a"), live("b")), true},
		"goes back to the same": {
			"nothing leaves", layer(), firstDir, func(o *Observation) { lives(live("a"), live("b"))(o); goesBackTo(firstDir)(o) }, false,
		},
		"goes back to less": {
			"what the directory adds leaves, although that lists it", layer(), secondDir,
			func(o *Observation) { lives(live("a"), live("b"), live("c"))(o); goesBackTo(firstDir)(o) }, true,
		},
		"goes back to more": {
			"somebody else may have got what the directory lacks", layer(), firstDir,
			func(o *Observation) { lives(live("a"), live("b"))(o); goesBackTo(secondDir)(o) }, true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := observation(test.layer, test.dir, test.change)
			if got := o.NeedsOthers(); got != test.want {
				t.Errorf("%t: %s", got, test.reason)
			}
		})
	}
}

// A layer that goes back does not delete what another one lists by now, although
// its own directory lists it still.
func TestGoingBackKeepsWhatOthersList(t *testing.T) {
	back := &v1alpha1.Rollback{To: "4", Version: "2.0.0", Revision: newRevision, Digest: secondDir.Digest}
	l := failingLayer(0, func(l *v1alpha1.AddonsLayer) {
		l.Status.Rollback = back
		back.Generation = l.Generation
		for i := range l.Status.Resources {
			if l.Status.Resources[i].Name == "c" {
				l.Status.Resources[i].Status, l.Status.Resources[i].LastTransitionTime = objects.StatusOrphaned, longAgo
			}
		}
	})
	o := observation(l, secondDir, lives(live("a"), live("b"), live("c", marked)))
	o.Restored = firstDir
	if !o.NeedsOthers() {
		t.Fatal("what others list is not asked for")
	}
	if got := Decide(o).Plan.Of(dependents.VerbDelete); len(got) != 1 || got[0].ID != releaseID("c") {
		t.Fatalf("nobody lists it, and it is not deleted: %v", got)
	}
	o.Others.Listed = map[objects.ID][]dependents.Claim{releaseID("c"): {{Owner: "apps", Origin: "apps/c.yaml", ID: releaseID("c")}}}
	if got := Decide(o).Plan.Of(dependents.VerbDelete); len(got) != 0 {
		t.Errorf("it is deleted while layer apps lists it: %v", got)
	}
}
