// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/objects"
)

// marks is what the verbs that do not write may change of an object.
type marks struct {
	Labels, Annotations map[string]string
	Suspend             string
}

func marksOf(live *unstructured.Unstructured) marks {
	return marks{Labels: live.GetLabels(), Annotations: live.GetAnnotations(), Suspend: field(live, "spec", "suspend")}
}

func TestMarks(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	held := `{"metadata":{"annotations":{"kraan/suspended-by-hold":"true"}},"spec":{"suspend":true}}`
	superseded := `{"metadata":{"annotations":{"kraan.io/superseded-by":"default/new"}},"spec":{"suspend":true}}`
	orphaned := `{"metadata":{"labels":{"orphaned":"2026-11-21T12.00.00Z"}}}`
	tests := map[string]struct {
		reason string
		// layer has the object, and prepare is what is done to it before.
		layer, prepare string
		verb           dependents.Verb
		// mark says who suspends it.
		mark string
		want marks
	}{
		"mark": {
			reason: "the moment is written as a label can have it", layer: owner, verb: dependents.VerbMark,
			want: marks{Labels: map[string]string{"kraan/layer": owner, "orphaned": "2026-11-21T12.00.00Z"}},
		},
		"unmark": {
			reason: "the owner stays", layer: owner, prepare: orphaned, verb: dependents.VerbUnmark,
			want: marks{Labels: map[string]string{"kraan/layer": owner}},
		},
		"release": {
			reason: "the object stays, without owner", layer: owner, prepare: orphaned, verb: dependents.VerbRelease,
		},
		"adopt": {
			reason: "it changes hands and nothing else", layer: other, prepare: orphaned, verb: dependents.VerbAdopt,
			want: marks{Labels: map[string]string{"kraan/layer": owner}},
		},
		"supersede": {
			reason: "it is taken over, suspended, and says for whom", layer: other, prepare: orphaned, verb: dependents.VerbSupersede,
			want: marks{
				Labels:      map[string]string{"kraan/layer": owner},
				Annotations: map[string]string{"kraan.io/superseded-by": "default/new"}, Suspend: "true",
			},
		},
		"suspend": {
			reason: "it says that a hold suspended it", layer: owner, verb: dependents.VerbSuspend, mark: "kraan/suspended-by-hold",
			want: marks{
				Labels:      map[string]string{"kraan/layer": owner},
				Annotations: map[string]string{"kraan/suspended-by-hold": "true"}, Suspend: "true",
			},
		},
		"suspend for another reason": {
			reason: "it says which", layer: owner, verb: dependents.VerbSuspend, mark: "kraan/suspended-by-loss",
			want: marks{
				Labels:      map[string]string{"kraan/layer": owner},
				Annotations: map[string]string{"kraan/suspended-by-loss": "true"}, Suspend: "true",
			},
		},
		"resume after a hold": {
			reason: "the annotation goes with the suspension", layer: owner, prepare: held, verb: dependents.VerbResume,
			want: marks{Labels: map[string]string{"kraan/layer": owner}},
		},
		"resume what was superseded": {
			reason: "its successor is no longer listed", layer: owner, prepare: superseded, verb: dependents.VerbResume,
			want: marks{Labels: map[string]string{"kraan/layer": owner}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			release := ownedBy(test.layer, f.release("podinfo"))
			f.create(release, "somebody")
			if test.prepare != "" {
				f.patch(release, dependents.MarksManager, test.prepare)
			}
			before := f.live(release)
			action := on(test.verb, before)
			action.Moment, action.Successor = noon, objects.ID{Namespace: "default", Name: "new"}
			if test.verb == dependents.VerbSuspend {
				action.Mark = test.mark
			}
			result := f.done(action)[0]
			if diff := cmp.Diff([]string{"PATCH"}, f.requests.taken()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			after := f.live(release)
			if diff := cmp.Diff(test.want, marksOf(after)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			if after.GetUID() != before.GetUID() || result.ResourceVersion != after.GetResourceVersion() {
				t.Errorf("result is %+v, want resourceVersion %s", result, after.GetResourceVersion())
			}
			f.outdated(action)
		})
	}
}

// A write takes the marks off as well, since what is wanted is no orphan.
func TestWriteClearsMarks(t *testing.T) {
	f := newFixture(t)
	release := f.release("podinfo")
	f.create(ownedBy(other, release), "somebody")
	f.patch(release, dependents.MarksManager, `{"metadata":{"labels":{"orphaned":"x"},"annotations":{"kraan.io/superseded-by":"default/new"}}}`)
	action := seen(writeOf(owner, release), f.live(release))
	action.From = []string{other}
	f.done(action)
	if diff := cmp.Diff(marks{Labels: map[string]string{"kraan/layer": owner}}, marksOf(f.live(release))); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
}

func TestDelete(t *testing.T) {
	f := newFixture(t)
	release := ownedBy(owner, f.release("podinfo"))
	first := f.create(release, "somebody")

	f.patch(release, "somebody", `{"metadata":{"labels":{"kraan/layer":"apps"}}}`)
	f.outdated(on(dependents.VerbDelete, first))
	if f.gone(release) {
		t.Fatal("an object was deleted that had changed since it was seen")
	}
	f.must(f.others.Delete(f.ctx, f.live(release)))
	f.create(release, "somebody")
	f.outdated(on(dependents.VerbDelete, first))
	if f.gone(release) {
		t.Fatal("an object was deleted that is another one than was seen")
	}
	action := on(dependents.VerbDelete, f.live(release))
	f.requests.taken()
	f.done(action)
	if diff := cmp.Diff([]string{"DELETE"}, f.requests.taken()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if !f.gone(release) {
		t.Error("the object is still there")
	}
	f.outdated(action)
}

// Actions on what was not there when the plan was made find nothing to do.
func TestMarksNeedAnObjectThatWasSeen(t *testing.T) {
	for _, verb := range []dependents.Verb{dependents.VerbDisown, dependents.VerbMark, dependents.VerbRelease, dependents.VerbDelete} {
		t.Run(string(verb), func(t *testing.T) {
			f := newFixture(t)
			action := dependents.Action{Verb: verb, ID: objects.IDOf(f.release("podinfo"))}
			f.outdated(action)
			created := f.create(ownedBy(owner, f.release("podinfo")), "somebody")
			f.outdated(action)
			if live := f.live(created); live.GetResourceVersion() != created.GetResourceVersion() {
				t.Error("an object was changed that the plan had not seen")
			}
		})
	}
}

func TestActionsOnOneObjectFollowEachOther(t *testing.T) {
	f := newFixture(t)
	release := f.release("podinfo")
	f.create(withOwners(ownedBy(owner, release), "AddonsLayer"), "kraan")
	f.patch(release, dependents.MarksManager, `{"metadata":{"labels":{"orphaned":"x"},"annotations":{"kraan/suspended-by-hold":"true"}},"spec":{"suspend":true}}`)
	live := f.live(release)
	results := f.done(
		on(dependents.VerbDisown, live), on(dependents.VerbResume, live), on(dependents.VerbUnmark, live),
		seen(writeOf(owner, release), live), on(dependents.VerbMark, live), on(dependents.VerbDelete, live),
	)
	for i, result := range results[:5] {
		if !result.Changed && result.Action.Verb != dependents.VerbWrite {
			t.Errorf("action %d, %s, has changed nothing", i, result.Action.Verb)
		}
	}
	if !f.gone(release) {
		t.Error("the object is still there")
	}
}
