// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/directories"
)

const (
	helmGroup   = "helm.toolkit.fluxcd.io"
	sourceGroup = "source.toolkit.fluxcd.io"
)

// conversion says how the specification of a Flux kind that clusters no longer
// serve becomes one of the version that they do serve.
type conversion struct {
	group, kind string
	from        []string
	to          string
	spec        func(spec map[string]any) *directories.ContentError
}

// conversions follow Flux's own upgrade notes. What is not named in them has
// the same form and meaning in the served version.
var conversions = []conversion{
	{helmGroup, "HelmRelease", []string{"v2beta1", "v2beta2"}, "v2", convertHelmRelease},
	{sourceGroup, "HelmRepository", []string{"v1beta1", "v1beta2"}, "v1", nil},
	{sourceGroup, "HelmChart", []string{"v1beta1", "v1beta2"}, "v1", convertHelmChart},
	{sourceGroup, "OCIRepository", []string{"v1beta2"}, "v1", nil},
	{sourceGroup, "GitRepository", []string{"v1beta1", "v1beta2"}, "v1", drop("gitImplementation", "accessFrom")},
	{sourceGroup, "Bucket", []string{"v1beta1", "v1beta2"}, "v1", drop("accessFrom")},
}

// convert changes an object of an earlier version of Flux's API to the one
// that clusters serve. Fields that it does not know survive. The error has no
// file and line.
func convert(object *unstructured.Unstructured) *directories.ContentError {
	gvk := object.GroupVersionKind()
	for _, c := range conversions {
		if gvk.Group != c.group || gvk.Kind != c.kind {
			continue
		}
		for _, version := range c.from {
			if gvk.Version == version {
				return c.apply(object)
			}
		}
	}
	return nil
}

func (c conversion) apply(object *unstructured.Unstructured) *directories.ContentError {
	object.SetAPIVersion(schema.GroupVersion{Group: c.group, Version: c.to}.String())
	if spec, ok := object.Object["spec"].(map[string]any); ok && c.spec != nil {
		return c.spec(spec)
	}
	return nil
}

// drop leaves out fields that were without effect before they were removed.
func drop(names ...string) func(map[string]any) *directories.ContentError {
	return func(spec map[string]any) *directories.ContentError {
		for _, name := range names {
			delete(spec, name)
		}
		return nil
	}
}

func convertHelmChart(spec map[string]any) *directories.ContentError {
	delete(spec, "accessFrom")
	return convertValuesFile(spec, "spec")
}

func convertHelmRelease(spec map[string]any) *directories.ContentError {
	if chart, ok := spec["chart"].(map[string]any); ok {
		if chartSpec, ok := chart["spec"].(map[string]any); ok {
			if err := convertValuesFile(chartSpec, "spec.chart.spec"); err != nil {
				return err
			}
		}
	}
	renderers, _ := spec["postRenderers"].([]any)
	for i, renderer := range renderers {
		renderer, _ := renderer.(map[string]any)
		kustomize, ok := renderer["kustomize"].(map[string]any)
		if !ok {
			continue
		}
		if err := convertPatches(kustomize, fmt.Sprintf("spec.postRenderers[%d].kustomize", i)); err != nil {
			return err
		}
	}
	return nil
}

// convertValuesFile puts valuesFile before valuesFiles, the order in which
// source-controller merged them.
func convertValuesFile(spec map[string]any, at string) *directories.ContentError {
	value, ok := spec["valuesFile"]
	delete(spec, "valuesFile")
	if !ok || value == nil || value == "" {
		return nil
	}
	file, ok := value.(string)
	if !ok {
		return invalid("", 0, at+".valuesFile", "must be a string, and is %s", described(value))
	}
	files, ok := spec["valuesFiles"].([]any)
	if !ok && spec["valuesFiles"] != nil {
		return invalid("", 0, at+".valuesFiles", "must be a list, and is %s", described(spec["valuesFiles"]))
	}
	spec["valuesFiles"] = append([]any{file}, files...)
	return nil
}

// convertPatches makes patches of the two older forms. kustomize applied
// strategic merges first and JSON patches last.
func convertPatches(kustomize map[string]any, at string) *directories.ContentError {
	const first, middle, last = "patchesStrategicMerge", "patches", "patchesJson6902"
	if kustomize[first] == nil && kustomize[last] == nil {
		delete(kustomize, first)
		delete(kustomize, last)
		return nil
	}
	var patches []any
	for _, form := range []struct {
		name string
		make func(any) (any, bool)
	}{{first, fromStrategicMerge}, {middle, unchanged}, {last, fromJSONPatch}} {
		list, ok := kustomize[form.name].([]any)
		if !ok && kustomize[form.name] != nil {
			return invalid("", 0, at+"."+form.name, "must be a list, and is %s", described(kustomize[form.name]))
		}
		for i, item := range list {
			patch, ok := form.make(item)
			if !ok {
				return invalid("", 0, fmt.Sprintf("%s.%s[%d]", at, form.name, i), "is not a patch that can be converted: write it as an element of patches")
			}
			patches = append(patches, patch)
		}
		delete(kustomize, form.name)
	}
	kustomize[middle] = patches
	return nil
}

func unchanged(patch any) (any, bool) { return patch, true }

// fromStrategicMerge converts an object, or an object that is written as text.
func fromStrategicMerge(patch any) (any, bool) {
	switch patch := patch.(type) {
	case string:
		return map[string]any{"patch": patch}, strings.TrimSpace(patch) != ""
	case map[string]any:
		text, err := yaml.Marshal(patch)
		return map[string]any{"patch": string(text)}, err == nil
	}
	return nil, false
}

func fromJSONPatch(item any) (any, bool) {
	old, ok := item.(map[string]any)
	if !ok {
		return nil, false
	}
	if _, ok := old["patch"].([]any); !ok {
		return nil, false
	}
	text, err := yaml.Marshal(old["patch"])
	if err != nil {
		return nil, false
	}
	patch := make(map[string]any, len(old))
	for key, value := range old {
		patch[key] = value
	}
	patch["patch"] = string(text)
	return patch, true
}
