// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"fmt"
	"slices"

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
		hook, field := *layer.WaitFor[i].WaitFor.DeepCopy(), fmt.Sprintf("layers[%s].waitFor[%d].", layer.Name, i)
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
	return fill.holds(fmt.Sprintf("layers[%s].when", layer.Name), layer.When)
}

// Present returns those of a layer's applications that are to be there. The errors are
// those of When.
func Present(layer *v1alpha1.BundleLayer, instance string, inputs map[string]any, cluster Cluster) ([]v1alpha1.BundleApplication, error) {
	if !HasChoice(layer) {
		return layer.Applications, nil
	}
	fill, err := newFiller(instance, inputs, cluster)
	if err != nil {
		return nil, err
	}
	copies, err := copiesOf(layer, fill, false)
	if err != nil {
		return nil, err
	}
	var present []v1alpha1.BundleApplication
	for _, one := range copies {
		present = append(present, one.BundleApplication)
	}
	return present, nil
}

// HasChoice tells whether a layer has applications that are not always there.
func HasChoice(layer *v1alpha1.BundleLayer) bool {
	return layer != nil && slices.ContainsFunc(layer.Applications, func(a v1alpha1.BundleApplication) bool { return a.When != "" || a.ForEach != "" })
}

// holds tells whether an expression is true.
func (f *filler) holds(field, when string) (bool, error) {
	uses, err := f.language.CheckCondition(when)
	if err != nil {
		return false, wrongHook(field, err)
	}
	if err := f.waits(uses); err != nil {
		return false, err
	}
	holds, err := f.language.Holds(when, f.data)
	if err != nil {
		return false, wrongHook(field, err)
	}
	return holds, nil
}
