// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package heldacts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
)

const hold, prune = v1alpha1.HoldAnnotation, v1alpha1.AllowPruneAnnotation

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// has is an entry of a manager that has some annotations, and other things.
func has(manager string, annotations ...string) metav1.ManagedFieldsEntry {
	var fields []string
	for _, name := range annotations {
		fields = append(fields, fmt.Sprintf("%q:{}", "f:"+name))
	}
	raw := fmt.Sprintf(`{"f:metadata":{"f:annotations":{".":{},%s},"f:labels":{"f:a":{}}},"f:spec":{}}`, strings.Join(fields, ","))
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(strings.ReplaceAll(raw, ",}", "}"))}
}

func TestDecide(t *testing.T) {
	both := map[string]string{hold: "freeze", prune: "next", "team": "a"}
	for _, tc := range []struct {
		reason      string
		annotations map[string]string
		fields      []metav1.ManagedFieldsEntry
		since       Since
		own         string
		write       bool
		until       time.Time
	}{
		{"what kubectl has is owned, too", both, []metav1.ManagedFieldsEntry{has("kubectl-annotate", hold, "team")}, nil, hold, true, time.Time{}},
		{"so is what an old plug-in has", both, []metav1.ManagedFieldsEntry{has("kubectl-strata", hold)}, nil, hold, true, time.Time{}},
		{"and what was there before anybody applied", both, []metav1.ManagedFieldsEntry{has("before-first-apply", prune)}, nil, prune, true, time.Time{}},
		{"the plug-in's are left alone by Flux", both, []metav1.ManagedFieldsEntry{has("strata-cli", hold)}, nil, "", false, time.Time{}},
		{"git's are git's", both, []metav1.ManagedFieldsEntry{has("kustomize-controller", hold), has("kubectl-edit", hold)}, nil, "", false, time.Time{}},
		{"what is owned already is not written again", both, []metav1.ManagedFieldsEntry{has("kubectl-annotate", hold), has(Manager, hold)}, nil, hold, false, time.Time{}},
		{"a second act is added to the first", both, []metav1.ManagedFieldsEntry{has("kubectl-annotate", hold, prune), has(Manager, hold)}, nil, prune + " " + hold, true, time.Time{}},
		{"what was taken off is not brought back", map[string]string{"team": "a"}, []metav1.ManagedFieldsEntry{has(Manager, hold), has("kubectl-annotate", hold)}, nil, "", false, time.Time{}},
		{"while Flux takes it over it stays", both, []metav1.ManagedFieldsEntry{has("kustomize-controller", hold), has(Manager, hold)}, nil, hold, false, now.Add(settles)},
		{"also a little later", both, []metav1.ManagedFieldsEntry{has("kustomize-controller", hold), has(Manager, hold)}, Since{hold: now.Add(-settles / 2)}, hold, false, now.Add(settles / 2)},
		{"what git has for good is left to git", both, []metav1.ManagedFieldsEntry{has("kustomize-controller", hold), has(Manager, hold)}, Since{hold: now.Add(-settles)}, "", true, time.Time{}},
	} {
		object := &metav1.ObjectMeta{Annotations: tc.annotations, ManagedFields: Trimmed(tc.annotations, tc.fields)}
		d := Decide(object, tc.since, now)
		if own := strings.Join(slices.Sorted(maps.Keys(d.Own)), " "); own != tc.own || d.Write != tc.write || !d.Until.Equal(tc.until) {
			t.Errorf("%s: owns %q, writes %t, until %v", tc.reason, own, d.Write, d.Until)
		}
	}
}

// What is left of managers decides as all of them do, also where it is trimmed again, and
// nothing is written twice. Only what is there is owned, with its value.
func TestTrimmedDecidesAlike(t *testing.T) {
	names := []string{hold, prune, v1alpha1.ApproveAnnotation, "team"}
	rapid.Check(t, func(t *rapid.T) {
		annotations := map[string]string{}
		for _, name := range names {
			if rapid.Bool().Draw(t, "there") {
				annotations[name] = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "value")
			}
		}
		var fields []metav1.ManagedFieldsEntry
		for _, manager := range []string{"kubectl-annotate", "kubectl", "kustomize-controller", "strata-cli", Manager, "strata"} {
			if owned := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 3, rapid.ID).Draw(t, manager); len(owned) > 0 {
				fields = append(fields, has(manager, owned...))
			}
		}
		trimmed := Trimmed(annotations, fields)
		if diff := cmp.Diff(trimmed, Trimmed(annotations, trimmed)); diff != "" {
			t.Fatal(diff)
		}
		whole := Decide(&metav1.ObjectMeta{Annotations: annotations, ManagedFields: fields}, nil, now)
		d := Decide(&metav1.ObjectMeta{Annotations: annotations, ManagedFields: trimmed}, nil, now)
		if diff := cmp.Diff(whole, d); diff != "" {
			t.Fatal(diff)
		}
		for act, value := range d.Own {
			if annotations[act] != value || !isAct[act] {
				t.Fatalf("%s=%s is owned", act, value)
			}
		}
		owned := append(slices.DeleteFunc(slices.Clone(fields), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == Manager }), has(Manager, slices.Collect(maps.Keys(d.Own))...))
		if again := Decide(&metav1.ObjectMeta{Annotations: annotations, ManagedFields: owned}, d.Since, now); again.Write {
			t.Fatalf("it is written again: %v", d.Own)
		}
	})
}

// An object without acts costs nothing.
func TestNothingIsLeftWithoutActs(t *testing.T) {
	if left := Trimmed(map[string]string{"team": "a"}, []metav1.ManagedFieldsEntry{has("kubectl", "team")}); left != nil {
		t.Error(left)
	}
}
