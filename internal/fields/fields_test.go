// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

const (
	version = "example.dev/v1"
	update  = metav1.ManagedFieldsOperationUpdate
	apply   = metav1.ManagedFieldsOperationApply
)

func entry(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: version,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func ofSubresource(name string, e metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
	e.Subresource = name
	return e
}

func TestFold(t *testing.T) {
	tests := map[string]struct {
		reason  string
		strict  bool
		rule    Rule
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
		"created by POST with what is applied": {
			reason:  "what the API server filled in becomes nobody's, and the entry stays for what is applied",
			rule:    Rule{Again: true},
			live:    []metav1.ManagedFieldsEntry{entry("strata", update, `{"f:data":{"f:a":{}},"f:metadata":{"f:annotations":{"f:x":{}},"f:labels":{"f:layer":{}}}}`)},
			want:    []metav1.ManagedFieldsEntry{entry("strata", apply, `{"f:metadata":{"f:labels":{"f:layer":{}}}}`)},
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
				entry("strata", apply, `{"f:data":{"f:a":{}}}`), entry("some-controller", update, `{"f:spec":{"f:b":{}}}`),
			},
		},
		"people": {
			reason: "what kubectl wrote is taken, but marks, a restart and replicas that git does not say",
			live: []metav1.ManagedFieldsEntry{
				entry("strata", apply, `{"f:data":{"f:a":{}}}`),
				entry("kubectl-edit", update, `{"f:metadata":{"f:annotations":{"f:x":{}}},"f:spec":{"f:hostNetwork":{},"f:replicas":{},"f:template":{"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/restartedAt":{}}}}}}`),
			},
			want: []metav1.ManagedFieldsEntry{
				entry("kubectl-edit", update, `{"f:metadata":{"f:annotations":{"f:x":{}}},"f:spec":{"f:replicas":{},"f:template":{"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/restartedAt":{}}}}}}`),
				entry("strata", apply, `{"f:data":{"f:a":{}},"f:spec":{"f:hostNetwork":{}}}`),
			},
			changed: true,
		},
		"replicas that git says": {
			reason: "they are as any other field", rule: Rule{Replicas: true},
			live:    []metav1.ManagedFieldsEntry{entry("kubectl", update, `{"f:spec":{"f:replicas":{}}}`)},
			want:    []metav1.ManagedFieldsEntry{entry("strata", apply, `{"f:spec":{"f:replicas":{}}}`)},
			changed: true,
		},
		"kubectl scale": {
			reason: "a subresource is another matter", rule: Rule{Replicas: true},
			live: []metav1.ManagedFieldsEntry{ofSubresource("scale", entry("kubectl", update, `{"f:spec":{"f:replicas":{}}}`))},
		},
		"an item of a list": {
			reason: "an item goes with all that is in it",
			live:   []metav1.ManagedFieldsEntry{entry("kubectl-patch", update, `{"f:spec":{"f:ports":{"k:{\"port\":9091,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}`)},
			want: []metav1.ManagedFieldsEntry{entry("strata", apply,
				`{"f:spec":{"f:ports":{"k:{\"port\":9091,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}`)},
			changed: true,
		},
		"kubectl apply": {
			reason: "labels and annotations of its manifest go along, but for what people have decided",
			live: []metav1.ManagedFieldsEntry{entry("kubectl-client-side-apply", update,
				`{"f:data":{"f:a":{}},"f:metadata":{"f:annotations":{".":{},"f:kraan.io/prune":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}},"f:labels":{"f:team":{}}}}`)},
			want: []metav1.ManagedFieldsEntry{
				entry("kubectl-client-side-apply", update, `{"f:metadata":{"f:annotations":{".":{},"f:kraan.io/prune":{}}}}`),
				entry("strata", apply, `{"f:data":{"f:a":{}},"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}},"f:labels":{"f:team":{}}}}`),
			},
			changed: true,
		},
		"kubectl annotate": {
			reason: "metadata that was set by hand is nobody's but the hand's",
			live:   []metav1.ManagedFieldsEntry{entry("kubectl-annotate", update, `{"f:metadata":{"f:annotations":{"f:x":{}}}}`)},
		},
		"the plug-in": {
			reason: "what it writes are decisions",
			live:   []metav1.ManagedFieldsEntry{entry("kubectl-strata", update, `{"f:spec":{"f:x":{}}}`)},
		},
		"ssa: Merge": {
			reason: "who asks for it keeps what he adds", rule: Rule{Merges: true},
			live: []metav1.ManagedFieldsEntry{entry("kubectl-edit", update, `{"f:spec":{"f:x":{}}}`)},
		},
		"another GitOps tool, not adopted": {
			reason: "it may go on",
			live:   []metav1.ManagedFieldsEntry{entry("argocd-controller", apply, `{"f:spec":{"f:x":{}}}`)},
		},
		"another GitOps tool, adopted": {
			reason: "its manifest is that of git, with labels and annotations", rule: Rule{Adopts: true},
			live:    []metav1.ManagedFieldsEntry{entry("argocd-controller", update, `{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:x":{}}}`)},
			want:    []metav1.ManagedFieldsEntry{entry("strata", apply, `{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:x":{}}}`)},
			changed: true,
		},
		"Helm, adopted": {
			reason: "what Helm installed is Helm's", rule: Rule{Adopts: true},
			live: []metav1.ManagedFieldsEntry{entry("helm", update, `{"f:spec":{"f:x":{}}}`), entry("helm-controller", apply, `{"f:spec":{"f:y":{}}}`)},
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
			rule := test.rule
			rule.Strict = test.strict
			got, changed, err := rule.Fold(version, test.live)
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

// FuzzFold checks that no field gets lost, that what is not taken stays with its manager,
// and that there is nothing to move a second time.
func FuzzFold(f *testing.F) {
	f.Add([]byte(`{"f:data":{"f:a":{}}}`), []byte(`{"f:spec":{"f:suspend":{},"f:values":{"f:a":{".":{}}}}}`), true)
	f.Add([]byte(`{}`), []byte(`{"f:spec":{".":{},"k:{\"name\":\"x\"}":{}},"f:metadata":{"f:labels":{}}}`), true)
	f.Add([]byte(`{"f:spec":{"v:1":{}}}`), []byte(`{"f:spec":{"i:0":{},"f:replicas":{}}}`), false)
	f.Fuzz(func(t *testing.T, own, others []byte, strict bool) {
		for _, fields := range [][]byte{own, others} {
			if !bytes.HasPrefix(fields, []byte("{")) || !json.Valid(fields) {
				return // the API server has nothing of the kind
			}
		}
		rule := Rule{Strict: strict}
		live := []metav1.ManagedFieldsEntry{entry("strata", update, string(own)), entry("kubectl", update, string(others))}
		folded, changed, err := rule.Fold(version, live)
		if err != nil {
			return
		}
		if !changed {
			t.Fatal("an Update entry of one's own was left")
		}
		if before, after := setOf(t, live, ""), setOf(t, folded, ""); !before.Equals(after) {
			t.Fatalf("fields were %s and are %s", before, after)
		}
		left := setOf(t, folded, "kubectl")
		want := setOf(t, live, "kubectl")
		want = want.Difference(rule.Taken(live[1], want))
		if !left.Equals(want) {
			t.Fatalf("kubectl has %s left, want %s", left, want)
		}
		if _, again, err := rule.Fold(version, folded); again || err != nil {
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
