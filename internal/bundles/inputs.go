// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/templates"
)

// Resolve returns the values of all inputs of a bundle: what is given, or the
// default, or null. problems says what is wrong with what is given; each names its
// input. Null is not given. What Resolve has returned it returns again.
func Resolve(bundle *v1alpha1.ApplicationBundle, given map[string]any) (resolved map[string]any, problems []string) {
	resolved = make(map[string]any, len(bundle.Spec.Inputs))
	for _, input := range bundle.Spec.Inputs {
		resolved[input.Name] = nil
		value := given[input.Name]
		if value == nil {
			fallback, err := decode(input.Default)
			if err != nil {
				problems = append(problems, fmt.Sprintf("input %s: its default is no JSON: %v", input.Name, err))
				continue
			}
			value = fallback
		}
		if value == nil {
			if input.Required {
				problems = append(problems, fmt.Sprintf("input %s is required, and has no value", input.Name))
			}
			continue
		}
		typed, err := conform(input, value)
		if err != nil {
			problems = append(problems, fmt.Sprintf("input %s %v", input.Name, err))
			continue
		}
		resolved[input.Name] = typed
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, known := resolved[name]; !known {
			problems = append(problems, fmt.Sprintf("there is no input %s: there %s", name, inputNames(bundle)))
		}
	}
	return resolved, problems
}

// inputNames lists the inputs of a bundle for a message.
func inputNames(bundle *v1alpha1.ApplicationBundle) string {
	if len(bundle.Spec.Inputs) == 0 {
		return "are none"
	}
	names := make([]string, 0, len(bundle.Spec.Inputs))
	for _, input := range bundle.Spec.Inputs {
		names = append(names, input.Name)
	}
	slices.Sort(names)
	return "are " + strings.Join(names, ", ")
}

// ParseInput reads a text, as a ConfigMap holds it, as a value of an input's type.
// Objects and Arrays are YAML or JSON; of a String nothing is taken away.
func ParseInput(input v1alpha1.BundleInput, text string) (any, error) {
	value, err := parse(input.Type, text)
	if err != nil {
		return nil, fmt.Errorf("input %s: %w", input.Name, err)
	}
	typed, err := conform(input, value)
	if err != nil {
		return nil, fmt.Errorf("input %s %w", input.Name, err)
	}
	return typed, nil
}

func parse(kind v1alpha1.InputType, text string) (any, error) {
	trimmed := strings.TrimSpace(text)
	switch kind {
	case v1alpha1.InputInteger:
		number, err := strconv.ParseInt(trimmed, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no Integer", short(trimmed))
		}
		return number, nil
	case v1alpha1.InputNumber:
		if number, err := strconv.ParseInt(trimmed, 10, 64); err == nil {
			return number, nil
		}
		number, err := strconv.ParseFloat(trimmed, 64)
		if err != nil || math.IsNaN(number) || math.IsInf(number, 0) {
			return nil, fmt.Errorf("%q is no Number", short(trimmed))
		}
		return number, nil
	case v1alpha1.InputBoolean:
		switch trimmed {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return nil, fmt.Errorf("%q is no Boolean: write true or false", short(trimmed))
	case v1alpha1.InputObject, v1alpha1.InputArray:
		raw, err := yaml.YAMLToJSONStrict([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("it is neither YAML nor JSON: %w", err)
		}
		return decode(&apiextensionsv1.JSON{Raw: raw})
	default:
		return text, nil
	}
}

// conform returns a value as an input's type has it, or an error that goes on from
// the input's name.
func conform(input v1alpha1.BundleInput, value any) (any, error) {
	kind := input.Type
	if kind == "" {
		kind = v1alpha1.InputString
	}
	fits := false
	switch v := value.(type) {
	case string:
		fits = kind == v1alpha1.InputString
		if fits && len(input.Enum) > 0 && !slices.Contains(input.Enum, v) {
			return nil, fmt.Errorf("is %q, and must be one of %s", short(v), strings.Join(input.Enum, ", "))
		}
	case bool:
		fits = kind == v1alpha1.InputBoolean
	case int64:
		fits = kind == v1alpha1.InputInteger || kind == v1alpha1.InputNumber
	case float64:
		// Beyond that a float64 may stand for several integers.
		const exact = 1 << 53
		if kind == v1alpha1.InputInteger && v == math.Trunc(v) && math.Abs(v) <= exact {
			return int64(v), matches(input, int64(v))
		}
		fits = kind == v1alpha1.InputNumber
	case map[string]any:
		fits = kind == v1alpha1.InputObject
	case []any:
		fits = kind == v1alpha1.InputArray
	}
	if !fits {
		return nil, fmt.Errorf("is %s, and must be of the type %s", templates.Described(value), kind)
	}
	return value, matches(input, value)
}

// short cuts a text for a message.
func short(text string) string {
	const most = 60
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "..."
}

// decode reads JSON with integers as int64; nil for none.
func decode(raw *apiextensionsv1.JSON) (any, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil
	}
	var value any
	if err := json.Unmarshal(raw.Raw, &value); err != nil {
		return nil, err
	}
	return value, nil
}

// decodeObject is as decode for an object; null is one without fields.
func decodeObject(raw *apiextensionsv1.JSON) (map[string]any, error) {
	value, err := decode(raw)
	if err != nil {
		return nil, err
	}
	if value == nil {
		return map[string]any{}, nil
	}
	object, is := value.(map[string]any)
	if !is {
		return nil, fmt.Errorf("is %s, and must be an Object", templates.Described(value))
	}
	return object, nil
}
