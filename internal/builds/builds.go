// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package builds says how the directory of a layer becomes objects: as it is, or in the
// way of Flux's kustomize-controller.
package builds

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strata-project/strata/api/v1alpha1"
)

// Build is how a directory becomes objects. The zero value takes its files, or what
// kustomize makes of its kustomization, as they are.
type Build struct {
	// Generator holds the fields that Flux's generator writes into the kustomization
	// of the directory, as the spec of a Flux Kustomization has them. Nil leaves the
	// directory as it is.
	Generator map[string]any `json:"generator,omitempty"`
	// Labels of every object.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of every object.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Decryption of files; nil leaves them encrypted, which is a mistake.
	Decryption *Decryption `json:"decryption,omitempty"`
	// VariablesUnknown is true where variables stay as they are written because it is not
	// known what they stand for.
	VariablesUnknown bool `json:"variablesUnknown,omitempty"`
	// Substitution of variables in the objects that the build makes; nil leaves them.
	Substitution *Substitution `json:"substitution,omitempty"`
}

// Keys are private keys, as texts.
type Keys struct {
	// Age holds the contents of age key files.
	Age []string `json:"age,omitempty"`
	// PGP holds armored private keys.
	PGP []string `json:"pgp,omitempty"`
}

// IsZero tells whether there is no key.
func (k Keys) IsZero() bool { return len(k.Age) == 0 && len(k.PGP) == 0 }

// Decryption opens encrypted files.
type Decryption struct {
	// Keys that open them.
	Keys Keys `json:"keys"`
	// Sealed leaves files encrypted, and takes their objects as they are written: what
	// a file holds cannot be told without a key, and all else can.
	Sealed bool `json:"sealed,omitempty"`
}

// Substitution puts values in the place of variables.
type Substitution struct {
	// Variables by their names.
	Variables map[string]string `json:"variables,omitempty"`
	// Secrets names those whose values come from Secrets, sorted.
	Secrets []string `json:"secrets,omitempty"`
	// Always substitutes also where there are no variables, for what has defaults.
	Always bool `json:"always,omitempty"`
	// Strict refuses a variable that nobody gives and that has no default.
	Strict bool `json:"strict,omitempty"`
	// Keep leaves a variable that nobody gives as it is written, with its default: somebody
	// may give it who is not known here.
	Keep bool `json:"keep,omitempty"`
}

// Variables are what one ConfigMap or Secret gives.
type Variables struct {
	Values map[string]string
	// Secret is true for those of a Secret.
	Secret bool
}

// VariablesOf returns what a ConfigMap or Secret gives. Its error names a key that is no
// name of a variable.
func VariablesOf(from *unstructured.Unstructured) (Variables, error) {
	v := Variables{Secret: from.GetKind() == "Secret"}
	var err error
	if v.Values, err = DataOf(from); err != nil {
		return v, err
	}
	for _, name := range slices.Sorted(maps.Keys(v.Values)) {
		if !variable.MatchString(name) {
			return v, fmt.Errorf("its key %.60q is no name of a variable: that begins with a letter or _, and has letters, digits and _", name)
		}
	}
	return v, nil
}

// VariablesWritten returns what a ConfigMap or Secret gives as a file has it, with its
// stringData. known is false for what gives nothing that can be used: it is encrypted, or
// broken.
func VariablesWritten(from *unstructured.Unstructured) (v Variables, known bool) {
	v, err := VariablesOf(from.DeepCopy())
	if err != nil {
		return Variables{}, false
	}
	if texts, _, _ := unstructured.NestedStringMap(from.Object, "stringData"); v.Secret && len(texts) > 0 {
		if v.Values == nil {
			v.Values = map[string]string{}
		}
		maps.Copy(v.Values, texts) // as the API server does it
	}
	for _, value := range v.Values {
		if strings.Contains(value, "ENC[") {
			return Variables{}, false
		}
	}
	return v, true
}

// KnownVariables returns what the ConfigMap or Secret of a name gives, as the objects of a
// repository say it. An object without a namespace may be it. known is false where there is
// none, and where several differ, as those of two clusters do.
func KnownVariables(among []*unstructured.Unstructured, kind, namespace, name string) (v Variables, known bool) {
	for _, object := range among {
		if gvk := object.GroupVersionKind(); gvk.Group != "" || gvk.Kind != kind || object.GetName() != name ||
			object.GetNamespace() != namespace && object.GetNamespace() != "" {
			continue
		}
		found, usable := VariablesWritten(object)
		if !usable || known && !maps.Equal(found.Values, v.Values) {
			return Variables{}, false
		}
		v, known = found, true
	}
	return v, known
}

