// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package looks

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// report says in the status of an object that a look has panicked, and as an event where the
// status did not say so. One that is gone says nothing.
func (g *guarded) report(ctx context.Context, req ctrl.Request, message string, now metav1.Time) error {
	object := g.fresh()
	if err := g.reader.Get(ctx, req.NamespacedName, object); err != nil {
		return client.IgnoreNotFound(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return fmt.Errorf("cannot read conditions: %w", err)
	}
	has := conditionsOf(content)
	wants := panicked(has, object.GetGeneration(), message, now)
	if equality.Semantic.DeepEqual(has, wants) {
		return nil
	}
	before := object.DeepCopyObject().(client.Object)
	if err := setConditions(object, content, wants); err != nil {
		return err
	}
	// As an object of its type its status is signed, where those of its kind are.
	if err := g.client.Status().Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot write the status of %s %s: %w", g.of.Kind, req, err)
	}
	g.events.Eventf(object, nil, corev1.EventTypeWarning, v1alpha1.ReasonInternalError, "Reconcile", "%s", message)
	return nil
}

// conditionsOf returns the conditions of any object; none where they cannot be read.
func conditionsOf(content map[string]any) []metav1.Condition {
	var typed struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &typed); err != nil {
		return nil
	}
	return typed.Status.Conditions
}

// setConditions gives conditions to an object, whose content is known.
func setConditions(object client.Object, content map[string]any, conditions []metav1.Condition) error {
	list := make([]any, 0, len(conditions))
	for i := range conditions {
		one, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i])
		if err != nil {
			return fmt.Errorf("cannot write conditions: %w", err)
		}
		list = append(list, one)
	}
	if err := unstructured.SetNestedSlice(content, list, "status", "conditions"); err != nil {
		return fmt.Errorf("cannot write conditions: %w", err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, object); err != nil {
		return fmt.Errorf("cannot write conditions: %w", err)
	}
	return nil
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
