// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"
)

// defaults fills in what an API server fills in, by the schemas that it publishes
// to everybody.
type defaults map[schema.GroupVersionKind]map[string]any

// readDefaults reads the schemas of some versions of APIs. Versions that the
// cluster does not serve are left out.
func readDefaults(client openapi.Client, versions ...schema.GroupVersion) (defaults, error) {
	paths, err := client.Paths()
	if err != nil {
		return nil, fmt.Errorf("cannot read the schemas of the cluster: %w", err)
	}
	found := defaults{}
	for _, version := range versions {
		path := paths["apis/"+version.String()]
		if path == nil {
			continue
		}
		data, err := path.Schema(runtime.ContentTypeJSON)
		if err != nil {
			return nil, fmt.Errorf("cannot read the schemas of %s: %w", version, err)
		}
		if err := found.add(data); err != nil {
			return nil, fmt.Errorf("cannot understand the schemas of %s: %w", version, err)
		}
	}
	return found, nil
}

// add takes up the kinds of an OpenAPI document.
func (d defaults) add(data []byte) error {
	var document struct {
		Components struct {
			Schemas map[string]map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return err
	}
	for _, each := range document.Components.Schemas {
		kinds, _ := each["x-kubernetes-group-version-kind"].([]any)
		for _, item := range kinds {
			kind, _ := item.(map[string]any)
			text := func(key string) string { value, _ := kind[key].(string); return value }
			d[schema.GroupVersionKind{Group: text("group"), Version: text("version"), Kind: text("kind")}] = each
		}
	}
	return nil
}

// complete fills in an object.
func (d defaults) complete(object *unstructured.Unstructured) {
	if of := d[object.GroupVersionKind()]; of != nil {
		status, found := object.Object["status"]
		fill(object.Object, of)
		if !found {
			delete(object.Object, "status")
		} else {
			object.Object["status"] = status
		}
	}
}

// fill fills in the fields of a value that its schema has defaults for, and the
// value does not have.
func fill(value any, of map[string]any) {
	properties, _ := of["properties"].(map[string]any)
	more, _ := of["additionalProperties"].(map[string]any)
	items, _ := of["items"].(map[string]any)
	switch value := value.(type) {
	case map[string]any:
		for name, item := range properties {
			property, _ := item.(map[string]any)
			if usual, found := property["default"]; found && value[name] == nil {
				value[name] = runtime.DeepCopyJSONValue(whole(usual))
			}
			fill(value[name], property)
		}
		for name, field := range value {
			if _, known := properties[name]; !known && more != nil {
				fill(field, more)
			}
		}
	case []any:
		for _, item := range value {
			fill(item, items)
		}
	}
}

// whole makes integers of numbers that are whole, as objects have them.
func whole(value any) any {
	switch value := value.(type) {
	case float64:
		if value == float64(int64(value)) {
			return int64(value)
		}
	case map[string]any:
		for key, field := range value {
			value[key] = whole(field)
		}
	case []any:
		for i, item := range value {
			value[i] = whole(item)
		}
	}
	return value
}
