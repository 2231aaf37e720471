// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func language(t testing.TB) *Language {
	t.Helper()
	l, err := New("inputs", "cluster")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func data() Data {
	return Data{
		"inputs": {
			"size": int64(3), "ratio": 0.5, "on": true, "name": "shop", "nothing": nil,
			"zones": []any{"a", "b"}, "labels": map[string]any{"team": "web", "a.b/c": "d"}, "large": int64(9007199254740993), "long": strings.Repeat("a", 20_000),
		},
		"cluster": {"version": "1.36.3", "endpoint": map[string]any{"host": "fd00::1", "port": int64(6443)}},
	}
}

func TestFill(t *testing.T) {
	for name, tc := range map[string]struct {
		in   any
		want any
		err  string
	}{
		"no template":             {in: "a $ {b} $c", want: "a $ {b} $c"},
		"empty":                   {in: "", want: ""},
		"a number stays one":      {in: "${inputs.size}", want: int64(3)},
		"a large one, too":        {in: "${inputs.large}", want: int64(9007199254740993)},
		"a fraction":              {in: "${inputs.ratio * 3.0}", want: 1.5},
		"true":                    {in: "${inputs.on}", want: true},
		"null":                    {in: "${inputs.nothing}", want: nil},
		"a list":                  {in: "${inputs.zones}", want: []any{"a", "b"}},
		"an object":               {in: `${inputs.labels}`, want: map[string]any{"team": "web", "a.b/c": "d"}},
		"an object that is made":  {in: `${{"a": {"b": inputs.size}}}`, want: map[string]any{"a": map[string]any{"b": int64(3)}}},
		"in a text":               {in: "x-${inputs.name}-${inputs.size}", want: "x-shop-3"},
		"two side by side":        {in: "${inputs.name}${inputs.on}", want: "shoptrue"},
		"spaces":                  {in: "${ inputs.name }", want: "shop"},
		"a key in brackets":       {in: `${inputs.labels["a.b/c"]}`, want: "d"},
		"a choice":                {in: `${cluster.endpoint.host.contains(":") ? "[" + cluster.endpoint.host + "]" : cluster.endpoint.host}:${cluster.endpoint.port}`, want: "[fd00::1]:6443"},
		"braces in a text of CEL": {in: `${"}" + '{' + """}"}""" + inputs.name}`, want: `}{}"}shop`},
		"a quote in quotes":       {in: `${"\"}" + inputs.name}`, want: `"}shop`},
		"functions":               {in: `${inputs.zones.map(z, z.upperAscii()).join("+")}`, want: "A+B"},
		"what may be missing":     {in: `${inputs.?other.orValue("none")}`, want: "none"},
		"whether it is there":     {in: `${has(inputs.other)}`, want: false},
		"an escape":               {in: "$${inputs.name} ${inputs.name}", want: "${inputs.name} shop"},
		"nested": {
			in:   map[string]any{"a": []any{map[string]any{"b": "${inputs.size}"}, int64(1)}, "${inputs.name}": "kept"},
			want: map[string]any{"a": []any{map[string]any{"b": int64(3)}, int64(1)}, "${inputs.name}": "kept"},
		},

		"a part of a text": {in: `${cluster.version.substring(0, 4)}${"äöü".substring(1)}`, want: "1.36öü"},
		"lists and texts":  {in: `${"a,b,,c".split(",").filter(p, p != "").join()}`, want: "abc"},
		"replaced":         {in: `${inputs.name.replace("s", "ch").trim().lowerAscii()}`, want: "chhop"},

		"a text that grows":      {in: `${"` + strings.Repeat("a", 1000) + `".replace("", "` + strings.Repeat("b", 2000) + `")}`, err: "a text becomes larger than 1024 KiB"},
		"a list that doubles":    {in: "${[inputs.zones]" + strings.Repeat(".map(a, a + a)", 14) + "}", err: "it costs too much"},
		"a list that is joined":  {in: "${inputs.long.split('').join('" + strings.Repeat("a", 100) + "')}", err: "a text becomes larger than 1024 KiB"},
		"a list that is long":    {in: "${inputs.long.split('')}", err: "has more than 10000 items"},
		"a digest of too much":   {in: "${inputs.long.split(\"\").map(x, digest(x)).join()}", err: "it costs too much: write it simpler"},
		"outside of a text":      {in: "${inputs.name.substring(2, 9)}", err: "substring is asked for characters that the text does not have"},
		"nothing there":          {in: map[string]any{"a": []any{"${inputs.other}"}}, err: "a[0]: ${inputs.other}: there is no other"},
		"no expression":          {in: map[string]any{"a.b": "${inputs.}"}, err: `["a.b"]: ${inputs.} is no expression of CEL: column 8: `},
		"an unknown variable":    {in: "${secrets.password}", err: "undeclared reference to 'secrets'; there are the variables cluster, inputs"},
		"without an end":         {in: "a ${inputs.name", err: "${inputs.name has no } at its end; write $${ for ${ itself"},
		"a text without an end":  {in: `${"inputs}`, err: `"inputs} has no " at its end`},
		"empty template":         {in: "${ }", err: "${} has no expression"},
		"a list in a text":       {in: "x${inputs.zones}", err: "${inputs.zones} is a list, and must be a text, a number, or true or false"},
		"null in a text":         {in: "x${inputs.nothing}", err: "${inputs.nothing} is null"},
		"a value without one":    {in: "${inputs.?other}", err: "has no value: add .orValue(...)"},
		"types that do not fit":  {in: "${inputs.name + inputs.size}", err: "a value is of a type that an operator or a function of it does not take"},
		"keys that are no texts": {in: "${{1: 2}}", err: "has a key of the type int, and keys must be texts"},
		"bytes":                  {in: "${b'abc'}", err: "is of the type bytes, which values cannot have"},
		"no number":              {in: "${0.0 / 0.0}", err: "is no number"},
		"too costly":             {in: "${[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, [1,2,3,4,5,6,7,8,9,10].map(d, [1,2,3,4,5,6,7,8,9,10].map(e, [1,2,3,4,5,6,7,8,9,10].map(f, f))))))}", err: "it costs too much"},
		"too long":               {in: "${'" + strings.Repeat("a", 5000) + "'}", err: "is no expression of CEL"},
		"nested too deep":        {in: "${" + strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200) + "}", err: "is no expression of CEL"},
		"what comes to too much": {in: manyOf("${'"+strings.Repeat("a", 4000)+"'}", 300), err: "the templates come to more than 1024 KiB"},
		"too much in one text":   {in: strings.Repeat("${'"+strings.Repeat("a", 4000)+"'}", 300), err: "the templates come to more than 1024 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := fmt.Sprint(tc.in)
			got, err := language(t).Fill(tc.in, data())
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v and %v, want %q", got, err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v, (-want +got):\n%s", err, diff)
			}
			if fmt.Sprint(tc.in) != before {
				t.Errorf("it was changed in place: %v", tc.in)
			}
		})
	}
}

