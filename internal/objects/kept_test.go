// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package objects_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/objects/objectstest"
)

func finalized(names ...string) objectstest.Change {
	return func(o *unstructured.Unstructured) { o.SetFinalizers(names) }
}

func TestKeptBy(t *testing.T) {
	namespace := func(changes ...objectstest.Change) *unstructured.Unstructured {
		return objectstest.Live(objects.ID{Kind: "Namespace", Name: "demo"}, changes...)
	}
	cases := map[string]struct {
		reason string
		live   *unstructured.Unstructured
		want   string
	}{
		"nothing":    {"it goes at once", objectstest.Config("a"), ""},
		"finalizers": {"each is named, in the order in which the object has them", objectstest.Config("a", finalized("example.com/b", "example.com/a")), "example.com/b, example.com/a"},
		"many":       {"most of them say enough", objectstest.Config("a", finalized("a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "a/7")), "a/1, a/2, a/3, a/4, a/5, 2 more finalizers"},
		"namespace": {
			"it says what is left in it, and what keeps that",
			namespace(
				finalized("example.com/stuck"),
				objectstest.Conditioned("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", "Some content in the namespace has finalizers remaining: example.com/db in 1 resource instances"),
				objectstest.Conditioned("NamespaceContentRemaining", "True", "SomeResourcesRemain", "Some resources are remaining: databases.example.com has 1 resource instances"),
				objectstest.Conditioned("NamespaceDeletionContentFailure", "False", "ContentDeleted", "All content successfully deleted"),
			),
			"example.com/stuck, NamespaceContentRemaining (Some resources are remaining: databases.example.com has 1 resource instances), " +
				"NamespaceFinalizersRemaining (Some content in the namespace has finalizers remaining: example.com/db in 1 resource instances)",
		},
		"conditions of another kind": {"they say nothing of what is left", objectstest.Config("a", objectstest.Conditioned("NamespaceContentRemaining", "True", "", "x")), ""},
		"nonsense": {"others write a status", namespace(func(o *unstructured.Unstructured) {
			o.Object["status"] = map[string]any{"conditions": []any{"x", map[string]any{"type": 7, "status": "True"}}}
		}), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := objects.KeptBy(tc.live); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestGoing(t *testing.T) {
	free, kept := objectstest.Config("a"), objectstest.Config("a", finalized("example.com/stuck"))
	for _, tc := range []struct {
		live           *unstructured.Unstructured
		is, then, want string
	}{
		{free, "is being removed", "", "is being removed"},
		{kept, "is being removed", "", "is being removed, kept by example.com/stuck"},
		{free, "is being deleted", " and will be created again", "is being deleted and will be created again"},
		{kept, "is being deleted", " and will be created again", "is being deleted, kept by example.com/stuck, and will be created again"},
		{kept, "is being removed", ", and what it installed stays", "is being removed, kept by example.com/stuck, and what it installed stays"},
	} {
		if got := objects.Going(tc.live, tc.is, tc.then); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}
