// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/config/crd"
	"github.com/strata-project/strata/internal/schemas"
)

// example is a document of YAML on a page.
type example struct {
	// line of the page that it begins in, from 1.
	line int
	text string
}

var (
	fence  = regexp.MustCompile("^ *```")
	indent = regexp.MustCompile(`^ {4,}`)
	// A command that is shown, and the end of the text that it is given.
	prompt = regexp.MustCompile(`^ *(\$ .*|EOF)$`)
	// An action of a workflow, and the form in which it cannot change.
	action = regexp.MustCompile(`(?m)^ *-? *uses: *(.*)$`)
	pinned = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	// A mapping in a line, with the field before it, and the field that a paragraph is about.
	fragment = regexp.MustCompile("`(?:([a-zA-Z.]+): ?)?({[^`]*})`")
	about    = regexp.MustCompile(`^(?:- |\| )?\*\*([a-zA-Z.]+)\*\*`)
	ours     = regexp.MustCompile(`(?m)^[ -]*apiVersion: ['"]?` + regexp.QuoteMeta(v1alpha1.GroupVersion.Group) + `/`)
)

// examplesIn returns the documents of the blocks of a page, fenced and indented. A command
// that is shown ends a document, and its output begins one.
func examplesIn(page string) []example {
	var found []example
	var lines []string
	fenced, begins := false, 0
	end := func() {
		if text := strings.Join(lines, "\n"); strings.TrimSpace(text) != "" {
			found = append(found, example{line: begins, text: text})
		}
		lines = nil
	}
	for i, line := range strings.Split(page, "\n") {
		inside := fenced || indent.MatchString(line) || (len(lines) > 0 && strings.TrimSpace(line) == "")
		switch {
		case fence.MatchString(line):
			fenced = !fenced
			end()
		case !inside, strings.TrimSpace(line) == "---", prompt.MatchString(line):
			end()
		default:
			if len(lines) == 0 {
				begins = i + 1
			}
			lines = append(lines, line)
		}
	}
	end()
	return found
}

// objectsOf returns the objects of Strata's kinds in what a document holds, at any depth.
// A reference to an object, which has no content, is none.
func objectsOf(value any) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	switch of := value.(type) {
	case map[string]any:
		version, _ := of["apiVersion"].(string)
		_, named := of["metadata"]
		_, filled := of["spec"]
		if strings.HasPrefix(version, v1alpha1.GroupVersion.Group+"/") && (named || filled) {
			return []*unstructured.Unstructured{{Object: of}}
		}
		for _, each := range of {
			found = append(found, objectsOf(each)...)
		}
	case []any:
		for _, each := range of {
			found = append(found, objectsOf(each)...)
		}
	}
	return found
}

// pagesOfUsers returns the texts of the pages that people copy from, by file.
func pagesOfUsers(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, name := range append(names, "README.md", "chart/README.md", "examples/README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages[name] = string(text)
	}
	return pages
}

