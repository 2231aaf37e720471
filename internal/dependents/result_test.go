// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecord(t *testing.T) {
	settings := configID("s")
	da, ds := want(a, digest("v2")), want(settings, digest("v2"))
	before := []Entry{had(a), had(settings)}
	cases := map[string]struct {
		reason string
		result Result
		want   []Entry
	}{
		"written": {
			reason: "the generation says when it changes", result: Result{Action: Action{Verb: VerbWrite, ID: a, Wanted: &da}, Generation: 5, ResourceVersion: "9"},
			want: []Entry{had(a, func(e *Entry) { e.Digest, e.Generation = "v2", 5 }), had(settings)},
		},
		"written without generation": {
			reason: "the version says when it changes", result: Result{Action: Action{Verb: VerbWrite, ID: settings, Wanted: &ds}, ResourceVersion: "9"},
			want: []Entry{had(a), had(settings, func(e *Entry) { e.Digest, e.ResourceVersion = "v2", "9" })},
		},
		"failed": {
			reason: "what failed is not there", result: Result{Action: Action{Verb: VerbWrite, ID: a, Wanted: &da}, Err: errors.New("no")}, want: before,
		},
		"outdated": {
			reason: "nothing was done", result: Result{Action: Action{Verb: VerbWrite, ID: a, Wanted: &da}, Outdated: true}, want: before,
		},
		"marked": {
			reason: "only a write leads to content", result: Result{Action: Action{Verb: VerbMark, ID: a}, Generation: 5}, want: before,
		},
		"unknown": {
			reason: "what is not in the inventory is not put there", result: Result{Action: Action{Verb: VerbWrite, ID: b, Wanted: &da}}, want: before,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Record(before, []Result{tc.result})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff([]Entry{had(a), had(settings)}, before); diff != "" {
				t.Errorf("the inventory that was given is changed:\n%s", diff)
			}
		})
	}
}

func TestHasOwner(t *testing.T) {
	cases := map[string]struct {
		reason, apiVersion, kind string
		want                     bool
	}{
		"former owner":  {"any version of its group", "example.com/v3", "Primary", true},
		"another kind":  {"of the same group", "example.com/v1", "Other", false},
		"another group": {"with the same kind", "example.org/v1", "Primary", false},
		"no group":      {"a core kind has none", "v1", "Primary", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := object(a, formerlyOwned)
			refs := obj.GetOwnerReferences()
			refs[0].APIVersion, refs[0].Kind = tc.apiVersion, tc.kind
			obj.SetOwnerReferences(refs)
			if got := HasOwner(obj, testKeys); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}
