// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package forged

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
)

// Foreign is an object of others with one field of its status that is forged.
type Foreign struct {
	// Name is the path of the field, and how it was forged.
	Name   string
	Object *unstructured.Unstructured
}

// EachForeign returns an object with each field forged that Strata reads of its kind and that is
// in a class of which nothing follows, or no more than that something is left out. There may be
// none. Texts are forged by each of the plausible values, too.
func EachForeign(t testing.TB, kind string, object *unstructured.Unstructured, plausible ...string) []Foreign {
	t.Helper()
	classes := v1alpha1.ForeignStatusFields(kind)
	if len(classes) == 0 {
		t.Fatalf("%s has no classes", kind)
	}
	var all []Foreign
	for path, class := range classes {
		if class.IsForgeable() {
			all = append(all, OfForeign(t, path, object, plausible...)...)
		}
	}
	slices.SortFunc(all, func(a, b Foreign) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// OfForeign returns an object with one field of its status forged, whatever its class is.
func OfForeign(t testing.TB, path string, object *unstructured.Unstructured, plausible ...string) []Foreign {
	t.Helper()
	var all []Foreign
	add := func(how string, forge func(status map[string]any)) {
		changed := object.DeepCopy()
		status, _ := changed.Object["status"].(map[string]any)
		if status == nil {
			status = map[string]any{}
			changed.Object["status"] = status
		}
		forge(status)
		all = append(all, Foreign{path + ", " + how, changed})
	}
	if kind, is := strings.CutPrefix(path, "conditions["); is {
		kind = strings.TrimSuffix(kind, "]")
		add("cleared", func(status map[string]any) { without(status, kind) })
		for name, condition := range conditionsOf(kind, object.GetGeneration()) {
			add(name, func(status map[string]any) { status["conditions"] = append(without(status, kind), condition) })
		}
		return all
	}
	names := strings.Split(path, ".")
	add("cleared", func(status map[string]any) { unstructured.RemoveNestedField(status, names...) })
	for name, value := range valuesOf(path, object.GetGeneration(), plausible) {
		add(name, func(status map[string]any) {
			if err := unstructured.SetNestedField(status, value, names...); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		})
	}
	return all
}

// without takes a condition off a status, and returns those that are left.
func without(status map[string]any, kind string) []any {
	had, _ := status["conditions"].([]any)
	left := slices.DeleteFunc(slices.Clone(had), func(item any) bool {
		fields, _ := item.(map[string]any)
		return fields["type"] == kind
	})
	status["conditions"] = left
	return left
}

// conditionsOf returns conditions of a type that somebody would wait for, or act on.
func conditionsOf(kind string, generation int64) map[string]map[string]any {
	condition := func(status, reason, message string, generation int64) map[string]any {
		return map[string]any{
			"type": kind, "status": status, "reason": reason, "message": message,
			"observedGeneration": generation, "lastTransitionTime": "2026-01-02T03:04:05Z",
		}
	}
	all := map[string]map[string]any{"of before": condition("True", "Succeeded", "forged", max(generation-1, 1))}
	for _, status := range []string{"True", "False", "Unknown"} {
		all[status] = condition(status, "Forged", "forged", generation)
		all[status+", under way"] = condition(status, "Progressing", "Running 'upgrade' action with timeout of 5m0s", generation)
	}
	return all
}

// valuesOf returns what somebody would put into a field, by what it is.
func valuesOf(path string, generation int64, plausible []string) map[string]any {
	switch path {
	case "observedGeneration":
		return map[string]any{"its own": generation, "older": generation - 1, "odd": int64(99)}
	case "artifact.size", "availableReplicas", "readyReplicas", "replicas":
		return map[string]any{"none": int64(0), "one": int64(1), "odd": int64(1) << 40}
	case "inventory.entries":
		return map[string]any{"nothing": []any{}, "something": []any{map[string]any{"id": "default_forged_apps_Deployment", "v": "v1"}}}
	case "history":
		return map[string]any{"nothing": []any{}, "something": []any{map[string]any{
			"name": "forged", "namespace": "default", "chartName": "forged", "chartVersion": "9.9.9", "status": "deployed", "version": int64(99),
		}}}
	case "properties":
		return map[string]any{"nothing": []any{}, "something": []any{map[string]any{"name": "env", "value": "forged"}}}
	case "conditions", "containerStatuses", "initContainerStatuses":
		list := []any{}
		for _, kind := range []string{"Ready", "Established", "Available", "Progressing", "ReplicaFailure", "PodScheduled", "Approved"} {
			list = append(list, conditionsOf(kind, generation)["True"])
		}
		return map[string]any{"nothing": []any{}, "something": list}
	case "storedVersions":
		return map[string]any{"nothing": []any{}, "something": []any{"v1", "v9"}}
	}
	values := map[string]any{"odd": "forged"}
	for _, value := range plausible {
		values["as "+value] = value
	}
	return values
}
