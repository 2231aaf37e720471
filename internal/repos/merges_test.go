// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/directories"
)

// A key of a mapping counts more than one that is merged into it, as kubectl, kustomize and
// Flux have it.
func TestMergedKeys(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"an override", "base: &base {replicas: 1, cpu: 100m}\nweb:\n  <<: *base\n  replicas: 3\n", `{"replicas":3,"cpu":"100m"}`},
		{"in braces", "base: &base {replicas: 1}\nweb: {<<: *base, replicas: 3}\n", `{"replicas":3}`},
		{"by nothing", "base: &base {replicas: 1}\nweb: {<<: *base, replicas: null}\n", `{"replicas":null}`},
		{"a mapping is not merged deeply", "base: &base {limits: {cpu: 1, memory: 2}}\nweb: {<<: *base, limits: {cpu: 3}}\n", `{"limits":{"cpu":3}}`},
		{"earlier ones of a list count more", "a: &a {x: 1, y1: 1}\nb: &b {x: 2, z: 2}\nweb: {<<: [*a, *b], z: 3}\n", `{"x":1,"y1":1,"z":3}`},
		{"one that has merged keys itself", "a: &a {x: 1, w: 1}\nb: &b {<<: *a, x: 2}\nweb: {<<: *b, w: 3}\n", `{"x":2,"w":3}`},
		{"written out", "web: {<<: {x: 1}, x: 2}\n", `{"x":2}`},
		{"after a key that it has not", "a: &a {x: 1}\nweb: {w: 1, <<: *a, x: 2}\n", `{"w":1,"x":2}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n" + tc.text
			got, err := Parse(context.Background(), files("a.yaml", text), ".")
			if err != nil {
				t.Fatal(err)
			}
			var want any
			if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got.Manifests[0].Object.Object["web"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			documents, mistakes := Documents("a.yaml", []byte(text))
			if len(mistakes) != 0 || !cmp.Equal(want, documents[0].Value["web"]) {
				t.Errorf("lint reads %v, %v", documents, mistakes)
			}
			built, err := readByKustomize(text)
			if err != nil || !cmp.Equal(canonicalValue(t, want), canonicalValue(t, built["web"])) {
				t.Errorf("kustomize reads %v, %v", built["web"], err)
			}
		})
	}
}

// What could be read in two ways is refused, and so is a key that is there twice.
func TestKeysThatAreThereTwice(t *testing.T) {
	for text, want := range map[string]string{
		"{x: 1, x: 2}":                   `the key "x" is there twice`,
		"{yes: 1, true: 2}":              `the key "true" is there twice`,
		`{yes: 1, "true": 2}`:            `the key "true" is there twice`,
		`{1: 1, "1": 2}`:                 `the key "1" is there twice`,
		"{1: 1, 0x1: 2}":                 `the key "0x1" is there twice`,
		"{1: 1, 1.0: 2}":                 `the key "1.0" is there twice`,
		"{1.00000001: 1, 1.00000002: 2}": `the key "1.00000002" is there twice`,
		"{<<: *base, <<: *base}":         `the key "<<" is there twice`,
		"{x: 1, <<: *base}":              `the key "x" stands before the << that has it, too`,
		"{x: 1, <<: [{z: 1}, *base]}":    `the key "x" stands before the << that has it, too`,
		"{x: 1, <<: {<<: *base}}":        `the key "x" stands before the << that has it, too`,
		`{<<: {yes: 1}, "true": 2}`:      `the key "true" is merged, and is written in two ways`,
		`{<<: [{yes: 1}, {"true": 2}]}`:  `the key "true" is merged, and is written in two ways`,
		"{<<: *base, x: 1, x: 2}":        `the key "x" is there twice`,
		"{!!int 1: 1}":                   "has the tag !!int",
		"{<<: 1}":                        "cannot be read as YAML: map merge requires map or sequence of maps as the value",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := Parse(context.Background(), files("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\nbase: &base {x: 0}\nweb: "+text+"\n"), ".")
			var mistake *directories.ContentError
			if !errors.As(err, &mistake) || !strings.Contains(mistake.Message, want) || mistake.Line != 5 && mistake.Line != 1 {
				t.Errorf("got %v, want line 5 and %q", err, want)
			}
		})
	}
}

// Where a key stands before the << that has it, too, kubectl and kustomize read two values:
// that is why it is refused.
func TestKubectlAndKustomizeDisagreeOnKeysBeforeMerges(t *testing.T) {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\nbase: &base {x: 0}\nweb: {x: 1, <<: *base}\n"
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil || !strings.Contains(string(data), `"web":{"x":0}`) {
		t.Errorf("kubectl reads %s, %v", data, err)
	}
	built, err := readByKustomize(text)
	if err != nil || canonicalValue(t, built["web"]) != `{"x":1}` {
		t.Errorf("kustomize reads %v, %v", built, err)
	}
	// These kustomize refuses, too.
	for _, twice := range []string{"{x: 1, x: 2}", "{<<: *base, <<: *base}"} {
		if built, err := readByKustomize("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\nbase: &base {x: 0}\nweb: " + twice + "\n"); err == nil {
			t.Errorf("kustomize reads %s as %v", twice, built["web"])
		}
	}
}

// differences are what the reader refuses and sigs.k8s.io/yaml, with which kubectl reads,
// takes.
var differences = []struct{ message, reason string }{
	{"is there twice", "kubectl takes the last one, or either by chance, and whoever wrote it meant both"},
	{"stands before the << that has it, too", "kubectl takes the merged key, and kustomize the mapping's own"},
	{"is merged, and is written in two ways", "kubectl takes either by chance"},
	{"has the tag", "kubectl and kustomize do not agree on such keys"},
	{"has a number that does not fit into 64 bits", "the cluster would be told another number"},
	{"is not a number that Kubernetes knows", "JSON has no words for it"},
	{"has a key that is no text", "JSON has texts alone for keys"},
}

// oddScalars are what YAML 1.1, YAML 1.2 and JSON do not all take for the same.
var oddScalars = []string{
	"a", "yes", "'yes'", "no", "on", "off", "y", "Y", "n", "true", "True", `"true"`, "False", "null", "~", "''", "1", `"1"`, "0x1", "0o7", "07", "08", "+1", "-1", "-0", "0b11",
	"1_000", "1000", "1.0", "1e0", "1e3", "1E400", ".5", "5.", ".inf", "-.INF", ".nan", "9007199254740993", "9223372036854775807", "9223372036854775808", "12345678901234567890123", "1.5",
	"1.10", "2020-01-02", "2020-01-02T10:00:00Z", "12:30:45", "190:20:30", "=", "!!str 1", "!!int '1'", "!!float 1", "!!binary aGVsbG8=", "!!bool yes", "!own x", "1,000", "0x", "0b2",
	"+.5", "1e", "12e4567", "nUll", "NO", "\"\\u00e9\"", "é",
}

// drawYAML writes a value in braces. Anchors are those of mappings that were written before.
func drawYAML(t *rapid.T, depth int, anchors *[]string) string {
	kinds := []string{"scalar", "scalar", "mapping", "mapping", "list"}
	if depth == 0 {
		kinds = kinds[:1]
	}
	if len(*anchors) > 0 {
		kinds = append(kinds, "alias")
	}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "alias":
		return "*" + rapid.SampledFrom(*anchors).Draw(t, "alias") + " "
	case "list":
		var items []string
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			items = append(items, drawYAML(t, depth-1, anchors))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case "mapping":
		anchor := ""
		if rapid.Bool().Draw(t, "anchored") {
			anchor = fmt.Sprintf("a%d", rapid.IntRange(0, 99).Draw(t, "anchor"))
		}
		var fields []string
		for range rapid.IntRange(0, 4).Draw(t, "fields") {
			if rapid.IntRange(0, 2).Draw(t, "merge") > 0 || len(*anchors) == 0 {
				key := rapid.SampledFrom(append([]string{"a", "b", "c", "<<", `"<<"`}, oddScalars...)).Draw(t, "key")
				fields = append(fields, key+": "+drawYAML(t, depth-1, anchors))
				continue
			}
			merged := rapid.SliceOfN(rapid.SampledFrom(*anchors), 1, 3).Draw(t, "merged")
			if len(merged) == 1 {
				fields = append(fields, "<<: *"+merged[0]+" ")
			} else {
				fields = append(fields, "<<: [*"+strings.Join(merged, " , *")+" ]")
			}
		}
		text := "{" + strings.Join(fields, ", ") + "}"
		if anchor != "" {
			text = "&" + anchor + " " + text
			*anchors = append(*anchors, anchor)
		}
		return text
	default:
		return rapid.SampledFrom(oddScalars).Draw(t, "scalar")
	}
}

// The reader says what sigs.k8s.io/yaml says, or refuses for a reason that is listed.
func TestReaderAgreesWithKubectl(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var anchors, lines []string
		for i := range rapid.IntRange(1, 5).Draw(t, "lines") {
			lines = append(lines, fmt.Sprintf("line%d: %s", i, drawYAML(t, 3, &anchors)))
		}
		text := strings.Join(lines, "\n") + "\n"
		var want map[string]any
		data, refused := yaml.YAMLToJSON([]byte(text))
		if refused == nil {
			refused = json.Unmarshal(data, &want)
		}
		d := &document{file: "a.yaml", first: 1, text: []byte(text)}
		err := d.parse()
		var got map[string]any
		if err == nil {
			got, err = d.value()
		}
		switch {
		case err == nil && refused != nil:
			t.Fatalf("kubectl does not read %s: %v", text, refused)
		case err == nil:
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("kubectl reads something else of %s (-kubectl +got):\n%s", text, diff)
			}
		case refused == nil:
			for _, each := range differences {
				if strings.Contains(err.Error(), each.message) {
					return
				}
			}
			t.Fatalf("kubectl reads %s, and the reader says %v", text, err)
		}
	})
}

// asKustomize are scalars that kustomize, which reads YAML 1.2, takes for something else than
// kubectl does. In a kustomization they are what kustomize and Flux make of them.
var asKustomize = map[string]string{
	"yes": `true, and "yes"`, "on": `true, and "on"`, "y": `true, and "y"`, "Y": `true, and "Y"`,
	"no": `false, and "no"`, "off": `false, and "off"`, "n": `false, and "n"`, "NO": `false, and "NO"`,
	"2020-01-02": `"2020-01-02", and "2020-01-02T00:00:00Z"`,
	"!!bool yes": "true, and refused",
	// Kustomize alone rounds them. What it has built is read as files are, and refused then.
	"9223372036854775808": "refused, and 9223372036854776000", "12345678901234567890123": "refused, and 1.2345678901234568e+22",
}

// A scalar is the same in a plain directory and in a kustomization, but for those of the list.
func TestReaderAndKustomize(t *testing.T) {
	for _, scalar := range oddScalars {
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\nvalue: " + scalar + "\n"
		built, refused := readByKustomize(text)
		got, err := Parse(context.Background(), files("a.yaml", text), ".")
		seen := "the same"
		switch {
		case err != nil && refused != nil:
		case err != nil:
			seen = "refused, and " + canonicalValue(t, built["value"])
		case refused != nil:
			seen = canonicalValue(t, got.Manifests[0].Object.Object["value"]) + ", and refused"
		default:
			kubectl, kustomize := canonicalValue(t, got.Manifests[0].Object.Object["value"]), canonicalValue(t, built["value"])
			if kubectl != kustomize {
				seen = kubectl + ", and " + kustomize
			}
		}
		want := asKustomize[scalar]
		if want == "" {
			want = "the same"
		}
		if seen != want {
			t.Errorf("%s: in a directory and in a kustomization it is %s, want %s", scalar, seen, want)
		}
	}
}

// readByKustomize returns the object of a file as a kustomization takes it.
func readByKustomize(text string) (map[string]any, error) {
	resources, err := provider.NewDefaultDepProvider().GetResourceFactory().SliceFromBytes([]byte(text))
	if err != nil {
		return nil, err
	}
	data, err := resources[0].MarshalJSON()
	if err != nil {
		return nil, err
	}
	var value map[string]any
	return value, json.Unmarshal(data, &value)
}

func canonicalValue(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