// Every object of Strata's kinds that a page shows is taken by the API server: it has no
// field that does not exist, and the rules of its kind hold.
func TestExamplesOnPagesAreValid(t *testing.T) {
	known, err := schemas.Read()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for name, page := range pagesOfUsers(t) {
		for _, example := range examplesIn(page) {
			if !ours.MatchString(example.text) {
				continue
			}
			var value any
			if err := yaml.UnmarshalStrict([]byte(example.text), &value); err != nil {
				t.Errorf("%s:%d: the example is no YAML: %v", name, example.line, err)
				continue
			}
			for _, object := range objectsOf(value) {
				checked++
				for _, mistake := range known.Check(t.Context(), object) {
					t.Errorf("%s:%d: %s %s: %s: %s", name, example.line, object.GetKind(), object.GetName(), mistake.Field, mistake.Message)
				}
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d objects were looked at", checked)
	}
}

// fieldsNamed returns the schemas of all fields of Strata's kinds, by name; of a list that
// of its items.
func fieldsNamed(t *testing.T) map[string][]apiextensionsv1.JSONSchemaProps {
	t.Helper()
	found := map[string][]apiextensionsv1.JSONSchemaProps{}
	var walk func(name string, of apiextensionsv1.JSONSchemaProps)
	walk = func(name string, of apiextensionsv1.JSONSchemaProps) {
		switch {
		case of.Items != nil && of.Items.Schema != nil:
			walk(name, *of.Items.Schema)
			return
		case of.AdditionalProperties != nil && of.AdditionalProperties.Schema != nil:
			walk("", *of.AdditionalProperties.Schema)
		}
		found[name] = append(found[name], of)
		for each, property := range of.Properties {
			walk(each, property)
		}
	}
	names, err := fs.Glob(crd.Bases, "bases/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := fs.ReadFile(crd.Bases, name)
		if err != nil {
			t.Fatal(err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(data, &definition); err != nil {
			t.Fatal(err)
		}
		for _, version := range definition.Spec.Versions {
			walk("", *version.Schema.OpenAPIV3Schema)
		}
	}
	return found
}

// refusal says why a schema refuses a mapping; nil where it takes it.
func refusal(ctx context.Context, published *apiextensionsv1.JSONSchemaProps, value map[string]any) error {
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(published, internal, nil); err != nil {
		return err
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		return err
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return err
	}
	if errs := validation.ValidateCustomResource(field.NewPath("it"), value, validator); len(errs) > 0 {
		return errs.ToAggregate()
	}
	pruned := (&unstructured.Unstructured{Object: value}).DeepCopy().Object
	if unknown := pruning.PruneWithOptions(pruned, structural, false, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}); len(unknown) > 0 {
		return fmt.Errorf("there is no such field: %s", strings.Join(unknown, ", "))
	}
	if rules := cel.NewValidator(structural, false, celconfig.PerCallLimit); rules != nil {
		errs, _ := rules.Validate(ctx, field.NewPath("it"), structural, value, nil, celconfig.RuntimeCELCostBudget)
		return errs.ToAggregate()
	}
	return nil
}

// fragmentOf is a mapping within a line, and the field that it is a value of.
type fragmentOf struct {
	line        int
	field, text string
}

// fragmentsIn returns the mappings in the lines of a page whose field the line names, in
// front of the mapping or, in bold, at its beginning.
func fragmentsIn(page string) []fragmentOf {
	var found []fragmentOf
	for i, line := range strings.Split(page, "\n") {
		subject := about.FindStringSubmatch(line)
		for _, match := range fragment.FindAllStringSubmatch(line, -1) {
			name := match[1]
			if name == "" && subject != nil {
				name = subject[1]
			}
			if name != "" {
				found = append(found, fragmentOf{line: i + 1, field: name[strings.LastIndex(name, ".")+1:], text: match[2]})
			}
		}
	}
	return found
}

// Every mapping that a line shows as the value of a field is taken where a kind of Strata
// has that field. Fields of others, such as values of the chart, are not looked at.
func TestFragmentsOnPagesAreValid(t *testing.T) {
	fields, checked := fieldsNamed(t), 0
	for name, page := range pagesOfUsers(t) {
		for _, shown := range fragmentsIn(page) {
			if len(fields[shown.field]) == 0 {
				continue
			}
			checked++
			var value map[string]any
			if err := yaml.UnmarshalStrict([]byte(shown.text), &value); err != nil {
				t.Errorf("%s:%d: %s is no YAML: %v", name, shown.line, shown.text, err)
				continue
			}
			var last error
			for i := range fields[shown.field] {
				if last = refusal(t.Context(), &fields[shown.field][i], value); last == nil {
					break
				}
			}
			if last != nil {
				t.Errorf("%s:%d: no %s takes %s: %v", name, shown.line, shown.field, shown.text, last)
			}
		}
	}
	if checked < 3 {
		t.Errorf("only %d fragments were looked at", checked)
	}
}

// A workflow that a page offers for copying runs no action but at a commit.
func TestWorkflowsOnPagesPinActions(t *testing.T) {
	found := 0
	for name, page := range pagesOfUsers(t) {
		for _, match := range action.FindAllStringSubmatch(page, -1) {
			found++
			if !pinned.MatchString(match[1]) {
				t.Errorf("%s: %s is not OWNER/NAME@COMMIT # vMAJOR.MINOR.PATCH", name, match[1])
			}
		}
	}
	if found == 0 {
		t.Error("no action was found: workflows have another form")
	}
}
