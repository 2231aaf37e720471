// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// FieldManager is what API servers are told that writes for people.
const FieldManager = "kubectl-strata"

// UserOf returns who the API server takes the caller for; empty where it does not say.
func UserOf(ctx context.Context, client dynamic.Interface) string {
	review := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}}
	answer, err := client.Resource(schema.GroupVersionResource{
		Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews",
	}).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return ""
	}
	user, _, _ := unstructured.NestedString(answer.Object, "status", "userInfo", "username")
	return user
}
