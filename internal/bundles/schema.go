// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/address"
)

// maxSaid bounds in bytes what is said of a value that does not match.
const maxSaid = 200

// maxSchema bounds the schema of an input in bytes.
const maxSchema = 16 << 10

// schemaTypes are the types of inputs in the words of a schema.
var schemaTypes = map[v1alpha1.InputType]string{
	"": "string", v1alpha1.InputString: "string", v1alpha1.InputInteger: "integer", v1alpha1.InputNumber: "number",
	v1alpha1.InputBoolean: "boolean", v1alpha1.InputObject: "object", v1alpha1.InputArray: "array",
}

// schemaOf returns the schema of an input; nil where it has none. The error says what is
// wrong with it, as the API server says it of the schema of a CustomResourceDefinition.
func schemaOf(input v1alpha1.BundleInput) (*apiextensions.JSONSchemaProps, error) {
	if input.Schema == nil || len(input.Schema.Raw) == 0 {
		return nil, nil
	}
	if len(input.Schema.Raw) > maxSchema {
		return nil, fmt.Errorf("has more than %d bytes", maxSchema)
	}
	written := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict(input.Schema.Raw, written); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	want := schemaTypes[input.Type]
	if written.Type == "" {
		written.Type = want
	}
	if written.Type != want {
		return nil, fmt.Errorf("type: is %s, and the input is of the type %s", written.Type, want)
	}
	for word, given := range map[string]bool{
		"default: give it in the input's default":                             written.Default != nil,
		"x-kubernetes-validations: rules are not evaluated here":              len(written.XValidations) > 0,
		"x-kubernetes-embedded-resource: an input is no object of Kubernetes": written.XEmbeddedResource,
	} {
		if given {
			return nil, errors.New(word)
		}
	}
	schema := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(written, schema, nil); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	// Those of CustomResourceDefinitions are of objects.
	structural, err := structuralschema.NewStructural(&apiextensions.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{input.Name: *schema},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	if wrong := structuralschema.ValidateStructural(nil, structural); len(wrong) > 0 {
		return nil, wrong.ToAggregate()
	}
	if _, _, err := validation.NewSchemaValidator(schema); err != nil {
		return nil, fmt.Errorf("cannot be used: %w", err)
	}
	return schema, nil
}

// matches says what of a value its input's schema does not allow; nil for nothing. Nothing
// of the value beyond its beginning is repeated.
func matches(input v1alpha1.BundleInput, value any) error {
	schema, err := schemaOf(input)
	if schema == nil || err != nil {
		return nil // The bundle says what is wrong with a schema, and is not installed.
	}
	validator, _, err := validation.NewSchemaValidator(schema)
	if err != nil {
		return nil // as above
	}
	wrong := validation.ValidateCustomResource(field.NewPath(input.Name), value, validator)
	if len(wrong) == 0 {
		return nil
	}
	first := wrong[0]
	path, said := strings.ReplaceAll(first.Field, ".[", "["), strings.TrimPrefix(strings.TrimSpace(cmp.Or(first.Detail, first.ErrorBody())), "in body ")
	message := fmt.Sprintf("does not match its schema: %s: %s", path, address.Line(said, maxSaid))
	if more := len(wrong) - 1; more > 0 {
		message += fmt.Sprintf(", and %d more", more)
	}
	return errors.New(message)
}
