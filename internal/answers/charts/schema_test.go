// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import "testing"

// What a schema names outside of itself takes any value, and all else counts.
func TestSchemasThatReferOutside(t *testing.T) {
	const seven, newest = `"$schema": "http://json-schema.org/draft-07/schema"`, `"$schema": "https://json-schema.org/draft/2020-12/schema"`
	values := map[string]any{"size": "small", "count": 3}
	for name, test := range map[string]struct {
		schema string
		taken  bool
	}{
		"a part of another":       {`{` + seven + `, "properties": {"size": {"$ref": "https://schemas.example.com/d.json#/size"}}}`, true},
		"a whole other":           {`{` + seven + `, "properties": {"size": {"$ref": "https://schemas.example.com/d.json"}}}`, true},
		"a part of a file":        {`{` + seven + `, "properties": {"size": {"$ref": "d.json#/definitions/size"}}}`, true},
		"and what is beside":      {`{` + newest + `, "properties": {"size": {"$ref": "https://schemas.example.com/d.json#/size", "type": "integer"}}}`, false},
		"beside in the old way":   {`{` + seven + `, "properties": {"size": {"$ref": "https://schemas.example.com/d.json#/size", "type": "integer"}}}`, true},
		"its own part":            {`{` + seven + `, "properties": {"size": {"$ref": "#/definitions/s"}}, "definitions": {"s": {"type": "integer"}}}`, false},
		"its own part by its id":  {`{` + seven + `, "$id": "https://x.example.com/a", "properties": {"size": {"$ref": "https://x.example.com/a#/definitions/s"}}, "definitions": {"s": {"type": "integer"}}}`, false},
		"a value that is no part": {`{` + seven + `, "properties": {"size": {"enum": [{"$ref": "x#/y"}]}}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := validateOne([]byte(test.schema), values); (err == nil) != test.taken {
				t.Errorf("taken: %v, %v", test.taken, err)
			}
		})
	}
}
