// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkMetadata returns what no object may have in its metadata, of whatever kind.
func checkMetadata(object *unstructured.Unstructured) []Mistake {
	metadata, _ := object.Object["metadata"].(map[string]any)
	found := checkLabels(metadata["labels"], "metadata.labels")
	found = append(found, checkAnnotations(metadata["annotations"], "metadata.annotations")...)
	finalizers, _ := metadata["finalizers"].([]any)
	for i, each := range finalizers {
		if name, is := each.(string); is && len(apivalidation.ValidateFinalizerName(name, field.NewPath(""))) > 0 {
			found = append(found, Mistake{Field: fmt.Sprintf("metadata.finalizers[%d]", i), Message: "is no name of a finalizer: write one such as example.com/name"})
		}
	}
	return found
}

// checkLabels checks the keys and values of labels.
func checkLabels(labels any, at string) []Mistake {
	written, _ := labels.(map[string]any)
	var found []Mistake
	for _, key := range slices.Sorted(maps.Keys(written)) {
		found = append(found, checkKey(key, key, at)...)
		if value, is := written[key].(string); is && !isOpen(value) {
			for _, said := range validation.IsValidLabelValue(value) {
				found = append(found, Mistake{Field: at + "[" + key + "]", Message: "is no value of a label: " + said})
			}
		}
	}
	return found
}

// checkAnnotations checks the keys of annotations, and how large all of them are.
func checkAnnotations(annotations any, at string) []Mistake {
	written, _ := annotations.(map[string]any)
	var found []Mistake
	size := 0
	for _, key := range slices.Sorted(maps.Keys(written)) {
		found = append(found, checkKey(key, strings.ToLower(key), at)...)
		value, _ := written[key].(string)
		size += len(key) + len(value)
	}
	if size > apivalidation.TotalAnnotationSizeLimitB {
		found = append(found, Mistake{
			Field: at, Message: fmt.Sprintf("have %d KiB, and an object may have %d of annotations: put what is large into a ConfigMap",
				size>>10, apivalidation.TotalAnnotationSizeLimitB>>10),
		})
	}
	return found
}

func checkKey(key, checked, at string) []Mistake {
	var found []Mistake
	if isOpen(key) {
		return nil
	}
	for _, said := range validation.IsQualifiedName(checked) {
		found = append(found, Mistake{Field: at + "[" + key + "]", Message: "is no key of a label or an annotation: " + said})
	}
	return found
}

// checkSelector checks what a selector of labels says.
func checkSelector(written map[string]any, at string) []Mistake {
	var selector metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(written, &selector) != nil {
		return nil // which is said of its fields
	}
	var found []Mistake
	for _, err := range metav1validation.ValidateLabelSelector(&selector, metav1validation.LabelSelectorValidationOptions{}, nil) {
		found = append(found, Mistake{Field: at + "." + strings.TrimPrefix(err.Field, "<nil>."), Message: said(err)})
	}
	return found
}

// said is what the API server says, without the value.
func said(err *field.Error) string {
	if err.Detail == "" {
		return strings.ToLower(err.Type.String())
	}
	return err.Detail
}

// checkNames checks the names that only some kinds want, and the keys of data.
func checkNames(object *unstructured.Unstructured) []Mistake {
	gk, name := object.GroupVersionKind().GroupKind(), object.GetName()
	var found []Mistake
	refuse := func(said []string) {
		if isOpen(name) {
			return
		}
		for _, each := range said {
			found = append(found, Mistake{Field: "metadata.name", Message: "is no name of a " + gk.Kind + ": " + each})
		}
	}
	switch gk.String() {
	case "Namespace":
		refuse(apivalidation.ValidateNamespaceName(name, false))
	case "Service", "StatefulSet.apps":
		refuse(apivalidation.NameIsDNSLabel(name, false))
	case "CronJob.batch":
		// What it makes adds a time to its name.
		if most := validation.DNS1035LabelMaxLength - 11; len(name) > most {
			refuse([]string{validation.MaxLenError(most)})
		}
	case "CustomResourceDefinition.apiextensions.k8s.io":
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(object.Object, "spec", "names", "plural")
		if want := plural + "." + group; plural != "" && group != "" && name != want {
			refuse([]string{"spec.names.plural and spec.group make it " + want})
		}
	case "ConfigMap":
		found = append(checkDataKeys(object, "data"), checkDataKeys(object, "binaryData")...)
	case "Secret":
		found = append(checkDataKeys(object, "data"), checkDataKeys(object, "stringData")...)
	}
	return found
}

func checkDataKeys(object *unstructured.Unstructured, name string) []Mistake {
	data, _ := object.Object[name].(map[string]any)
	var found []Mistake
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if isOpen(key) {
			continue
		}
		for _, said := range validation.IsConfigMapKey(key) {
			found = append(found, Mistake{Field: name + "[" + key + "]", Message: "is no key of a " + object.GetKind() + ": " + said})
		}
	}
	return found
}
