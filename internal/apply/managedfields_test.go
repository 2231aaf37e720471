// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

const (
	update = metav1.ManagedFieldsOperationUpdate
	apply  = metav1.ManagedFieldsOperationApply
)

func entry(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: "helm.toolkit.fluxcd.io/v2",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func ofSubresource(name string, e metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
	e.Subresource = name
	return e
}

func managedBy(entries ...metav1.ManagedFieldsEntry) *unstructured.Unstructured {
	live := newRelease("default", "podinfo")
	live.SetManagedFields(entries)
	return live
}

func TestFoldManagedFields(t *testing.T) {
	tests := map[string]struct {
		reason  string
		strict  bool
		live    []metav1.ManagedFieldsEntry
		want    []metav1.ManagedFieldsEntry
		changed bool
	}{
		"nothing": {reason: "there is nothing to move"},
		"settled": {
			reason: "what is applied and what belongs to others in metadata stays as it is", strict: true,
			live: []metav1.ManagedFieldsEntry{
				entry("strata", apply, `{"f:spec":{"f:interval":{}}}`),
				entry("helm-controller", update, `{"f:metadata":{"f:finalizers":{}}}`),
			},
		},
		"created by POST": {
			reason:  "the applier takes back what it created by other means",
			live:    []metav1.ManagedFieldsEntry{entry("strata", update, `{"f:data":{"f:a":{}}}`)},
			want:    []metav1.ManagedFieldsEntry{entry("strata", apply, `{"f:data":{"f:a":{}}}`)},
			changed: true,
		},
		"created and applied": {
			reason: "both are put together",
			live: []metav1.ManagedFieldsEntry{
				entry("strata", update, `{"f:data":{"f:a":{}}}`), entry("strata", apply, `{"f:data":{"f:b":{}}}`),
			},
			want:    []metav1.ManagedFieldsEntry{entry("strata", apply, `{"f:data":{"f:a":{},"f:b":{}}}`)},
			changed: true,
		},
		"others, not strict": {
			reason: "a ConfigMap may have more than what is applied",
			live: []metav1.ManagedFieldsEntry{
				entry("strata", apply, `{"f:data":{"f:a":{}}}`), entry("kubectl-edit", update, `{"f:spec":{"f:b":{}}}`),
			},
		},
		"others, strict": {
			reason: "what is below spec is taken, the rest and suspend are left", strict: true,
			live: []metav1.ManagedFieldsEntry{
				entry("strata", apply, `{"f:spec":{"f:interval":{}}}`),
				entry("kubectl-edit", update, `{"f:metadata":{"f:annotations":{"f:x":{}}},"f:spec":{"f:suspend":{},"f:values":{"f:a":{"f:b":{}}}}}`),
			},
			want: []metav1.ManagedFieldsEntry{
				entry("kubectl-edit", update, `{"f:metadata":{"f:annotations":{"f:x":{}}},"f:spec":{"f:suspend":{}}}`),
				entry("strata", apply, `{"f:spec":{"f:interval":{},"f:values":{"f:a":{"f:b":{}}}}}`),
			},
			changed: true,
		},
		"another applier, strict": {
			reason: "who has nothing left is no manager any more", strict: true,
			live:    []metav1.ManagedFieldsEntry{entry("kustomize-controller", apply, `{"f:spec":{"f:timeout":{}}}`)},
			want:    []metav1.ManagedFieldsEntry{entry("strata", apply, `{"f:spec":{"f:timeout":{}}}`)},
			changed: true,
		},
		"status": {
			reason: "a subresource is another matter", strict: true,
			live: []metav1.ManagedFieldsEntry{
				ofSubresource("status", entry("helm-controller", update, `{"f:spec":{"f:odd":{}},"f:status":{"f:conditions":{}}}`)),
			},
		},
		"the whole of spec": {
			reason: "spec itself is not a field that could be taken back", strict: true,
			live: []metav1.ManagedFieldsEntry{entry("kubectl", update, `{"f:spec":{}}`)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, changed, err := foldManagedFields(managedBy(test.live...), test.strict)
			if err != nil {
				t.Fatal(err)
			}
			if changed != test.changed {
				t.Errorf("changed is %t: %s", changed, test.reason)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

// FuzzFoldManagedFields checks that no field gets lost, that what is not taken
// stays with its manager, and that there is nothing to move a second time.
func FuzzFoldManagedFields(f *testing.F) {
	f.Add([]byte(`{"f:data":{"f:a":{}}}`), []byte(`{"f:spec":{"f:suspend":{},"f:values":{"f:a":{".":{}}}}}`), true)
	f.Add([]byte(`{}`), []byte(`{"f:spec":{".":{},"k:{\"name\":\"x\"}":{}},"f:metadata":{"f:labels":{}}}`), true)
	f.Add([]byte(`{"f:spec":{"v:1":{}}}`), []byte(`{"f:spec":{"i:0":{}}}`), false)
	f.Fuzz(func(t *testing.T, own, others []byte, strict bool) {
		for _, fields := range [][]byte{own, others} {
			if !bytes.HasPrefix(fields, []byte("{")) || !json.Valid(fields) {
				return // the API server has nothing of the kind
			}
		}
		live := managedBy(entry("strata", update, string(own)), entry("kubectl", update, string(others)))
		fields, changed, err := foldManagedFields(live, strict)
		if err != nil {
			return
		}
		if !changed {
			t.Fatal("an Update entry of one's own was left")
		}
		if before, after := setOf(t, live.GetManagedFields(), ""), setOf(t, fields, ""); !before.Equals(after) {
			t.Fatalf("fields were %s and are %s", before, after)
		}
		left := setOf(t, fields, "kubectl")
		want := setOf(t, live.GetManagedFields(), "kubectl")
		if strict {
			want = want.Difference(specFields(want))
		}
		if !left.Equals(want) {
			t.Fatalf("kubectl has %s left, want %s", left, want)
		}
		live.SetManagedFields(fields)
		if _, again, err := foldManagedFields(live, strict); again || err != nil {
			t.Fatalf("a second time: %t, %v", again, err)
		}
	})
}

// setOf returns all fields of a manager; "" for all managers.
func setOf(t *testing.T, entries []metav1.ManagedFieldsEntry, manager string) *fieldpath.Set {
	t.Helper()
	all := &fieldpath.Set{}
	for _, e := range entries {
		if manager != "" && e.Manager != manager {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
			t.Fatal(err)
		}
		all = all.Union(set)
	}
	return all
}
