// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"fmt"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
)

// Hooks returns what a layer of a bundle waits for and what goes before it, with
// the templates in names and namespaces filled. The error is a ContentError.
func Hooks(layer *v1alpha1.BundleLayer, instance string, inputs map[string]any) ([]v1alpha1.WaitFor, []v1alpha1.DeleteBefore, error) {
	fill, err := newPlainFiller(instance, inputs)
	if err != nil {
		return nil, nil, err
	}
	var waitFor []v1alpha1.WaitFor
	for i := range layer.WaitFor {
		hook, field := *layer.WaitFor[i].DeepCopy(), fmt.Sprintf("layers[%s].waitFor[%d].", layer.Name, i)
		if hook.Namespace, err = fill.text(hook.Namespace); err != nil {
			return nil, nil, wrongHook(field+"namespace", err)
		}
		if hook.Name, err = fill.text(hook.Name); err != nil {
			return nil, nil, wrongHook(field+"name", err)
		}
		waitFor = append(waitFor, hook)
	}
	var deleteBefore []v1alpha1.DeleteBefore
	for i := range layer.DeleteBefore {
		hook := *layer.DeleteBefore[i].DeepCopy()
		if hook.Namespace, err = fill.text(hook.Namespace); err != nil {
			return nil, nil, wrongHook(fmt.Sprintf("layers[%s].deleteBefore[%d].namespace", layer.Name, i), err)
		}
		deleteBefore = append(deleteBefore, hook)
	}
	return waitFor, deleteBefore, nil
}

func wrongHook(field string, err error) error {
	return &directories.ContentError{Reason: v1alpha1.ReasonInvalidManifest, Field: field, Message: err.Error()}
}

// When tells whether a layer of a bundle is to be there. The error is *Waiting where
// the layer's when reads a fact that is not known yet, and a ContentError where it
// has no answer.
func When(layer *v1alpha1.BundleLayer, instance string, inputs map[string]any, cluster Cluster) (bool, error) {
	if layer.When == "" {
		return true, nil
	}
	fill, err := newFiller(instance, inputs, cluster)
	if err != nil {
		return false, err
	}
	field := fmt.Sprintf("layers[%s].when", layer.Name)
	uses, err := fill.language.CheckCondition(layer.When)
	if err != nil {
		return false, wrongHook(field, err)
	}
	if err := fill.waits(uses); err != nil {
		return false, err
	}
	holds, err := fill.language.Holds(layer.When, fill.data)
	if err != nil {
		return false, wrongHook(field, err)
	}
	return holds, nil
}
