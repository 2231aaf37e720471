// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/envsubst"
	"github.com/fluxcd/pkg/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/builds"
)

// generate asks Flux's generator, which reads files of a folder.
func generate(folder string, request *Request) (*Kustomization, error) {
	// Its messages have the whole name of the folder, which is another one each time.
	folder, err := filepath.Abs(folder)
	if err == nil {
		folder, err = filepath.EvalSymlinks(folder)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find the files: %w", err)
	}
	of := unstructured.Unstructured{Object: map[string]any{"spec": request.Generate}}
	text, file, _, err := kustomize.NewGenerator(folder, of).GenerateManifest(filepath.Join(folder, filepath.FromSlash(request.Directory)))
	if err != nil {
		return nil, &Refusal{strings.ReplaceAll(err.Error(), folder+string(filepath.Separator), "")}
	}
	name, err := filepath.Rel(folder, file)
	if err != nil {
		return nil, fmt.Errorf("the generator names a file of another folder: %w", err)
	}
	return &Kustomization{File: filepath.ToSlash(name), Text: text}, nil
}

// layOut writes files into a folder.
func layOut(folder string, files map[string][]byte) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // the files are closed
	for _, name := range slices.Sorted(maps.Keys(files)) {
		name = filepath.FromSlash(name)
		if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := root.WriteFile(name, files[name], 0o600); err != nil {
			return err
		}
	}
	return nil
}

// beginning is how a variable begins, behind what may say that it is none.
var beginning = regexp.MustCompile(`(\$*)\$\{([_[:alpha:]][_[:alpha:][:digit:]]*)`)

// keepUnknown has substitution leave each variable that is not known, with all that stands
// in its braces, as it is written.
func keepUnknown(text []byte, known map[string]string) []byte {
	return beginning.ReplaceAllFunc(text, func(found []byte) []byte {
		parts := beginning.FindSubmatch(found)
		if _, is := known[string(parts[2])]; is || len(parts[1])%2 == 1 {
			return found
		}
		return append([]byte("$"), found...)
	})
}

// rewrite makes an object anew of its text.
func rewrite(made *resource.Resource, text []byte) error {
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	return made.UnmarshalJSON(data)
}

// maxUnset is how many variables are named that nobody gives.
const maxUnset = 20

// substitute puts values in the place of the variables of an object, as Flux does it, and
// notes what it reads.
func (o *Object) substitute(made *resource.Resource, with *builds.Substitution) error {
	if with == nil || len(with.Variables) == 0 && !with.Always {
		return nil
	}
	text, err := made.AsYAML()
	if err != nil {
		return err
	}
	identity := strings.Join([]string{made.GetApiVersion(), made.GetKind(), made.GetNamespace(), made.GetName()}, "\n")
	variables := make(map[string]any, len(with.Variables))
	for name, value := range with.Variables {
		variables[name] = value
	}
	if with.Keep {
		if err := rewrite(made, keepUnknown(text, with.Variables)); err != nil {
			return err
		}
	}
	of := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"postBuild": map[string]any{"substitute": variables}}}}
	done, err := kustomize.SubstituteVariables(context.Background(), nil, of, made,
		kustomize.SubstituteWithDryRun(true), kustomize.SubstituteWithAlways(with.Always), kustomize.SubstituteWithStrict(with.Strict))
	if err == nil && done == nil && with.Keep {
		return rewrite(made, text) // it wants no variables put in
	}
	if err != nil || done == nil {
		return err
	}
	var read map[string]bool
	read, o.Unset = variablesOf(string(text), with.Variables)
	if with.Keep {
		o.Unset = nil // somebody else may give them
	}
	o.Confidential = slices.ContainsFunc(with.Secrets, func(name string) bool { return read[name] })
	if o.Confidential && strings.Contains(identity, "$") {
		named, _ := variablesOf(identity, with.Variables)
		for _, name := range with.Secrets {
			if named[name] {
				o.Named = append(o.Named, name)
			}
		}
	}
	return nil
}

// variablesOf returns the variables of a text that are read, and, sorted, those that nobody
// gives and that have no default. Flux's own strictness tells which those are: it stops at
// each.
func variablesOf(text string, variables map[string]string) (read map[string]bool, unset []string) {
	read = map[string]bool{}
	missing := map[string]bool{}
	for len(missing) < maxUnset {
		var last string
		_, err := envsubst.Eval(text, func(name string) (string, bool) {
			read[name] = true
			if value, given := variables[name]; given || missing[name] {
				return value, true
			}
			last = name
			return "", false
		})
		if err == nil || last == "" || missing[last] {
			break
		}
		missing[last] = true
	}
	return read, slices.Sorted(maps.Keys(missing))
}
