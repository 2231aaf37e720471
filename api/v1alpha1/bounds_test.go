// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
)

// Every list of every status has a bound in the definition of its kind: what is accepted can
// be recorded. Lists are found by the Go types, so that none is left out.
func TestListsOfStatusesAreBounded(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	schemas := statusSchemas(t)
	lists := 0
	for kind, of := range scheme.KnownTypes(v1alpha1.GroupVersion) {
		status, has := of.FieldByName("Status")
		if !has || schemas[kind] == nil {
			continue
		}
		walk(status.Type, schemas[kind], kind+".status", func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			lists++
			if schema == nil || schema.MaxItems == nil {
				t.Errorf("%s has no bound: write +kubebuilder:validation:MaxItems, and cut it where it is made", path)
			}
		})
	}
	if lists < 30 {
		t.Errorf("only %d lists were found", lists)
	}
}

func statusSchemas(t *testing.T) map[string]*apiextensionsv1.JSONSchemaProps {
	t.Helper()
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	found := map[string]*apiextensionsv1.JSONSchemaProps{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, crd); err != nil {
			t.Fatal(err)
		}
		for _, version := range crd.Spec.Versions {
			if status, has := version.Schema.OpenAPIV3Schema.Properties["status"]; has {
				found[crd.Spec.Names.Kind] = &status
			}
		}
	}
	return found
}

// walk calls found with each list of a type, and its schema.
func walk(of reflect.Type, schema *apiextensionsv1.JSONSchemaProps, path string, found func(string, *apiextensionsv1.JSONSchemaProps)) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case schema != nil && len(schema.Properties) == 0 && of.Kind() == reflect.Struct: // written as one value, such as a time
	case of.Kind() == reflect.Slice && of.Elem().Kind() != reflect.Uint8:
		found(path, schema)
		var items *apiextensionsv1.JSONSchemaProps
		if schema != nil && schema.Items != nil {
			items = schema.Items.Schema
		}
		walk(of.Elem(), items, path+"[]", found)
	case of.Kind() == reflect.Map:
		found(path, schema)
	case of.Kind() == reflect.Struct && schema != nil:
		for i := range of.NumField() {
			field := of.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" && field.Anonymous {
				walk(field.Type, schema, path, found)
				continue
			}
			below, has := schema.Properties[name]
			if !has {
				continue
			}
			walk(field.Type, &below, path+"."+name, found)
		}
	}
}
