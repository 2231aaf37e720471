// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Rival is a manager whose change of a field was undone.
type Rival struct {
	// Field is a path such as spec.ports[name="http"].port.
	Field string
	// Manager is who had changed it.
	Manager string
}

// mostRivals is how many are named.
const mostRivals = 4

// Rivals returns the fields that an object has no longer as others had written them, a few
// of them. before has its managedFields. Nobody is named who had changed nothing.
func Rivals(before, after *unstructured.Unstructured) []Rival {
	var found []Rival
	for _, entry := range before.GetManagedFields() {
		if entry.Manager == Manager || entry.Subresource == "status" {
			continue
		}
		set, err := Of(entry)
		if err != nil {
			continue // the API server has written it
		}
		set.Leaves().Iterate(func(path fieldpath.Path) {
			switch nameOf(path, 0) {
			case "status", "apiVersion", "kind":
				return
			}
			was, is := at(before.Object, path)
			now, still := at(after.Object, path)
			if is != still || !reflect.DeepEqual(was, now) {
				found = append(found, Rival{Field: strings.TrimPrefix(path.String(), "."), Manager: entry.Manager})
			}
		})
	}
	slices.SortFunc(found, func(a, b Rival) int { return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Manager, b.Manager)) })
	found = slices.Compact(found)
	return found[:min(len(found), mostRivals)]
}

// at returns what is at a place of an object.
func at(object any, path fieldpath.Path) (any, bool) {
	for _, element := range path {
		switch {
		case element.FieldName != nil:
			fields, _ := object.(map[string]any)
			inner, is := fields[*element.FieldName]
			if !is {
				return nil, false
			}
			object = inner
		case element.Index != nil:
			list, _ := object.([]any)
			if *element.Index >= len(list) {
				return nil, false
			}
			object = list[*element.Index]
		default:
			item, is := itemOf(object, element)
			if !is {
				return nil, false
			}
			object = item
		}
	}
	return object, true
}

// itemOf returns the item of a list that an element names by its keys or by its value.
func itemOf(object any, element fieldpath.PathElement) (any, bool) {
	list, _ := object.([]any)
	for _, item := range list {
		if element.Value != nil {
			if value.Equals(value.NewValueInterface(item), *element.Value) {
				return item, true
			}
			continue
		}
		fields, is := item.(map[string]any)
		if is && element.Key != nil && !slices.ContainsFunc(*element.Key, func(key value.Field) bool {
			has, found := fields[key.Name]
			return !found || !value.Equals(value.NewValueInterface(has), key.Value)
		}) {
			return item, true
		}
	}
	return nil, false
}

// SameContent tells whether two states of an object say the same, whoever has which of its
// fields: all but its status counts, and what the API server counts and kubectl notes.
func SameContent(a, b *unstructured.Unstructured) bool {
	for _, sides := range [][2]map[string]any{{a.Object, b.Object}, {b.Object, a.Object}} {
		for key, is := range sides[0] {
			switch key {
			case "status":
			case "metadata":
				if !sameMetadata(is, sides[1][key]) {
					return false
				}
			default:
				if !reflect.DeepEqual(is, sides[1][key]) {
					return false
				}
			}
		}
	}
	return true
}

// sameMetadata tells whether all is found again that one of two metadata says.
func sameMetadata(one, other any) bool {
	fields, _ := one.(map[string]any)
	others, _ := other.(map[string]any)
	for key, is := range fields {
		switch key {
		case "managedFields", "resourceVersion", "generation":
			continue
		case "annotations":
			if !sameAnnotations(is, others[key]) {
				return false
			}
		default:
			if !reflect.DeepEqual(is, others[key]) {
				return false
			}
		}
	}
	return true
}

func sameAnnotations(one, other any) bool {
	annotations, _ := one.(map[string]any)
	others, _ := other.(map[string]any)
	for key, is := range annotations {
		if key != "kubectl.kubernetes.io/last-applied-configuration" && others[key] != is {
			return false
		}
	}
	return true
}

// ManagersOf returns who has fields at a place of an object, such as spec, ports, or below
// it; sorted.
func ManagersOf(obj *unstructured.Unstructured, place ...string) []string {
	var found []string
	for _, entry := range obj.GetManagedFields() {
		set, err := Of(entry)
		if err != nil {
			continue // the API server has written it
		}
		has := false
		set.Iterate(func(path fieldpath.Path) {
			for i, name := range place {
				if nameOf(path, i) != name {
					return
				}
			}
			has = true
		})
		if has {
			found = append(found, entry.Manager)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
