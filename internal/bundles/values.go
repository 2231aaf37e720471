// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"fmt"
	"strings"

	"helm.sh/helm/v4/pkg/strvals"

	"github.com/strata-project/strata/api/v1alpha1"
)

// set puts a parameter into values, as helm --set does.
func set(values map[string]any, parameter v1alpha1.Parameter) error {
	if err := strvals.ParseInto(parameter.Name+"="+settable(parameter.Value), values); err != nil {
		return fmt.Errorf("%q cannot be set: %w", short(parameter.Name), err)
	}
	return nil
}

// settable keeps a value from being read as more than one: a comma would end it,
// and what came behind would set something else. {a,b} is a list.
func settable(value string) string {
	if strings.HasPrefix(value, "{") && unescaped(value, '}') == len(value)-1 {
		return value
	}
	var text strings.Builder
	if strings.HasPrefix(value, "{") {
		text.WriteByte('\\')
	}
	for i := 0; i < len(value); i++ {
		switch {
		case value[i] == '\\' && i+1 < len(value):
			text.WriteByte(value[i])
			i++
		case value[i] == '\\':
			// Nothing is behind it that it could stand for.
			text.WriteByte('\\')
		case value[i] == ',':
			text.WriteByte('\\')
		}
		text.WriteByte(value[i])
	}
	return text.String()
}

// unescaped returns where a text first has a character without a backslash before
// it, or -1.
func unescaped(text string, char byte) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case char:
			return i
		}
	}
	return -1
}
