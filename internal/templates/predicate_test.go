// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package templates_test

import (
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/templates"
)

func TestPredicate(t *testing.T) {
	object := map[string]any{
		"metadata": map[string]any{"generation": int64(3)},
		"status": map[string]any{"secret": "hunter2", "conditions": []any{
			map[string]any{"type": "Ready", "status": "True", "observedGeneration": int64(3)},
		}},
	}
	for text, want := range map[string]string{
		"status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True' && e.observedGeneration == metadata.generation)": "true",
		"has(status.phase) && status.phase == 'Up'":               "false",
		"'a,b'.split(',').size() == 2 && sets.contains([1], [1])": "true",
		"status.phase == 'Up'":                                    "there is no phase",
		"spec.x == 1":                                             "it reads what is not there",
		"status.secret":                                           "is neither true nor false",
		"status.secret > 1":                                       "a value is of a type that an operator or a function of it does not take",
		"int(status.secret) > 1":                                  "a value cannot be converted",
		"status.(":                                                "is no expression of CEL: column 8",
		"[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, true)))))": "it costs too much",
	} {
		t.Run(text, func(t *testing.T) {
			is, err := templates.ParsePredicate(text)
			var holds bool
			if err == nil {
				holds, err = is.Holds(object)
			}
			got := map[bool]string{true: "true", false: "false"}[holds]
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, want) || strings.Contains(got, "hunter2") {
				t.Errorf("it says %q, want %q", got, want)
			}
		})
	}
}
