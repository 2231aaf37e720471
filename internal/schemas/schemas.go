// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schemas checks objects of Strata's own kinds, and of those that others define, as the
// API server does, without one.
package schemas

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/config/crd"
	"github.com/strata-project/strata/internal/near"
)

// Mistake is what is wrong with one object.
type Mistake struct {
	// Unknown is true for a field that the kind does not have.
	Unknown bool
	// Field is its path, such as spec.hosts[0].name; Message says what is wrong with it.
	Field, Message string
}

// Schemas are the kinds that Strata defines itself, and those that it was told of. They are not safe for concurrent use.
type Schemas struct {
	kinds map[schema.GroupVersionKind]*kindSchema
	// group of these kinds, and what others define.
	group   string
	defined map[schema.GroupVersionKind]*kindSchema
	// names of the kinds, and the versions of the group, both sorted.
	names, versions []string
}

// kindSchema checks objects of one kind, as the API server does when one is made.
// Its rules are compiled when the first object is checked: that takes a while.
type kindSchema struct {
	namespaced bool
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

// Read reads the definitions that this program was built with.
func Read() (*Schemas, error) {
	found := &Schemas{kinds: map[schema.GroupVersionKind]*kindSchema{}, group: v1alpha1.GroupVersion.Group, defined: map[schema.GroupVersionKind]*kindSchema{}}
	names, err := fs.Glob(crd.Bases, "bases/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := found.read(name); err != nil {
			return nil, fmt.Errorf("cannot understand %s: %w", name, err)
		}
	}
	kinds, versions := map[string]bool{}, map[string]bool{}
	for gvk := range found.kinds {
		kinds[gvk.Kind], versions[gvk.Version] = true, true
	}
	found.names, found.versions = slices.Sorted(maps.Keys(kinds)), slices.Sorted(maps.Keys(versions))
	return found, nil
}

func (s *Schemas) read(name string) error {
	data, err := fs.ReadFile(crd.Bases, name)
	if err != nil {
		return err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, definition); err != nil {
		return err
	}
	for _, version := range definition.Spec.Versions {
		kind, err := newKindSchema(version.Schema.OpenAPIV3Schema)
		if err != nil {
			return err
		}
		kind.namespaced = definition.Spec.Scope == apiextensionsv1.NamespaceScoped
		s.kinds[schema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind}] = kind
	}
	return nil
}

func newKindSchema(published *apiextensionsv1.JSONSchemaProps) (*kindSchema, error) {
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(published, internal, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return nil, err
	}
	return &kindSchema{structural: structural, validator: validator}, nil
}

// Check returns what the API server would say of an object of one of Strata's
// kinds, and which fields it would drop.
func (s *Schemas) Check(ctx context.Context, object *unstructured.Unstructured) []Mistake {
	gvk := object.GroupVersionKind()
	kind := s.kinds[gvk]
	switch {
	case kind != nil:
		return kind.check(ctx, object.DeepCopy())
	case !slices.Contains(s.names, gvk.Kind):
		return []Mistake{{Field: "kind", Message: fmt.Sprintf("there is no kind %s in %s%s", gvk.Kind, gvk.Group, near.Meant(gvk.Kind, s.names))}}
	default:
		return []Mistake{
			{Field: "apiVersion", Message: fmt.Sprintf("%s has no version %s: write %s/%s", gvk.Kind, gvk.Version, gvk.Group, strings.Join(s.versions, " or "))},
		}
	}
}

// Define takes a definition of somebody else's kind. One that cannot be understood is left
// out: its kind is then not checked.
func (s *Schemas) Define(object *unstructured.Unstructured) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, definition) != nil || definition.Spec.Group == s.group {
		return
	}
	for _, version := range definition.Spec.Versions {
		gvk := schema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind}
		if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			continue
		}
		if kind, err := newKindSchema(version.Schema.OpenAPIV3Schema); err == nil {
			kind.namespaced = definition.Spec.Scope == apiextensionsv1.NamespaceScoped
			s.defined[gvk] = kind
		}
	}
}

// CheckDefined returns what the API server would say of an object of a kind that was defined;
// nothing of any other.
func (s *Schemas) CheckDefined(ctx context.Context, object *unstructured.Unstructured) []Mistake {
	kind := s.defined[object.GroupVersionKind()]
	if kind == nil {
		return nil
	}
	return kind.check(ctx, object.DeepCopy())
}

func (k *kindSchema) check(ctx context.Context, object *unstructured.Unstructured) []Mistake {
	delete(object.Object, "status") // the API server drops it, too, and says nothing
	// A namespace is given by whoever applies the object, or is without meaning.
	switch {
	case !k.namespaced:
		unstructured.RemoveNestedField(object.Object, "metadata", "namespace")
	case object.GetNamespace() == "":
		object.SetNamespace("default")
	}
	found := k.unknown(object.Object)
	defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, k.structural)
	defaulting.Default(object.Object, k.structural)

	errs := metavalidation.ValidateObjectMetaAccessor(object, k.namespaced, metavalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, validation.ValidateCustomResource(nil, object.Object, k.validator)...)
	errs = append(errs, objectmeta.Validate(nil, object.Object, k.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, object.Object)...)
	// Expressions may rely on what the schema says, so they are asked last.
	if len(errs) == 0 {
		if k.rules == nil {
			k.rules = cel.NewValidator(k.structural, true, celconfig.PerCallLimit)
		}
		broken, _ := k.rules.Validate(ctx, nil, k.structural, object.Object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	for _, err := range errs {
		found = append(found, Mistake{Field: strings.TrimPrefix(err.Field, "<nil>"), Message: saidPlainly(err)})
	}
	return found
}

// saidPlainly returns what the API server says, and of a text that YAML takes for something
// else what to do.
func saidPlainly(err *field.Error) string {
	is := map[string]string{`"integer"`: "a number", `"number"`: "a number", `"boolean"`: "true or false"}[fmt.Sprintf("%q", fmt.Sprint(err.BadValue))]
	if is == "" || !strings.Contains(err.Detail, "must be of type string") {
		return err.ErrorBody()
	}
	return "must be a text, and YAML reads it as " + is + ": quote it"
}

// unknown drops the fields that the schema does not have, and says which.
func (k *kindSchema) unknown(object map[string]any) []Mistake {
	options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	paths := pruning.PruneWithOptions(object, k.structural, true, options)
	slices.Sort(paths)
	var found []Mistake
	for _, name := range paths {
		found = append(found, UnknownField(name, k.siblings(name)))
	}
	return found
}

// UnknownField says that a field is none, and which one may be meant.
func UnknownField(name string, siblings []string) Mistake {
	last := name[strings.LastIndex(name, ".")+1:]
	return Mistake{Unknown: true, Field: name, Message: "there is no such field" + near.Meant(last, siblings)}
}

// siblings returns the fields that the schema has where a field is written.
func (k *kindSchema) siblings(name string) []string {
	at := k.structural
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	for _, part := range parts[:max(0, len(parts)-1)] {
		property, known := at.Properties[part]
		switch {
		case known:
			at = &property
		case at.Items != nil:
			at = at.Items
		case at.AdditionalProperties != nil && at.AdditionalProperties.Structural != nil:
			at = at.AdditionalProperties.Structural
		default:
			return nil
		}
	}
	return slices.Sorted(maps.Keys(at.Properties))
}
