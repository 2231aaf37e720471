// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"bytes"
	"errors"
	"fmt"
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