func manyOf(text string, count int) []any {
	items := make([]any, count)
	for i := range items {
		items[i] = text
	}
	return items
}

// All problems are told at once, and what is read is known without any data.
func TestCheck(t *testing.T) {
	var value any
	if err := yaml.Unmarshal([]byte(`
replicas: ${inputs.size}
name: x-${inputs["name"]}-${cluster.version}
list: ["${inputs.zones.map(z, z + inputs.name)}", "${nothing}", "${"]
all: ${inputs}
maybe: '${cluster.?endpoint.?host.orValue("")}'
sure: "${has(inputs.other) ? 1 : 2}"
`), &value); err != nil {
		t.Fatal(err)
	}
	uses, problems := language(t).Check(value)
	want := []string{"cluster.endpoint", "cluster.version", "inputs", "inputs.name", "inputs.other", "inputs.size", "inputs.zones"}
	if diff := cmp.Diff(want, uses); diff != "" {
		t.Errorf("it reads (-want +got):\n%s", diff)
	}
	if len(problems) != 2 || !strings.HasPrefix(problems[0], "list[1]: ${nothing} is no expression of CEL: column 1: undeclared reference") ||
		!strings.HasPrefix(problems[1], "list[2]: ${ has no } at its end") {
		t.Errorf("the problems are %q", problems)
	}
}

