// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drift compares what a chart renders with what is on the cluster. What the
// API server and others add to an object is no drift; what they have changed of it
// is.
package drift

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/answers/charts"
	"github.com/strata-project/strata/internal/objects"
)

// Of returns what of rendered objects is not as it was rendered: objects that are
// missing (delete), and fields that are different (change), from what is wanted to
// what is there. Objects of which it is not known whether they are there are left
// out.
func Of(rendered []*unstructured.Unstructured, live map[objects.ID]*unstructured.Unstructured, unknown map[objects.ID]bool) []charts.Change {
	var wanted, found []*unstructured.Unstructured
	for _, object := range rendered {
		id := objects.IDOf(object)
		if unknown[id] || live[id] == nil && isOnce(object) {
			continue
		}
		object = stored(object)
		wanted = append(wanted, object)
		if is := live[id]; is != nil {
			found = append(found, projected(is, object))
		}
	}
	return charts.Diff(wanted, found)
}

// Masked returns changes without the values of what is hidden: of fields that depend on
// values of Secrets it is seen only that they have changed. hidden are the differences
// between what is deployed and what is rendered without these values. How many
// objects have names that depend on them is returned, too; these are left out.
func Masked(changes, hidden []charts.Change) (masked []charts.Change, unnamed int) {
	fields := map[objects.ID][]string{}
	for _, change := range hidden {
		if change.Verb == charts.Delete {
			fields[change.ID] = append(fields[change.ID], "")
		}
		for _, field := range change.Fields {
			fields[change.ID] = append(fields[change.ID], place.FindString(field.Path))
		}
	}
	for _, change := range changes {
		from := fields[change.ID]
		if slices.Contains(from, "") {
			unnamed++
			continue
		}
		change.Fields = slices.Clone(change.Fields)
		for i, field := range change.Fields {
			if slices.ContainsFunc(from, func(path string) bool { return within(field.Path, path) || within(path, field.Path) }) {
				change.Fields[i] = field.Masked()
			}
		}
		masked = append(masked, change)
	}
	return masked, unnamed
}

// place is a path up to the first list whose things have no names.
var place = regexp.MustCompile(`^([^\[]|\[[^\]0-9][^\]]*\])*`)

// within tells whether a path is another one, or below it.
func within(path, other string) bool {
	rest, is := strings.CutPrefix(path, other)
	return is && (rest == "" || other == "" || rest[0] == '.' || rest[0] == '[')
}

// isOnce tells whether an object may have gone because it has done its work.
func isOnce(object *unstructured.Unstructured) bool {
	_, expires, _ := unstructured.NestedInt64(object.Object, "spec", "ttlSecondsAfterFinished")
	return object.GetKind() == "Job" && expires
}

// stored returns an object in the way that the API server stores it, as far as that
// follows from the object alone.
func stored(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	unstructured.RemoveNestedField(object.Object, "status")
	withoutNothing(object.Object)
	return object
}

// withoutNothing takes out fields that are empty, which the API server does not
// tell from those that are not there.
func withoutNothing(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			withoutNothing(field)
			if isNothing(field) {
				delete(value, key)
			}
		}
	case []any:
		for _, item := range value {
			withoutNothing(item)
		}
	}
}

func isNothing(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

// projected returns as much of a live object as was rendered of it.
func projected(live, rendered *unstructured.Unstructured) *unstructured.Unstructured {
	object, _ := project(live.Object, rendered.Object, "").(map[string]any)
	// The version that it was read in is nobody's change.
	object["apiVersion"] = rendered.GetAPIVersion()
	return &unstructured.Unstructured{Object: object}
}

func project(live, wanted any, path string) any {
	switch wanted := wanted.(type) {
	case map[string]any:
		has, is := live.(map[string]any)
		if !is {
			return live
		}
		kept := map[string]any{}
		for key, want := range wanted {
			if value, found := has[key]; found {
				kept[key] = project(value, want, path+"."+key)
			} else if is := zero(want); is {
				kept[key] = want
			}
		}
		return kept
	case []any:
		has, is := live.([]any)
		if !is {
			return live
		}
		return projectList(has, wanted, path)
	}
	if sameValue(live, wanted, path) {
		return wanted
	}
	return live
}

// zero tells values that the API server leaves out.
func zero(value any) bool {
	switch value := value.(type) {
	case string:
		return value == ""
	case bool:
		return !value
	case int64:
		return value == 0
	case float64:
		return value == 0
	}
	return false
}

// projectList projects lists of things with names onto those that were rendered;
// what somebody else has put beside them, such as a sidecar, is no drift. Other lists
// count as a whole.
func projectList(live, wanted []any, path string) []any {
	key := keyOf(wanted)
	if key == "" {
		if len(live) != len(wanted) {
			return live
		}
		kept := make([]any, len(live))
		for i := range live {
			kept[i] = project(live[i], wanted[i], path)
		}
		return kept
	}
	var kept []any
	for _, want := range wanted {
		named, _ := want.(map[string]any)
		for _, has := range live {
			if item, is := has.(map[string]any); is && reflect.DeepEqual(item[key], named[key]) {
				kept = append(kept, project(item, named, path))
				break
			}
		}
	}
	return kept
}

// keyOf returns the field by which the items of a list are told apart.
func keyOf(list []any) string {
	for _, key := range []string{"name", "mountPath", "containerPort", "port", "type"} {
		seen := map[any]bool{}
		for _, item := range list {
			fields, is := item.(map[string]any)
			if !is {
				return ""
			}
			switch fields[key].(type) {
			case string, int64, float64:
				seen[fields[key]] = true
			}
		}
		if len(seen) == len(list) && len(list) > 0 {
			return key
		}
	}
	return ""
}

// sameValue tells whether two values are the same to the API server: it writes
// quantities in one way of several.
func sameValue(live, wanted any, path string) bool {
	if reflect.DeepEqual(live, wanted) {
		return true
	}
	if !strings.Contains(path, ".resources") && !strings.Contains(path, ".hard") && !strings.Contains(path, "sizeLimit") && !strings.Contains(path, ".capacity") {
		return false
	}
	is, errIs := resource.ParseQuantity(text(live))
	want, errWant := resource.ParseQuantity(text(wanted))
	return errIs == nil && errWant == nil && is.Cmp(want) == 0
}

func text(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case int64:
		return resource.NewQuantity(value, resource.DecimalSI).String()
	}
	return "?"
}
