// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/strata-project/strata/internal/dependents"
)

// foldManagedFields returns an object's managedFields with fields moved to the
// applier, which takes back what it owns and does not want: always what this
// field manager created by other means than apply, and with strict all that
// others own in spec, but suspend. Everything else, such as the annotations and
// finalizers of Flux, stays with whom it belongs to. changed is false where
// there is nothing to move.
func foldManagedFields(live *unstructured.Unstructured, strict bool) (fields []metav1.ManagedFieldsEntry, changed bool, err error) {
	applied := metav1.ManagedFieldsEntry{
		Manager: dependents.FieldManager, Operation: metav1.ManagedFieldsOperationApply,
		APIVersion: live.GetAPIVersion(), FieldsType: "FieldsV1",
	}
	owned := &fieldpath.Set{}
	for _, entry := range live.GetManagedFields() {
		if entry.Subresource != "" || entry.FieldsV1 == nil {
			fields = append(fields, entry)
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil, false, fmt.Errorf("cannot read the managedFields of %s: %w", entry.Manager, err)
		}
		switch {
		case entry.Manager == dependents.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply:
			applied = entry
			owned = owned.Union(set)
			continue
		case entry.Manager == dependents.FieldManager:
			owned = owned.Union(set)
			changed = true
			continue
		}
		taken := &fieldpath.Set{}
		if strict {
			taken = specFields(set)
		}
		if taken.Empty() {
			fields = append(fields, entry)
			continue
		}
		changed = true
		owned = owned.Union(taken)
		rest := set.Difference(taken)
		if rest.Empty() {
			continue
		}
		if entry.FieldsV1, err = fieldsOf(rest); err != nil {
			return nil, false, err
		}
		fields = append(fields, entry)
	}
	if !changed {
		return nil, false, nil
	}
	if applied.FieldsV1, err = fieldsOf(owned); err != nil {
		return nil, false, err
	}
	return append(fields, applied), true, nil
}

// specFields returns what a set holds below spec, but suspend: a release that
// somebody suspends by hand stays suspended.
func specFields(set *fieldpath.Set) *fieldpath.Set {
	found := &fieldpath.Set{}
	set.Iterate(func(path fieldpath.Path) {
		if len(path) < 2 || !isField(path[0], "spec") || isField(path[1], "suspend") {
			return
		}
		found.Insert(path.Copy())
	})
	return found
}

func isField(element fieldpath.PathElement, name string) bool {
	return element.FieldName != nil && *element.FieldName == name
}

func fieldsOf(set *fieldpath.Set) (*metav1.FieldsV1, error) {
	data, err := set.ToJSON()
	if err != nil {
		return nil, fmt.Errorf("cannot write managedFields: %w", err)
	}
	return metav1.NewFieldsV1(string(data)), nil
}
