// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/internal/answers/acts"
	"github.com/strata-project/strata/internal/heldacts"
)

// FieldManager is what API servers are told that makes objects for people. Flux takes over
// what managers named kubectl* have: once git lists such an object, git has it.
const FieldManager = "kubectl-strata"

// ActManager is what API servers are told that decides something for people.
const ActManager = heldacts.PeopleManager

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

// Annotate makes the change of an act, as whoever asks. The error is that of the API server,
// which says whether they may, and whether the object is as it was.
func (c *Cluster) Annotate(ctx context.Context, change acts.Patch) error {
	client, err := c.Dynamic()
	if err != nil {
		return err
	}
	metadata := map[string]any{"annotations": change.Annotations}
	if change.Version != "" {
		metadata["resourceVersion"] = change.Version
	}
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("cannot write the change of %s: %w", change.Name, err)
	}
	resource := client.Resource(change.Resource).Namespace(change.Namespace)
	_, err = resource.Patch(ctx, change.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: ActManager})
	return err
}
