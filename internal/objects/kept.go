// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxKeepers is how many finalizers are named that keep an object.
const maxKeepers = 5

// KeptBy names what keeps an object that is being deleted: its finalizers, and what a
// Namespace says of what is left in it. It is empty where nothing does.
func KeptBy(live *unstructured.Unstructured) string {
	keepers := slices.Clone(live.GetFinalizers())
	if more := len(keepers) - maxKeepers; more > 0 {
		keepers = append(keepers[:maxKeepers], fmt.Sprintf("%d more finalizers", more))
	}
	if live.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
		keepers = append(keepers, leftIn(live)...)
	}
	return strings.Join(keepers, ", ")
}

// leftIn returns the conditions of a Namespace that say what is left in it, or why that
// cannot be told.
func leftIn(namespace *unstructured.Unstructured) []string {
	value, _, _ := unstructured.NestedFieldNoCopy(namespace.Object, "status", "conditions")
	conditions, _ := value.([]any)
	var left []string
	for _, item := range conditions {
		fields, _ := item.(map[string]any)
		kind, _ := fields["type"].(string)
		message, _ := fields["message"].(string)
		if fields["status"] != "True" || !strings.HasPrefix(kind, "Namespace") {
			continue
		}
		if message != "" {
			kind += " (" + message + ")"
		}
		left = append(left, kind)
	}
	slices.Sort(left)
	return left
}

// Going says that an object is on its way out, what keeps it, and what comes then.
func Going(live *unstructured.Unstructured, is, then string) string {
	kept := KeptBy(live)
	switch {
	case kept == "":
		return is + then
	case then != "" && !strings.HasPrefix(then, ","):
		then = "," + then
	}
	return is + ", kept by " + kept + then
}
