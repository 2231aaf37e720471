// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package looks

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// report says in the status of an object that a look has panicked, and as an event where the
// status did not say so. One that is gone says nothing.
func (g *guarded) report(ctx context.Context, req ctrl.Request, message string, now metav1.Time) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(g.of)
	if err := g.reader.Get(ctx, req.NamespacedName, object); err != nil {
		return client.IgnoreNotFound(err)
	}
	has := conditionsOf(object)
	wants := panicked(has, object.GetGeneration(), message, now)
	if equality.Semantic.DeepEqual(has, wants) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": object.GetResourceVersion()},
		"status":   map[string]any{"conditions": wants},
	})
	if err != nil {
		return fmt.Errorf("cannot write conditions: %w", err)
	}
	if err := g.client.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("cannot write the status of %s %s: %w", g.of.Kind, req, err)
	}
	g.events.Eventf(object, nil, corev1.EventTypeWarning, v1alpha1.ReasonInternalError, "Reconcile", "%s", message)
	return nil
}

// conditionsOf returns the conditions of any object; none where they cannot be read.
func conditionsOf(object *unstructured.Unstructured) []metav1.Condition {
	var typed struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
		return nil
	}
	return typed.Status.Conditions
}

// panicked returns the conditions of an object whose look has panicked: nobody knows how it
// fares, and it is looked at again. What other conditions say was so when they were written.
func panicked(has []metav1.Condition, generation int64, message string, now metav1.Time) []metav1.Condition {
	wants := append([]metav1.Condition(nil), has...)
	for kind, status := range map[string]metav1.ConditionStatus{
		v1alpha1.ReadyCondition: metav1.ConditionUnknown, v1alpha1.ReconcilingCondition: metav1.ConditionTrue,
	} {
		meta.SetStatusCondition(&wants, metav1.Condition{
			Type: kind, Status: status, Reason: v1alpha1.ReasonInternalError, Message: message, ObservedGeneration: generation, LastTransitionTime: now,
		})
	}
	meta.RemoveStatusCondition(&wants, v1alpha1.StalledCondition)
	return wants
}