func TestConditions(t *testing.T) {
	for text, tc := range map[string]struct {
		want     bool
		err, bad string
		uses     []string
	}{
		"inputs.on":                         {want: true, uses: []string{"inputs.on"}},
		"inputs.size > 2 && !inputs.on":     {uses: []string{"inputs.on", "inputs.size"}},
		"inputs.ratio < 1":                  {want: true, uses: []string{"inputs.ratio"}},
		`cluster.version.startsWith("1.3")`: {want: true, uses: []string{"cluster.version"}},
		"'b' in inputs.zones":               {want: true, uses: []string{"inputs.zones"}},
		"inputs.?gone.orValue(false)":       {uses: []string{"inputs.gone"}},
		"inputs.gone":                       {err: "there is no gone", uses: []string{"inputs.gone"}},
		"inputs.name":                       {err: "is neither true nor false", uses: []string{"inputs.name"}},
		"'yes'":                             {bad: "'yes' is of the type string, and must be true or false"},
		"inputs.on and inputs.size":         {bad: "is no expression of CEL"},
		"":                                  {bad: "is no expression of CEL"},
	} {
		t.Run(text, func(t *testing.T) {
			l := language(t)
			uses, err := l.CheckCondition(text)
			if (tc.bad != "") != (err != nil) || err != nil && !strings.Contains(err.Error(), tc.bad) {
				t.Fatalf("it is found to be %v, want %q", err, tc.bad)
			}
			if tc.bad != "" {
				return
			}
			if diff := cmp.Diff(tc.uses, uses); diff != "" {
				t.Errorf("it reads (-want +got):\n%s", diff)
			}
			got, err := l.Holds(text, data())
			if got != tc.want || (tc.err != "") != (err != nil) || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("it is %t, %v, want %t, %q", got, err, tc.want, tc.err)
			}
		})
	}
}

// Whatever a text holds, it is filled or refused; what has no template stays as
// it is, and what Check finds nothing wrong with is understood by Fill.
func FuzzFill(f *testing.F) {
	for _, text := range []string{"", "${inputs.name}", "$${", "${'}'}", `${"\"}"}x`, "${inputs.?x}", "a${b}c${", "${{'a': 1}}", "$$${inputs.size}", "${'''}'''}"} {
		f.Add(text)
	}
	l := language(f)
	f.Fuzz(func(t *testing.T, text string) {
		_, problems := l.Check(text)
		filled, err := l.Fill(text, data())
		switch {
		case !strings.Contains(text, "${") && (err != nil || filled != any(text)):
			t.Errorf("%q was made %v, %v", text, filled, err)
		case len(problems) == 0 && err != nil && strings.Contains(err.Error(), "is no expression"):
			t.Errorf("%q has no problem, and %v", text, err)
		case err == nil && len(problems) > 0:
			t.Errorf("%q was filled, and has the problems %q", text, problems)
		}
		if err != nil {
			return
		}
		written, err := json.Marshal(filled)
		if err != nil {
			t.Errorf("%q was made what is no JSON: %v", text, err)
		}
		if again, _ := l.Fill(text, data()); !reflect.DeepEqual(filled, again) {
			t.Errorf("%q was made %s, and then %v", text, written, again)
		}
	})
}

// A digest is that of a value, however it is written, and another one has another.
func TestDigest(t *testing.T) {
	language, err := New("inputs")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]any{}
	for _, value := range []any{nil, true, "a", "b", int64(1), 1.5, []any{}, []any{"a", int64(1)}, map[string]any{"a": "b", "c": []any{int64(1)}}} {
		got, err := language.Fill("${digest(inputs.value)}", Data{"inputs": {"value": value}})
		again, _ := language.Fill("${digest(inputs.value)}", Data{"inputs": {"value": value}})
		text, _ := got.(string)
		if err != nil || got != again || len(text) != digestDigits {
			t.Errorf("%v: %v, %v, %v", value, got, again, err)
		}
		if other, twice := seen[text]; twice {
			t.Errorf("%v and %v both have %s", value, other, text)
		}
		seen[text] = value
	}
}
