// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
)

func TestParametersAreReadAsHelmDoes(t *testing.T) {
	for value, want := range map[string]any{
		"true": true, "3": int64(3), "1.10": "1.10", "007": "007", "null": nil, "{a,b}": []any{"a", "b"}, "{}": []any{""},
		"a,b=c": "a,b=c", `a\,b`: "a,b", "{a},b={c}": "{a},b={c}", "{a": "{a", "a=b": "a=b", `a`: "a", "x{1,2}": "x{1,2}",
		"12345678901234567890": "12345678901234567890",
	} {
		values := map[string]any{"other": "kept"}
		if err := set(values, v1alpha1.Parameter{Name: "list[0].name", Value: value}); err != nil {
			t.Errorf("%q: %v", value, err)
			continue
		}
		if diff := cmp.Diff(map[string]any{"other": "kept", "list": []any{map[string]any{"name": want}}}, values); diff != "" {
			t.Errorf("%q comes to (-want +got):\n%s", value, diff)
		}
	}
}

// Whatever a value is, it sets nothing but what its name says.
func TestParametersSetOneThing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[a-c,={}\\.\[\]0]{0,12}`).Draw(t, "value")
		values := map[string]any{"b": "kept"}
		if err := set(values, v1alpha1.Parameter{Name: "a", Value: value}); err != nil {
			t.Skip(err)
		}
		if len(values) != 2 || values["b"] != "kept" {
			t.Fatalf("%q comes to %v", value, values)
		}
	})
}

func TestNamesAreShortAndTheirOwn(t *testing.T) {
	if got := Name("prod", "tenant"); got != "prod-tenant" {
		t.Errorf("a short name is %s", got)
	}
	long := strings.Repeat("x", 61)
	one, other := Name(long, "a"), Name(long, "b")
	if one == other || len(one) > 63 || one != Name(long, "a") || strings.Contains(Name(strings.Repeat("x", 51)+".", strings.Repeat("y", 40)), ".-") {
		t.Errorf("long names are %s and %s", one, other)
	}
}
