// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"strings"
	"testing"

	"github.com/strata-project/strata/api/v1alpha1"
)

func withSchema(kind v1alpha1.InputType, schema, fallback string) *v1alpha1.ApplicationBundle {
	b := &v1alpha1.ApplicationBundle{}
	input := v1alpha1.BundleInput{Name: "size", Type: kind, Schema: rawJSON(schema)}
	if fallback != "" {
		input.Default = rawJSON(fallback)
	}
	b.Spec.Inputs = []v1alpha1.BundleInput{input}
	return b
}

// What an input's schema does not allow is refused, with the path of what is wrong.
func TestInputsMatchTheirSchema(t *testing.T) {
	pools := `{"maxItems": 2, "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "pattern": "^[a-z]+$"}, "nodes": {"type": "integer", "minimum": 1}}}}`
	for _, test := range []struct {
		kind          v1alpha1.InputType
		schema, value string
		wrong         string
	}{
		{"", `{"pattern": "^v[0-9]+$"}`, `"v1"`, ""},
		{"", `{"pattern": "^v[0-9]+$"}`, `"one"`, "input size does not match its schema: size: should match '^v[0-9]+$'"},
		{"", `{"maxLength": 3}`, `"four"`, "may not be more than 3 bytes"},
		{v1alpha1.InputInteger, `{"minimum": 1, "maximum": 9}`, `9`, ""},
		{v1alpha1.InputInteger, `{"minimum": 1, "maximum": 9}`, `10`, "should be less than or equal to 9"},
		{v1alpha1.InputNumber, `{"multipleOf": 0.5}`, `1.25`, "should be a multiple of 0.5"},
		{v1alpha1.InputArray, pools, `[{"name": "a", "nodes": 1}]`, ""},
		{v1alpha1.InputArray, pools, `[{"name": "a"}, {"name": "b"}, {"name": "c"}]`, "size: "},
		{v1alpha1.InputArray, pools, `[{"nodes": 1}]`, "size[0].name"},
		{v1alpha1.InputArray, pools, `[{"name": "A", "nodes": 0}]`, ", and 1 more"},
		{v1alpha1.InputObject, `{"properties": {"a": {"type": "string"}}}`, `{"a": 1}`, "size.a"},
	} {
		b := withSchema(test.kind, test.schema, test.value)
		if problems := Check(b, nil); strings.Contains(strings.Join(problems, "; "), "schema: ") && test.wrong == "" {
			t.Errorf("%s of %s cannot be published: %v", test.value, test.schema, problems)
		}
		value, err := decode(rawJSON(test.value))
		if err != nil {
			t.Fatal(err)
		}
		_, problems := Resolve(b, map[string]any{"size": value})
		if got := strings.Join(problems, "; "); (test.wrong == "") != (got == "") || !strings.Contains(got, test.wrong) {
			t.Errorf("%s of %s: %q, want %q", test.value, test.schema, got, test.wrong)
		}
	}
}

// A schema that is none keeps its bundle from being published, and says why.
func TestSchemasThatAreNone(t *testing.T) {
	for schema, wrong := range map[string]string{
		`{"patern": "x"}`:     "inputs[size].schema: cannot be read",
		`{"pattern": "("}`:    "inputs[size].schema",
		`{"type": "integer"}`: "inputs[size].schema: type: is integer, and the input is of the type string",
		`{"default": "x"}`:    "inputs[size].schema: default: give it in the input's default",
		`{"x-kubernetes-validations": [{"rule": "true"}]}`:                          "rules are not evaluated here",
		`{"properties": {"a": {}}, "type": "string"}`:                               "inputs[size].schema",
		`{"maxLength": 3, "description": "` + strings.Repeat("x", maxSchema) + `"}`: "inputs[size].schema: has more than",
	} {
		if got := strings.Join(Check(withSchema("", schema, ""), nil), "; "); !strings.Contains(got, wrong) {
			t.Errorf("%.60s says %q, want %q", schema, got, wrong)
		}
	}
}