// DataOf returns the data of a ConfigMap or Secret, decoded.
func DataOf(from *unstructured.Unstructured) (map[string]string, error) {
	data, _, err := unstructured.NestedStringMap(from.Object, "data")
	if err != nil {
		return nil, errors.New("its data is no mapping of texts")
	}
	if from.GetKind() != "Secret" {
		return data, nil
	}
	for name, value := range data {
		decoded, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return nil, fmt.Errorf("its key %.60q is not encoded in base64", name)
		}
		data[name] = string(decoded)
	}
	return data, nil
}

// variable is what Flux takes for a name.
var variable = regexp.MustCompile(`^[_[:alpha:]][_[:alpha:][:digit:]]*$`)

// IsGiven tells whether a layer says anything of how its directory becomes objects. One of
// an ApplicationBundle has none.
func IsGiven(spec *v1alpha1.AddonsLayerSpec) bool {
	return spec.Source.Kind != v1alpha1.ApplicationBundleKind && (spec.Build != "" || !spec.IsZero())
}

// Of returns how a layer says that its directory becomes objects, with the variables of
// what it names in substituteFrom, in that order, and of its own, which count most.
func Of(spec *v1alpha1.AddonsLayerSpec, given ...Variables) (Build, error) {
	if !IsGiven(spec) {
		return Build{}, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec.GeneratorFields)
	if err != nil {
		return Build{}, fmt.Errorf("cannot use the fields of the build: %w", err)
	}
	b := Build{Generator: fields}
	if metadata := spec.CommonMetadata; metadata != nil {
		b.Labels, b.Annotations = metadata.Labels, metadata.Annotations
	}
	if spec.Decryption != nil {
		b.Decryption = &Decryption{Sealed: true} // until keys are given
	}
	if after := spec.PostBuild; after != nil {
		b.Substitution = &Substitution{Always: after.SubstituteStrategy == v1alpha1.SubstituteAlways, Strict: after.Strict}
		for _, variables := range append(given, Variables{Values: after.Substitute}) {
			b.Substitution.add(variables)
		}
	}
	return b, nil
}

// WithVariablesUnknown returns the build for whoever does not know all that is given: what
// is known is put in, and all else stays as it is written.
func (b Build) WithVariablesUnknown() Build {
	if b.Substitution != nil {
		known := *b.Substitution
		known.Keep, known.Strict = true, false
		b.Substitution = &known
	}
	b.VariablesUnknown = true
	return b
}

// With returns the build with the keys that open encrypted files.
func (b Build) With(keys Keys) Build {
	b.Decryption = &Decryption{Keys: keys}
	return b
}

// add adds variables, which count more than those that are there. Their line breaks are
// left out, as Flux does it.
func (s *Substitution) add(variables Variables) {
	if s.Variables == nil && len(variables.Values) > 0 {
		s.Variables = make(map[string]string, len(variables.Values))
	}
	for name, value := range variables.Values {
		s.Variables[name] = strings.ReplaceAll(value, "\n", "")
		s.Secrets = slices.DeleteFunc(s.Secrets, func(other string) bool { return other == name })
		if variables.Secret {
			s.Secrets = append(s.Secrets, name)
		}
	}
	slices.Sort(s.Secrets)
}

// Confidential returns the values that come from Secrets.
func (b Build) Confidential() []string {
	if b.Substitution == nil {
		return nil
	}
	values := make([]string, 0, len(b.Substitution.Secrets))
	for _, name := range b.Substitution.Secrets {
		values = append(values, b.Substitution.Variables[name])
	}
	return values
}

// IsZero tells whether a directory is taken as it is.
func (b Build) IsZero() bool {
	return b.Generator == nil && b.Decryption == nil && len(b.Labels) == 0 && len(b.Annotations) == 0 && b.Substitution == nil
}

// Key names the build: builds with the same key make the same of a directory. It is
// empty for the zero value. It tells of values, and is for the memory of a process alone.
func (b Build) Key() string {
	if b.IsZero() {
		return ""
	}
	data, err := json.Marshal(b)
	if err != nil {
		panic(fmt.Sprintf("what came of JSON is none any more: %v", err))
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
