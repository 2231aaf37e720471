// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

func withInputs(inputs ...v1alpha1.BundleInput) *v1alpha1.ApplicationBundle {
	bundle := &v1alpha1.ApplicationBundle{}
	bundle.Spec.Inputs = inputs
	return bundle
}

func TestResolve(t *testing.T) {
	bundle := withInputs(
		v1alpha1.BundleInput{Name: "size", Enum: []string{"small", "large"}, Default: rawJSON(`"small"`)},
		v1alpha1.BundleInput{Name: "count", Type: v1alpha1.InputInteger, Required: true},
		v1alpha1.BundleInput{Name: "share", Type: v1alpha1.InputNumber},
		v1alpha1.BundleInput{Name: "on", Type: v1alpha1.InputBoolean, Default: rawJSON("false")},
		v1alpha1.BundleInput{Name: "more", Type: v1alpha1.InputObject, Default: rawJSON(`{"n": 9007199254740993}`)},
		v1alpha1.BundleInput{Name: "list", Type: v1alpha1.InputArray, Default: rawJSON("null")},
	)
	defaults := func(change map[string]any) map[string]any {
		all := map[string]any{"size": "small", "count": int64(1), "share": nil, "on": false, "more": map[string]any{"n": int64(9007199254740993)}, "list": nil}
		for key, value := range change {
			all[key] = value
		}
		return all
	}
	for name, tc := range map[string]struct {
		given, want map[string]any
		problems    string
	}{
		"defaults":          {map[string]any{"count": int64(1)}, defaults(nil), ""},
		"null is not given": {map[string]any{"count": int64(1), "size": nil}, defaults(nil), ""},
		"all": {
			map[string]any{"size": "large", "count": 2.0, "share": int64(1), "on": true, "more": map[string]any{}, "list": []any{"x"}},
			map[string]any{"size": "large", "count": int64(2), "share": int64(1), "on": true, "more": map[string]any{}, "list": []any{"x"}},
			"",
		},
		"none":           {nil, defaults(map[string]any{"count": nil}), "input count is required, and has no value"},
		"an enum":        {map[string]any{"count": int64(1), "size": "huge"}, defaults(map[string]any{"size": nil}), `input size is "huge", and must be one of small, large`},
		"half a number":  {map[string]any{"count": 1.5}, defaults(map[string]any{"count": nil}), "input count is the Number 1.5, and must be of the type Integer"},
		"a large number": {map[string]any{"count": 1e300}, defaults(map[string]any{"count": nil}), "input count is the Number 1e+300, and must be of the type Integer"},
		"several": {
			map[string]any{"count": "1", "share": true, "on": "true", "more": []any{}, "list": map[string]any{}, "b": nil, "a": int64(1)},
			defaults(map[string]any{"count": nil, "on": nil, "more": nil}),
			`input count is the String "1", and must be of the type Integer; input share is the Boolean true, and must be of the type Number; input on is the String "true", and must be of the type Boolean; input more is an Array, and must be of the type Object; input list is an Object, and must be of the type Array; there is no input a: there are count, list, more, on, share, size; there is no input b: there are count, list, more, on, share, size`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := Resolve(bundle, tc.given)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("it resolves to (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.problems, strings.Join(problems, "; ")); diff != "" {
				t.Errorf("the problems are (-want +got):\n%s", diff)
			}
			if tc.problems != "" {
				return
			}
			if again, problems := Resolve(bundle, got); !cmp.Equal(got, again) || problems != nil {
				t.Errorf("it resolves to %v the second time, %v", again, problems)
			}
		})
	}
}

func TestParseInput(t *testing.T) {
	for name, tc := range map[string]struct {
		kind v1alpha1.InputType
		text string
		want any
		err  string
	}{
		"a text":                 {"", " 1.10\n", " 1.10\n", ""},
		"an integer":             {v1alpha1.InputInteger, " 9223372036854775807\n", int64(math.MaxInt64), ""},
		"a larger integer":       {v1alpha1.InputInteger, "9223372036854775808", nil, `input x: "9223372036854775808" is no Integer`},
		"an integer with blanks": {v1alpha1.InputInteger, "1 2", nil, `input x: "1 2" is no Integer`},
		"a number":               {v1alpha1.InputNumber, "1.5", 1.5, ""},
		"a whole number":         {v1alpha1.InputNumber, "3", int64(3), ""},
		"no number":              {v1alpha1.InputNumber, "NaN", nil, `input x: "NaN" is no Number`},
		"true":                   {v1alpha1.InputBoolean, "true\n", true, ""},
		"yes":                    {v1alpha1.InputBoolean, "yes", nil, `input x: "yes" is no Boolean: write true or false`},
		"YAML":                   {v1alpha1.InputObject, "a: [1, \"1.10\"]\n", map[string]any{"a": []any{int64(1), "1.10"}}, ""},
		"JSON":                   {v1alpha1.InputArray, "[1]", []any{int64(1)}, ""},
		"another shape":          {v1alpha1.InputArray, "a: b", nil, "input x is an Object, and must be of the type Array"},
		"nothing":                {v1alpha1.InputObject, "", nil, "input x is null, and must be of the type Object"},
		"no YAML":                {v1alpha1.InputObject, "a: b: c", nil, "input x: it is neither YAML nor JSON"},
		"long":                   {v1alpha1.InputInteger, strings.Repeat("x", 10<<20), nil, strings.Repeat("x", 60) + `..." is no Integer`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseInput(v1alpha1.BundleInput{Name: "x", Type: tc.kind}, tc.text)
			if (err != nil) != (tc.err != "") || err != nil && (!strings.Contains(err.Error(), tc.err) || len(err.Error()) > 500) {
				t.Fatalf("it says %v, want %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := ParseInput(v1alpha1.BundleInput{Name: "x", Enum: []string{"a"}}, "b"); err == nil || err.Error() != `input x is "b", and must be one of a` {
		t.Errorf("a text that is not of the enum: %v", err)
	}
}

func TestDecodeKeepsIntegers(t *testing.T) {
	got, err := decode(&apiextensionsv1.JSON{Raw: []byte(`{"a": 9007199254740993, "b": 1.5}`)})
	if diff := cmp.Diff(map[string]any{"a": int64(9007199254740993), "b": 1.5}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}
