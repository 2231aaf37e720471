// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/templates"
)

// maxCopies bounds how many applications a layer comes to, copies for items among them.
const maxCopies = 200

// copied is an application as it is there: as the layer has it, or for one item of a list.
type copied struct {
	v1alpha1.BundleApplication
	// of is its name in the layer.
	of string
	// fill fills its templates.
	fill *filler
}

// copiesOf returns the applications of a layer that are to be there, in order; all has
// those be there whose when is not true.
func copiesOf(layer *v1alpha1.BundleLayer, fill *filler, all bool) ([]copied, error) {
	var found []copied
	names := map[string]bool{}
	for _, application := range layer.Applications {
		copies, err := copiesFor(layer, application, fill)
		if err != nil {
			return nil, err
		}
		for _, one := range copies {
			field := fmt.Sprintf("layers[%s].applications[%s].", layer.Name, application.Name)
			if application.When != "" && !all {
				if there, err := one.fill.holds(field+"when", application.When); err != nil {
					return nil, err
				} else if !there {
					continue
				}
			}
			if names[one.Name] {
				return nil, wrongHook(field+"forEach", fmt.Errorf("there are two applications %s", one.Name))
			}
			names[one.Name] = true
			found = append(found, one)
		}
		if len(found) > maxCopies {
			return nil, wrongHook(fmt.Sprintf("layers[%s].applications", layer.Name), fmt.Errorf("there are more than %d with those for items", maxCopies))
		}
	}
	return found, nil
}

// copiesFor returns an application for each of its items, or as it is.
func copiesFor(layer *v1alpha1.BundleLayer, application v1alpha1.BundleApplication, fill *filler) ([]copied, error) {
	if application.ForEach == "" {
		return []copied{{application, application.Name, fill}}, nil
	}
	field := fmt.Sprintf("layers[%s].applications[%s].forEach", layer.Name, application.Name)
	value, err := fill.value(expression(application.ForEach))
	if err != nil {
		if waits := (*Waiting)(nil); errors.As(err, &waits) {
			return nil, err
		}
		return nil, wrongHook(field, err)
	}
	list, is := value.([]any)
	if value != nil && !is {
		return nil, wrongHook(field, fmt.Errorf("comes to %s, and must come to a list", templates.Described(value)))
	}
	copies := make([]copied, 0, len(list))
	for i, value := range list {
		item, name := itemOf(value)
		one := copied{application, application.Name, nil}
		one.Name = application.Name + "-" + name
		if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 || len(one.Name) > maxReleaseName {
			return nil, wrongHook(field, fmt.Errorf(
				"item %d has the name %q, and %s is no name of an application: it has small letters, digits and dashes, and at most %d of them",
				i, short(name), short(one.Name), maxReleaseName,
			))
		}
		if one.fill, err = fill.with(item); err != nil {
			return nil, err
		}
		copies = append(copies, one)
	}
	return copies, nil
}

// expression writes an expression as a template.
func expression(text string) string { return "${" + text + "}" }

// itemOf returns an item as templates have it, and its name; empty where it has none.
func itemOf(value any) (item map[string]any, name string) {
	if object, is := value.(map[string]any); is {
		name, _ = object["name"].(string)
		return object, name
	}
	name, _ = value.(string)
	return map[string]any{"name": name}, name
}

// copiesNamed returns the slots of an application of the layer.
func copiesNamed(all []slot, name string) []slot {
	return slices.DeleteFunc(slices.Clone(all), func(s slot) bool { return s.of != name })
}
