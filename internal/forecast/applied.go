// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/fields"
	"github.com/strata-project/strata/internal/layers"
)

type ownerReference = metav1.OwnerReference

// Applied returns a live object after something was applied to it: what is wanted
// is as it is wanted, what Strata owned, or takes over by a rule, and does not want is
// gone, and what others wrote stays. It knows no schema: lists are replaced as a whole.
func Applied(live, wanted *unstructured.Unstructured, rule fields.Rule) *unstructured.Unstructured {
	applied := live.DeepCopy()
	has, errHas := typed.DeducedParseableType.FromUnstructured(applied.Object)
	wants, errWants := typed.DeducedParseableType.FromUnstructured(wanted.DeepCopy().Object)
	if errHas != nil || errWants != nil {
		return wanted.DeepCopy() // neither is an object, which the API server never returns
	}
	if listed, err := wants.ToFieldSet(); err == nil {
		has = has.RemoveItems(owned(live, rule).Difference(listed).Leaves())
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

// defaultReplicas gives a workload whose number of replicas git does not say any more the one
// replica that the API server gives it then.
func defaultReplicas(before, applied *unstructured.Unstructured) {
	if gk := applied.GroupVersionKind().GroupKind(); gk.Group != "apps" || gk.Kind == "DaemonSet" {
		return
	}
	_, had, _ := unstructured.NestedFieldNoCopy(before.Object, "spec", "replicas")
	_, has, _ := unstructured.NestedFieldNoCopy(applied.Object, "spec", "replicas")
	if had && !has {
		_ = unstructured.SetNestedField(applied.Object, int64(1), "spec", "replicas") // of a specification that is there
	}
}

// losesReplicas tells whether Strata has the number of replicas of a live object, and git does
// not say it any more.
func losesReplicas(live *unstructured.Unstructured, wanted *dependents.Dependent) bool {
	rule := wanted.Takes(live, layers.Keys)
	return !rule.Replicas && owned(live, rule).Has(fieldpath.MakePathOrDie("spec", "replicas"))
}

// owned returns the fields that Strata takes back when it does not want them.
func owned(live *unstructured.Unstructured, rule fields.Rule) *fieldpath.Set {
	found := &fieldpath.Set{}
	for _, entry := range live.GetManagedFields() {
		if entry.Subresource != "" || entry.Manager == dependents.MarksManager {
			continue
		}
		set, err := fields.Of(entry)
		if err != nil {
			continue
		}
		switch {
		case entry.Manager != dependents.FieldManager:
			set = rule.Taken(entry, set)
		case rule.Again && entry.Operation == metav1.ManagedFieldsOperationUpdate:
			continue // what its creation had beside what is wanted becomes nobody's
		}
		set.Iterate(func(path fieldpath.Path) {
			if isRemovable(path) {
				found.Insert(path.Copy())
			}
		})
	}
	return found
}

// isRemovable tells fields that applying may remove, and that are no part of a list.
func isRemovable(path fieldpath.Path) bool {
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
		return len(path) > 2
	case "spec":
		return *path[1].FieldName != "suspend"
	}
	return true
}
