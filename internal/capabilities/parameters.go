// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/printable"
)

// maxSchema bounds the schema of parameters, in bytes.
const maxSchema = 64 << 10

// maxSaid bounds what is said of parameters that do not match, in bytes.
const maxSaid = 500

// parameterSchema says which parameters a provider takes.
type parameterSchema struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
}

// schemaOf returns the schema of a provider's parameters; nil where it has none. The error says
// what is wrong with it, as the API server says it of a CustomResourceDefinition's.
func schemaOf(spec v1alpha1.CapabilityProviderSpec) (*parameterSchema, error) {
	if spec.Parameters == nil || len(spec.Parameters.Schema.Raw) == 0 {
		return nil, nil
	}
	raw := spec.Parameters.Schema.Raw
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("has more than %d bytes", maxSchema)
	}
	written := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict(raw, written); err != nil {
		return nil, errors.New("is no schema: " + printable.Line(err.Error(), maxSaid))
	}
	if written.Type != "object" {
		return nil, errors.New("must be of the type object")
	}
	if len(written.XValidations) > 0 {
		return nil, errors.New("x-kubernetes-validations: rules are not evaluated here")
	}
	schema := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(written, schema, nil); err != nil {
		return nil, fmt.Errorf("is no schema: %w", err)
	}
	structural, err := structuralschema.NewStructural(schema)
	if err != nil {
		return nil, fmt.Errorf("is no schema: %w", err)
	}
	if wrong := structuralschema.ValidateStructural(nil, structural); len(wrong) > 0 {
		return nil, errors.New(printable.Line(wrong.ToAggregate().Error(), maxSaid))
	}
	validator, _, err := validation.NewSchemaValidator(schema)
	if err != nil {
		return nil, errors.New("cannot be used: " + printable.Line(err.Error(), maxSaid))
	}
	return &parameterSchema{structural, validator}, nil
}

// Parameters returns what a claim gives, with the defaults of the provider's schema, or says
// what of it the provider does not take.
func (b *Blueprint) Parameters(claim v1alpha1.CapabilityClaimSpec) (filled map[string]any, problem string) {
	given, err := decodeObject(claim.Parameters)
	switch {
	case err != nil:
		return nil, "does not take the parameters: " + printable.Line(err.Error(), maxSaid)
	case b.schema == nil && len(given) > 0:
		return nil, "takes no parameters"
	case b.schema == nil:
		return given, ""
	}
	var wrong []string
	options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, path := range pruning.PruneWithOptions(given, b.schema.structural, false, options) {
		wrong = append(wrong, "there is no parameter "+path)
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(given, b.schema.structural)
	defaulting.Default(given, b.schema.structural)
	for _, each := range validation.ValidateCustomResource(field.NewPath("parameters"), given, b.schema.validator) {
		wrong = append(wrong, each.Error())
	}
	if len(wrong) > 0 {
		return nil, "does not take the parameters: " + printable.Line(strings.Join(wrong, ", "), maxSaid)
	}
	return given, ""
}
