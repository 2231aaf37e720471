// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

// cached returns an object with managedFields, decoded as a cache decodes it.
func cached(t *rapid.T, entries []metav1.ManagedFieldsEntry) *unstructured.Unstructured {
	data, err := json.Marshal(map[string]any{
		"apiVersion": version, "kind": "Widget", "metadata": map[string]any{"name": "web", "managedFields": entries},
	})
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return obj
}

// drawnFields draws what an entry has, as FieldsV1 writes it.
func drawnFields(t *rapid.T, label string, depth int) string {
	if depth == 0 {
		return "{}"
	}
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
		"f:metadata", "f:spec", "f:data", "f:status", "f:replicas", "f:template", "f:annotations", "f:labels",
		"f:kubectl.kubernetes.io/restartedAt", `k:{\"name\":\"a\"}`, `v:\"x\"`,
	}), 0, 4, rapid.ID[string]).Draw(t, label)
	parts := make([]string, 0, len(names)+1)
	if len(names) > 0 && rapid.Bool().Draw(t, label+" itself") && depth < 4 {
		parts = append(parts, `".":{}`)
	}
	for i, name := range names {
		parts = append(parts, fmt.Sprint(`"`, name, `":`, drawnFields(t, fmt.Sprint(label, ".", i), depth-1)))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// What a cache keeps says the same as all managedFields: which fields are Strata's, and
// whether people have any that Strata takes back. Trimmed twice it is the same.
func TestNoteIsThatOfTheEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := []metav1.ManagedFieldsEntry{
			entry("strata", apply, drawnFields(t, "strata", 4)),
			entry("kubectl-edit", update, drawnFields(t, "kubectl", 4)),
			entry("some-controller", update, drawnFields(t, "other", 3)),
			ofSubresource("scale", entry("kubectl", update, `{"f:spec":{"f:replicas":{}}}`)),
		}
		obj := cached(t, entries)
		whole := NoteOf(obj)
		Trim(obj)
		trimmed := NoteOf(obj)
		if whole.Own != "" && trimmed != whole {
			t.Fatalf("%+v became %+v", whole, trimmed)
		}
		if left := len(obj.GetManagedFields()); left > 1 {
			t.Fatalf("%d entries are left", left)
		}
		Trim(obj)
		if again := NoteOf(obj); again != trimmed {
			t.Fatalf("%+v became %+v", trimmed, again)
		}
		typed := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: Trimmed(Trimmed(entries))}}
		if got := NoteOf(typed); got != trimmed {
			t.Fatalf("typed it is %+v, and %+v decoded", got, trimmed)
		}
		if whole.Own == "" {
			return
		}
		// The rule for what is taken back says the same of every field but what leads to one.
		set, err := Of(entries[1])
		if err != nil {
			t.Fatal(err)
		}
		if taken := (Rule{}).Taken(entries[1], set.Leaves()); taken.Empty() == trimmed.Hands {
			t.Fatalf("people are said to have some: %t, and %s is taken back of %s", trimmed.Hands, taken, set)
		}
	})
}

// A field more or less is another note; the order of entries, an entry that is divided, and
// the number of replicas are not.
func TestNoteTellsFieldsApart(t *testing.T) {
	of := func(entries ...metav1.ManagedFieldsEntry) string {
		return NoteOf(&metav1.ObjectMeta{ManagedFields: entries}).Own
	}
	base := of(entry("strata", apply, `{"f:spec":{"f:a":{},"f:b":{"f:c":{}}}}`))
	for name, same := range map[string]string{
		"in another order": of(entry("strata", apply, `{"f:spec":{"f:b":{"f:c":{}},"f:a":{}}}`)),
		"in two entries":   of(entry("strata", update, `{"f:spec":{"f:a":{}}}`), entry("strata", apply, `{"f:spec":{"f:a":{},"f:b":{"f:c":{}}}}`)),
		"with replicas":    of(entry("strata", apply, `{"f:spec":{"f:a":{},"f:replicas":{},"f:b":{"f:c":{}}}}`)),
		"beside others":    of(entry("x", apply, `{"f:spec":{"f:z":{}}}`), entry("strata", apply, `{"f:spec":{"f:a":{},"f:b":{"f:c":{}}}}`)),
	} {
		if same != base {
			t.Errorf("%s it is %s, want %s", name, same, base)
		}
	}
	for name, other := range map[string]string{
		"a field less":     of(entry("strata", apply, `{"f:spec":{"f:a":{}}}`)),
		"a field deeper":   of(entry("strata", apply, `{"f:spec":{"f:a":{},"f:b":{"f:c":{"f:d":{}}}}}`)),
		"names run on":     of(entry("strata", apply, `{"f:spec":{"f:a":{},"f:bf:c":{}}}`)),
		"a map on its own": of(entry("strata", apply, `{"f:spec":{"f:a":{},"f:b":{".":{},"f:c":{}}}}`)),
	} {
		if other == base {
			t.Errorf("%s: it is the same", name)
		}
	}
}

// An entry that the API server would take is never read as a note.
func TestNobodyWritesANote(t *testing.T) {
	for _, operation := range []metav1.ManagedFieldsOperationType{update, apply} {
		forged := Note{Own: "12345678"}.entry()
		forged.Operation = operation
		if note := NoteOf(&metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{forged}}); note != (Note{}) {
			t.Errorf("%s is read as %+v", operation, note)
		}
	}
}
