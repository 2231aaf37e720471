// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hooks says what a layer waits for beside its own objects, and what it deletes
// before them: it understands conditions, and judges objects by them.
package hooks

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/templates"
)

// variable is what conditions of hooks read the object as.
const variable = "object"

// language is that of the conditions of hooks.
var language = func() *templates.Language {
	made, err := templates.New(variable)
	if err != nil {
		panic(err) // the variable is a constant
	}
	return made
}()

// Check returns what is wrong with a hook, beginning with the field's name.
func Check(apiVersion, condition string) error {
	if _, err := schema.ParseGroupVersion(apiVersion); err != nil {
		return fmt.Errorf("apiVersion: must be a version such as v1, or a group and a version such as apps/v1, not %q", apiVersion)
	}
	if condition == "" {
		return nil
	}
	if _, err := language.CheckCondition(condition); err != nil {
		return fmt.Errorf("readyExpr: %w", err)
	}
	return nil
}

// CheckDeleteBefore returns what is wrong with an entry of deleteBefore, beginning
// with the field's name; nil where nothing is.
func CheckDeleteBefore(hook v1alpha1.DeleteBefore) error {
	if err := Check(hook.APIVersion, ""); err != nil {
		return err
	}
	if _, err := metav1.LabelSelectorAsSelector(hook.Selector); err != nil {
		return fmt.Errorf("selector: %w", err)
	}
	if hook.Where == "" {
		return nil
	}
	if _, err := language.CheckCondition(hook.Where); err != nil {
		return fmt.Errorf("where: %w", err)
	}
	return nil
}

// Meets tells whether an object is as a condition of a hook says. A field that it
// lacks is an error.
func Meets(condition string, obj *unstructured.Unstructured) (bool, error) {
	if condition == "" {
		return true, nil
	}
	return language.Holds(condition, templates.Data{variable: Shown(obj)})
}

// Shown returns what conditions and templates see of an object: of a Secret all but what it keeps.
// A condition answers with one bit, and layers can be written by who may not read
// Secrets.
func Shown(obj *unstructured.Unstructured) map[string]any {
	if !isSecret(obj) {
		return obj.Object
	}
	seen := obj.DeepCopy()
	delete(seen.Object, "data")
	delete(seen.Object, "stringData")
	// kubectl apply writes all of the object there.
	annotations := seen.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	seen.SetAnnotations(annotations)
	return seen.Object
}

func isSecret(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}
}
