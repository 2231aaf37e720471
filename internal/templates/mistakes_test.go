// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package templates_test

import (
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/templates"
)

// Whoever writes an expression may see its errors, and not always what it reads: an
// error says the kind of mistake, and no value.
func TestMistakesTellNoValues(t *testing.T) {
	const secret, number = "hunter2", 48151623
	language, err := templates.New("object")
	if err != nil {
		t.Fatal(err)
	}
	data := templates.Data{"object": map[string]any{
		"data": map[string]any{"password": "aHVudGVyMg==", "plain": secret, "pin": int64(number), "list": []any{secret}},
	}}
	for expression, says := range map[string]string{
		`{'a': true}[string(base64.decode(object.data.password))]`: "an object lacks the key",
		`{'a': true}[object.data.plain]`:                           "an object lacks the key",
		`object.data[object.data.plain] == ''`:                     "an object lacks the key",
		`{1: true}[object.data.pin]`:                               "an object lacks the key",
		`[true][object.data.pin]`:                                  "a list has fewer items",
		`object.data.list[object.data.plain] == ''`:                "an index is no number",
		`int(object.data.plain) == 1`:                              "cannot be converted",
		`double(object.data.plain) == 1.0`:                         "cannot be converted",
		`bool(object.data.plain)`:                                  "cannot be converted",
		`timestamp(object.data.plain) == timestamp(0)`:             "cannot be converted",
		`duration(object.data.plain) == duration('1s')`:            "cannot be converted",
		`string(base64.decode(object.data.plain)) == ''`:           "are no text",
		`base64.decode(object.data.plain + '!') == b''`:            "is no base64",
		`'a'.matches('(' + object.data.plain)`:                     "a regular expression",
		`object.data.plain.substring(0, 99) == ''`:                 "substring is asked for",
		`object.data.plain`:                                        "is neither true nor false",
		`object.data.plain + object.data.pin == ''`:                "a value is of a type",
		`object.data.pin / 0 == 1`:                                 "divides by zero",
		`9223372036854775807 + object.data.pin == 1`:               "a number is too large",
		`object.data.list.all(x, int(x) > 1)`:                      "cannot be converted",
		`object.data.other`:                                        "there is no other",
		`object.data['other'] == ''`:                               "there is no other",
	} {
		t.Run(expression, func(t *testing.T) {
			_, err := language.Holds(expression, data)
			if err == nil {
				t.Fatal("it has a value")
			}
			text := err.Error()
			if !strings.Contains(text, says) {
				t.Errorf("it does not say %q: %s", says, text)
			}
			for _, value := range []string{secret, "aHVudGVyMg", "48151623"} {
				if strings.Contains(text, value) {
					t.Errorf("it tells %s: %s", value, text)
				}
			}
		})
	}
}
