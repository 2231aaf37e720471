// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// injectors are the annotations by which cert-manager fills in caBundle.
var injectors = []string{"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca"}

// LeaveToFillers takes off an object what it says itself that another controller fills in:
// the rules of a ClusterRole that aggregates others, and the caBundle that cert-manager
// injects. To apply them would be to empty them each time.
func LeaveToFillers(obj *unstructured.Unstructured) {
	gk := obj.GroupVersionKind().GroupKind()
	if gk.Group == "rbac.authorization.k8s.io" && gk.Kind == "ClusterRole" {
		if aggregation, _, _ := unstructured.NestedMap(obj.Object, "aggregationRule"); len(aggregation) > 0 {
			delete(obj.Object, "rules")
		}
		return
	}
	if !isInjected(obj) {
		return
	}
	switch gk.Group {
	case "apiregistration.k8s.io":
		unstructured.RemoveNestedField(obj.Object, "spec", "caBundle")
	case DefinitionKind.Group:
		unstructured.RemoveNestedField(obj.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	case "admissionregistration.k8s.io":
		webhooks, _ := obj.Object["webhooks"].([]any)
		for _, webhook := range webhooks {
			if fields, is := webhook.(map[string]any); is {
				unstructured.RemoveNestedField(fields, "clientConfig", "caBundle")
			}
		}
	}
}

func isInjected(obj *unstructured.Unstructured) bool {
	annotations := obj.GetAnnotations()
	for _, name := range injectors {
		if annotations[name] != "" {
			return true
		}
	}
	return false
}
