// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/dependents"
)

// noted returns the action that writes an object which says for whom it is created.
func noted(obj *unstructured.Unstructured) dependents.Action {
	action := writeOf(owner, obj)
	action.Wanted.NotesOrigin = true
	return action
}

// origin returns for whom an object says that it was created; "" for nobody.
func (f *fixture) origin(obj *unstructured.Unstructured) string {
	f.Helper()
	return f.live(obj).GetAnnotations()[testKeys.CreatedFor]
}

// What Strata creates says so, whatever is written to it later and whoever has it.
func TestOriginStays(t *testing.T) {
	f := newFixture(t)
	obj := f.configMap("settings", "a", "0")
	f.done(noted(obj))
	for i := range 3 {
		if got := f.origin(obj); got != owner {
			t.Fatalf("after %d changes it was created for %q", i, got)
		}
		obj = f.configMap("settings", "a", fmt.Sprint(i+1))
		f.done(seen(noted(obj), f.live(obj)))
		if got := field(f.live(obj), "data", "a"); got != fmt.Sprintf("%q", fmt.Sprint(i+1)) {
			t.Fatalf("change %d is not there: %s", i+1, got)
		}
	}
	before := f.live(obj)
	f.done(seen(noted(obj), before))
	if after := f.live(obj); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("an apply without a difference writes %v", after.GetAnnotations())
	}
	f.patch(obj, dependents.MarksManager, `{"metadata":{"labels":{"kraan/layer":"`+other+`"},"annotations":{"`+testKeys.CreatedFor+`":"`+other+`"}}}`)
	moved := seen(noted(obj), f.live(obj))
	moved.From = []string{other}
	f.done(moved)
	if live := f.live(obj); f.origin(obj) != other || live.GetLabels()[testKeys.Owner] != owner {
		t.Errorf("it has moved, and is %v", live.Object["metadata"])
	}
	f.done(on(dependents.VerbRelease, f.live(obj)))
	if got := f.origin(obj); got != "" {
		t.Errorf("it is let go, and was created for %q", got)
	}
}

// What was there before Strata wrote it never says that Strata created it: neither
// where the plan has seen it, nor where somebody is faster than the request that
// creates it, nor where it says so itself and nobody owns it.
func TestOriginIsOfCreationAlone(t *testing.T) {
	for name, test := range map[string]struct{ seen, forgotten, createdOnce bool }{
		"seen": {seen: true}, "not seen": {}, "forgotten": {seen: true, forgotten: true}, "forgotten and not seen": {forgotten: true},
		"created once": {forgotten: true, createdOnce: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			obj := f.configMap("settings", "a", "theirs")
			live := f.create(obj, "somebody")
			if test.forgotten {
				f.patch(obj, "somebody", `{"metadata":{"annotations":{"`+testKeys.CreatedFor+`":"`+owner+`"}}}`)
				live = f.live(obj)
			}
			action := noted(f.configMap("settings", "a", "ours"))
			if test.createdOnce {
				action.Wanted.Mode = dependents.ModeCreateOnce
			}
			if test.seen {
				action = seen(action, live)
			}
			f.done(action)
			after := f.live(obj)
			if after.GetLabels()[testKeys.Owner] != owner || f.origin(obj) != "" {
				t.Errorf("it is adopted, and is %v", after.Object["metadata"])
			}
			f.done(seen(noted(f.configMap("settings", "a", "later")), after))
			if got := f.origin(obj); got != "" {
				t.Errorf("it was created for %q", got)
			}
		})
	}
}

// What the API server makes itself of a manifest has no origin where nobody asks.
func TestOriginIsNotForAll(t *testing.T) {
	f := newFixture(t)
	obj := f.configMap("settings", "a", "1")
	f.done(writeOf(owner, obj))
	if annotations := f.live(obj).GetAnnotations(); len(annotations) > 0 {
		t.Errorf("it has %v", annotations)
	}
}
