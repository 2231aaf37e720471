// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/templates"
)

// hookVariable is what conditions of hooks read the object as.
const hookVariable = "object"

// hookLanguage is that of the conditions of hooks.
var hookLanguage = func() *templates.Language {
	language, err := templates.New(hookVariable)
	if err != nil {
		panic(err) // the variable is a constant
	}
	return language
}()

// hookGate wants hooks that can be understood: to find out when they are needed
// would be too late.
func hookGate(o Observation) *Blocked {
	for i, hook := range o.Layer.Spec.WaitFor {
		if err := checkHook(hook.APIVersion, hook.Condition); err != nil {
			return invalidHook("waitFor", i, err)
		}
	}
	for i, hook := range o.Layer.Spec.DeleteBefore {
		if err := CheckDeleteBefore(hook); err != nil {
			return invalidHook("deleteBefore", i, err)
		}
	}
	return nil
}

func invalidHook(field string, i int, err error) *Blocked {
	return &Blocked{
		State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonInvalidSpec, Stalled: true, Message: fmt.Sprintf("spec.%s[%d].%v", field, i, err),
	}
}

// checkHook returns what is wrong with a hook, beginning with the field's name.
func checkHook(apiVersion, condition string) error {
	if _, err := schema.ParseGroupVersion(apiVersion); err != nil {
		return fmt.Errorf("apiVersion: must be a version such as v1, or a group and a version such as apps/v1, not %q", apiVersion)
	}
	if condition == "" {
		return nil
	}
	if _, err := hookLanguage.CheckCondition(condition); err != nil {
		return fmt.Errorf("condition: %w", err)
	}
	return nil
}

// CheckDeleteBefore returns what is wrong with an entry of deleteBefore, beginning
// with the field's name; nil where nothing is.
func CheckDeleteBefore(hook v1alpha1.DeleteBefore) error {
	if err := checkHook(hook.APIVersion, ""); err != nil {
		return err
	}
	if _, err := metav1.LabelSelectorAsSelector(hook.Selector); err != nil {
		return fmt.Errorf("selector: %w", err)
	}
	if hook.Where == "" {
		return nil
	}
	if _, err := hookLanguage.CheckCondition(hook.Where); err != nil {
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
	return hookLanguage.Holds(condition, templates.Data{hookVariable: shown(obj)})
}

// shown returns what conditions see of an object: of a Secret all but what it keeps.
// A condition answers with one bit, and layers can be written by who may not read
// Secrets.
func shown(obj *unstructured.Unstructured) map[string]any {
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

// Awaited is an object of waitFor as it was seen.
type Awaited struct {
	ID objects.ID
	// Live is the object; nil where there is none.
	Live *unstructured.Unstructured
	// Unserved is true where the cluster does not serve its kind at that version.
	Unserved bool
	// Err says why it could not be read, which passes.
	Err error
}

// awaiting returns where the first object of waitFor stands that is not as it is to
// be; nil where all are. What could not be read is not.
func (o Observation) awaiting() *objects.Standing {
	for i, hook := range o.Layer.Spec.WaitFor {
		if i >= len(o.Awaited) {
			return &objects.Standing{Health: objects.Blocked, Status: objects.StatusProgress, Message: "has yet to be looked at"}
		}
		seen := o.Awaited[i]
		standing := objects.Standing{ID: seen.ID, Health: objects.Blocked, Status: objects.StatusProgress, Origin: fmt.Sprintf("spec.waitFor[%d]", i)}
		switch {
		case seen.Unserved:
			standing.Status, standing.Reason = objects.StatusNotServed, objects.StatusNotServed
			standing.Message = fmt.Sprintf("is waited for, and the cluster does not serve %s %s", hook.APIVersion, hook.Kind)
		case seen.Err != nil:
			standing.Message = fmt.Sprintf("is waited for, and cannot be read: %v", seen.Err)
		case seen.Live == nil:
			standing.Status, standing.Message = objects.StatusMissing, "is waited for, and does not exist"
		default:
			met, err := Meets(hook.Condition, seen.Live)
			switch {
			case err != nil:
				standing.Message = fmt.Sprintf("is waited for until %s: %v", hook.Condition, err)
				if isSecret(seen.Live) {
					standing.Message += "; conditions do not see the data of Secrets"
				}
			case !met:
				standing.Message = "is waited for until " + hook.Condition
			default:
				continue
			}
		}
		return &standing
	}
	return nil
}
