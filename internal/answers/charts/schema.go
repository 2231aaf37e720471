// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// schemaName is how messages of the schema library name a chart's schema.
const schemaName = "file:///values.schema.json"

// validate asks the schemas of a chart, and of those it depends on, whether they
// take the values. Helm's own function would let a schema read files of this machine
// and addresses of the network; here, what a schema names outside of itself takes
// any value.
func validate(c *chart.Chart, values any) error {
	var table map[string]any
	switch values := values.(type) {
	case common.Values:
		table = values
	case map[string]any:
		table = values
	default:
		return fmt.Errorf("%s: the values are no object", c.Name())
	}
	var refused []error
	if c.Schema != nil {
		if err := validateOne(c.Schema, table); err != nil {
			refused = append(refused, fmt.Errorf("%s: %w", c.Name(), err))
		}
	}
	for _, each := range c.Dependencies() {
		if of := table[each.Name()]; of != nil {
			refused = append(refused, validate(each, of))
		}
	}
	return errors.Join(refused...)
}

func validateOne(text []byte, values map[string]any) error {
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("values.schema.json cannot be understood: %w", err)
	}
	schema = withoutOutside(schema)
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(outside{})
	if err := compiler.AddResource(schemaName, schema); err != nil {
		return fmt.Errorf("values.schema.json cannot be understood: %w", err)
	}
	compiled, err := compiler.Compile(schemaName)
	if err != nil {
		return fmt.Errorf("values.schema.json cannot be understood: %w", err)
	}
	if err := compiled.Validate(values); err != nil {
		return errors.New(strings.TrimSpace(strings.TrimPrefix(err.Error(), "jsonschema validation failed with '"+schemaName+"#'\n")))
	}
	return nil
}

// outside loads what is outside of a schema: nothing, so that it takes any value.
type outside struct{}

// Load returns the schema that takes any value.
func (outside) Load(string) (any, error) { return true, nil }

// withoutOutside returns a schema in which a reference to a part of another one takes any
// value: that part is not there to be found. The schema is changed.
func withoutOutside(schema any) any {
	ids := map[string]bool{"": true}
	draft := ""
	if top, is := schema.(map[string]any); is {
		draft, _ = top["$schema"].(string)
	}
	idsOf(schema, ids)
	return dropOutside(schema, ids, strings.Contains(draft, "/draft-0"))
}

// dataKeywords are those whose values are no schemas.
var dataKeywords = []string{"const", "enum", "default", "examples"}

// idsOf adds the names that parts of a schema give themselves.
func idsOf(schema any, ids map[string]bool) {
	switch schema := schema.(type) {
	case []any:
		for _, item := range schema {
			idsOf(item, ids)
		}
	case map[string]any:
		if id, is := schema["$id"].(string); is {
			ids[strings.TrimSuffix(id, "#")] = true
		}
		for _, item := range schema {
			idsOf(item, ids)
		}
	}
}

// dropOutside is withoutOutside for a part. alone is true where nothing beside a reference
// counts, as in the older drafts.
func dropOutside(schema any, ids map[string]bool, alone bool) any {
	switch schema := schema.(type) {
	case []any:
		for i, item := range schema {
			schema[i] = dropOutside(item, ids, alone)
		}
	case map[string]any:
		if to, is := schema["$ref"].(string); is {
			if base, _, _ := strings.Cut(to, "#"); !ids[base] {
				if alone {
					return true
				}
				delete(schema, "$ref")
			}
		}
		for key, item := range schema {
			if !slices.Contains(dataKeywords, key) {
				schema[key] = dropOutside(item, ids, alone)
			}
		}
	}
	return schema
}
