// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/strata-project/strata/internal/dependents"
)

type ownerReference = metav1.OwnerReference

// Applied returns a live object after something was applied to it: what is wanted
// is as it is wanted, what Strata owned and does not want is gone, and what others
// wrote stays, but in the spec of a strict kind, where suspend alone stays. It knows
// no schema: lists are replaced as a whole.
func Applied(live, wanted *unstructured.Unstructured, strict bool) *unstructured.Unstructured {
	applied := live.DeepCopy()
	has, errHas := typed.DeducedParseableType.FromUnstructured(applied.Object)
	wants, errWants := typed.DeducedParseableType.FromUnstructured(wanted.DeepCopy().Object)
	if errHas != nil || errWants != nil {
		return wanted.DeepCopy() // neither is an object, which the API server never returns
	}
	if listed, err := wants.ToFieldSet(); err == nil {
		has = has.RemoveItems(owned(live, strict).Difference(listed).Leaves())
	}
	merged, err := has.Merge(wants)
	if err != nil {
		return wanted.DeepCopy()
	}
	object, is := merged.AsValue().Unstructured().(map[string]any)
	if !is {
		return wanted.DeepCopy()
	}
	return &unstructured.Unstructured{Object: object}
}

// owned returns the fields that Strata takes back when it does not want them.
func owned(live *unstructured.Unstructured, strict bool) *fieldpath.Set {
	found := &fieldpath.Set{}
	for _, entry := range live.GetManagedFields() {
		if entry.Subresource != "" || entry.FieldsV1 == nil || entry.Manager == dependents.MarksManager {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			continue
		}
		set.Iterate(func(path fieldpath.Path) {
			if taken(path, entry.Manager == dependents.FieldManager, strict) {
				found.Insert(path.Copy())
			}
		})
	}
	return found
}

// taken tells whether a field is taken back that was written by Strata or by
// somebody else.
func taken(path fieldpath.Path, own, strict bool) bool {
	for _, element := range path {
		if element.FieldName == nil {
			return false // lists are replaced as a whole
		}
	}
	if len(path) < 2 {
		return false
	}
	switch *path[0].FieldName {
	case "status":
		return false
	case "metadata":
		return own && len(path) > 2
	case "spec":
		return *path[1].FieldName != "suspend" && (own || strict)
	}
	return own
}
