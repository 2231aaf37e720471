// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var originKeys = Keys{Owner: "owner", Orphaned: "orphaned", CreatedFor: "created-for"}

func namespaceWith(owner, origin string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "a"}}}
	if owner != "" {
		obj.SetLabels(map[string]string{"owner": owner})
	}
	if origin != "" {
		obj.SetAnnotations(map[string]string{"created-for": origin})
	}
	return obj
}

// An object says for whom it was created from its creation on, and only where it is
// to; what was there before never says so.
func TestOrigin(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		notes    bool
		keys     Keys
		live     *unstructured.Unstructured
		want     string
		isForgot bool
	}{
		"created":              {reason: "it says for whom", notes: true, keys: originKeys, want: "base"},
		"created without":      {reason: "nobody asks who made it", keys: originKeys},
		"created, no such key": {reason: "these objects note no origin", notes: true},
		"applied":              {reason: "it goes on saying so", notes: true, keys: originKeys, live: namespaceWith("base", "base"), want: "base"},
		"moved":                {reason: "its first owner made it", notes: true, keys: originKeys, live: namespaceWith("base", "apps"), want: "apps"},
		"adopted":              {reason: "it was there before", notes: true, keys: originKeys, live: namespaceWith("base", "")},
		"left alone":           {reason: "nobody asks who made it", keys: originKeys, live: namespaceWith("base", "base")},
		"forgotten":            {reason: "nobody has owned it since", notes: true, keys: originKeys, live: namespaceWith("", "base"), want: "base", isForgot: true},
		"nobody's":             {reason: "there is nothing to forget", notes: true, keys: originKeys, live: namespaceWith("", "")},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Dependent{Object: ContentOf(namespaceWith("base", "")), NotesOrigin: tc.notes}
			var got *unstructured.Unstructured
			if tc.live == nil {
				got = d.Created("base", tc.keys)
			} else {
				got = d.Applied(tc.live, tc.keys)
				if forgotten := tc.keys.IsForgotten(tc.live); forgotten != tc.isForgot {
					t.Errorf("it is forgotten: %t", forgotten)
				}
			}
			if origin := got.GetAnnotations()["created-for"]; origin != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, origin, tc.want)
			}
			if diff := cmp.Diff(namespaceWith("base", ""), d.Manifest()); diff != "" {
				t.Errorf("what is wanted was changed:\n%s", diff)
			}
		})
	}
}

// An object that is let go no longer says for whom it was created: somebody else may have
// it since.
func TestReleaseForgetsTheOrigin(t *testing.T) {
	release := Action{Verb: VerbRelease}
	for keys, want := range map[Keys]map[string]any{originKeys: {"created-for": nil}, {Owner: "owner", Orphaned: "orphaned"}: {}} {
		metadata, _ := release.Patch("base", keys)["metadata"].(map[string]any)
		if diff := cmp.Diff(any(want), metadata["annotations"]); diff != "" {
			t.Errorf("annotations (-want +got):\n%s", diff)
		}
	}
	for _, verb := range []Verb{VerbAdopt, VerbMark, VerbUnmark} {
		metadata, _ := Action{Verb: verb}.Patch("base", originKeys)["metadata"].(map[string]any)
		if diff := cmp.Diff(any(map[string]any{}), metadata["annotations"]); diff != "" {
			t.Errorf("%s changes the origin:\n%s", verb, diff)
		}
	}
}
