// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What others have beside Strata is listed by manager: what stays, and what the next change of
// the object takes back. Marks, metadata and statuses are not.
func TestBeside(t *testing.T) {
	ours := entry("strata", apply, `{"f:spec":{"f:image":{}}}`)
	for name, test := range map[string]struct {
		rule    Rule
		entries []metav1.ManagedFieldsEntry
		want    []string
	}{
		"nobody else": {entries: []metav1.ManagedFieldsEntry{ours}},
		"an autoscaler": {
			entries: []metav1.ManagedFieldsEntry{ours, ofSubresource("scale", entry("kube-controller-manager", update, `{"f:spec":{"f:replicas":{}}}`))},
			want:    []string{"kube-controller-manager stays spec.replicas"},
		},
		"a hand edit from before": {
			entries: []metav1.ManagedFieldsEntry{ours, entry("kubectl-edit", update, `{"f:spec":{"f:hack":{".":{},"f:a":{}},"f:image":{},"f:replicas":{}}}`)},
			want:    []string{"kubectl-edit stays spec.replicas", "kubectl-edit goes spec.hack"},
		},
		"one that is merged": {
			rule:    Rule{Merges: true},
			entries: []metav1.ManagedFieldsEntry{ours, entry("kubectl-edit", update, `{"f:spec":{"f:hack":{}}}`)},
			want:    []string{"kubectl-edit stays spec.hack"},
		},
		"marks, metadata and a status": {
			entries: []metav1.ManagedFieldsEntry{
				ours, entry("marks", update, `{"f:spec":{"f:x":{}}}`), entry("someone", update, `{"f:metadata":{"f:labels":{"f:a":{}}}}`),
				ofSubresource("status", entry("someone", update, `{"f:status":{"f:ready":{}}}`)),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, held := range test.rule.Beside(&metav1.ObjectMeta{ManagedFields: test.entries}, "marks") {
				becomes := "stays"
				if held.Goes {
					becomes = "goes"
				}
				got = append(got, fmt.Sprintf("%s %s %s", held.Manager, becomes, strings.Join(held.Fields, ",")))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
