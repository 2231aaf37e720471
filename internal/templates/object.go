// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CheckObject says what keeps a value from being an object that can be applied, and
// in which field; empty where nothing does.
func CheckObject(object map[string]any) (field, wrong string) {
	for _, field := range []string{"apiVersion", "kind"} {
		if wrong := checkText(object[field], true); wrong != "" {
			return field, wrong
		}
	}
	version, _ := object["apiVersion"].(string)
	if _, err := schema.ParseGroupVersion(version); err != nil {
		return "apiVersion", "must be a version such as v1 or a group and a version such as apps/v1"
	}
	metadata, is := object["metadata"].(map[string]any)
	if !is {
		return "metadata", "is missing or no object: every object needs metadata.name"
	}
	if wrong := checkText(metadata["name"], true); wrong != "" {
		return "metadata.name", wrong
	}
	if wrong := checkText(metadata["namespace"], false); wrong != "" {
		return "metadata.namespace", wrong
	}
	for _, field := range []string{"labels", "annotations"} {
		texts, is := metadata[field].(map[string]any)
		if !is && metadata[field] != nil {
			return "metadata." + field, "must be an object, and is " + Described(metadata[field])
		}
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			if _, is := texts[key].(string); !is {
				return "metadata." + field + "[" + key + "]", "must be a text, and is " + Described(texts[key])
			}
		}
	}
	// What the server sets, or what means something in another cluster only.
	for _, field := range []string{"generateName", "managedFields", "ownerReferences", "resourceVersion", "uid"} {
		if metadata[field] != nil {
			return "metadata." + field, "is not for objects that are applied: remove it"
		}
	}
	return "", ""
}

func checkText(value any, required bool) string {
	text, is := value.(string)
	switch {
	case value == nil && !required, is && (text != "" || !required):
		return ""
	case value == nil:
		return "is missing: every object needs it"
	case is:
		return "is empty: every object needs it"
	default:
		return "must be a text, and is " + Described(value)
	}
}

// Described says what a value is, in the words of the types of inputs.
func Described(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("the String %q", shorten(v))
	case bool:
		return fmt.Sprintf("the Boolean %t", v)
	case int64, float64:
		return fmt.Sprintf("the Number %v", v)
	case map[string]any:
		return "an Object"
	case []any:
		return "an Array"
	default:
		return fmt.Sprintf("a %T", value)
	}
}
