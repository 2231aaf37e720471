// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/objects"
)

// curious does with a value what a chart may that wants to know it.
const curious = `{{ $v := .Values.value }}
apiVersion: v1
kind: ConfigMap
metadata: {name: curious, labels: {a: {{ $v | toString | sha1sum | trunc 8 | quote }}}}
data:
  plain: {{ $v | toString | quote }}
  base64: {{ $v | toString | b64enc | quote }}
  hex: {{ $v | toString | printf "%x" | quote }}
  sha: {{ $v | toString | sha256sum | quote }}
  upper: {{ $v | toString | upper | quote }}
  length: {{ $v | toString | len | quote }}
  first: {{ $v | toString | trunc 1 | quote }}
  split: {{ $v | toString | splitList "" | join "-" | quote }}
  bytes: {{ range $c := splitList "" ($v | toString) }}{{ printf "%d " (index $c 0) }}{{ end }}
  bits: {{ range $c := list "h" "u" "n" "t" "e" "r" "2" "0" "1" "-" }}{{ if contains $c ($v | toString) }}1{{ else }}0{{ end }}{{ end }}
  guess: {{ eq ($v | toString) "hunter2-of-the-cluster" | quote }}
  less: {{ lt ($v | toString) "m" | quote }}
  long: {{ gt (len ($v | toString)) 12 | quote }}
  sum: {{ $v | toString | adler32sum | quote }}
---
{{ if hasPrefix "h" ($v | toString) }}
apiVersion: v1
kind: ConfigMap
metadata: {name: begins-with-h}
{{ end }}`

func secretOfValue(value string) string {
	text, _ := json.Marshal(value) //nolint:errchkjson // a text
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: secret, namespace: apps}\nstringData: {password: " + string(text) + "}"
}

// Whatever a chart does with a value, what it makes says nothing of it.
func TestChartsCannotTellSecretsApart(t *testing.T) {
	t.Parallel()
	server := chartServer(t)
	for _, files := range []map[string]string{
		chartFiles("curious", "1.0.0", curious, nil),
		chartFiles("fails", "1.0.0", `{{ fail (printf "it is %v, %v" .Values.value (len (.Values.value | toString))) }}`, nil),
		chartFiles("schema", "1.0.0", dump, map[string]string{"values.schema.json": `{"properties": {"value": {"enum": ["a"]}}}`}),
		chartFiles("broken", "1.0.0", "kind: {{ .Values.value }}: [", nil),
	} {
		if err := server.AddFiles(files); err != nil {
			t.Fatal(err)
		}
	}
	r := renderer(t, Options{})
	const path = "{kind: Secret, name: secret, valuesKey: password, targetPath: value}"
	const literal = "{kind: Secret, name: secret, valuesKey: password, targetPath: value, literal: true}"
	const whole = "{kind: Secret, name: secret, valuesKey: password}"
	for _, c := range []struct {
		reason, from string
		values       []string
		except       string
	}{
		{"texts", path, []string{"hunter2-of-the-cluster", "h", "another one", "x\ny\nz", "zzzz-zzzz", "Passw0rd", "correcthorsebatterystaple", "Ünïcödé"}, ""},
		{"texts with what means something to Flux", literal, []string{"hunter2-of-the-cluster", "a,b=c", "{a", `back\slash`}, ""},
		{"quoted texts", path, []string{"'hunter2'", `"of the cluster"`, "'7'", "'true'"}, ""},
		{"numbers", path, []string{"1", "7", "123456789", "-4"}, ""},
		{"truths", path, []string{"true", "false"}, ""},
		{"lists", path, []string{"{hunter2,of}", "{the,cluster}"}, ""},
		{"values", whole, []string{"value: hunter2", "value: of-the-cluster"}, ""},
		{"numbers among values", whole, []string{"value: 1", "value: 65000", "value: -3"}, ""},
		{"fractions", whole, []string{"value: 1.25", "value: 777.5"}, ""},
		{"objects", whole, []string{"value: {user: a, password: hunter2}", "value: {user: bcd, password: of-the-cluster}"}, ""},
		{"JSON", literal, []string{`{"a": "hunter2", "b": [1, true]}`, `{"a": "of", "b": [2, false]}`}, ""},
		{"base64", path, []string{base64.StdEncoding.EncodeToString([]byte("hunter2")), base64.StdEncoding.EncodeToString([]byte("of the cluster"))}, ""},
		{"binary in base64", path, []string{base64.StdEncoding.EncodeToString([]byte{1, 2, 3, 200}), base64.StdEncoding.EncodeToString([]byte{255, 254, 253, 252, 251, 250, 7})}, ""},
		{"addresses", path, []string{"https://user:hunter2@db.example/x", "https://other.example"}, ""},
		{"certificates", literal, []string{"-----BEGIN CERTIFICATE-----\naHVudGVyMg==\n-----END CERTIFICATE-----\n", "-----BEGIN CERTIFICATE-----\nb2YgdGhlIGNsdXN0ZXI=\n-----END CERTIFICATE-----\n"}, ""},
	} {
		for _, chart := range []string{"curious", "fails", "schema", "broken"} {
			var seen []string
			for _, value := range c.values {
				w := world{}.add(t, repository(server.URL())).add(t, secretOfValue(value))
				got, err := r.Render(t.Context(), Request{Release: release(t, chart, "1.0.0", "  valuesFrom: ["+c.from+"]\n"), Find: w.find})
				if err != nil {
					wantProblem(t, err, StandInsRefused, chart, "stands in for values of Secrets")
					seen = append(seen, err.Error())
					continue
				}
				seen = append(seen, text(t, got.Objects))
				if !got.FromSecrets {
					t.Errorf("%s: it is not said that values are of Secrets", c.reason)
				}
			}
			for i, each := range seen {
				if each != seen[0] {
					t.Errorf("%s: chart %s can tell %q from %q:\n%s", c.reason, chart, c.values[i], c.values[0], cmp.Diff(seen[0], each))
				}
				if strings.Contains(each, "hunter2") {
					t.Errorf("%s: a secret is in\n%s", c.reason, each)
				}
			}
		}
	}
}

// Charts render with what stands in, since it is of the same shape.
func TestStandInsHaveTheShapeOfValues(t *testing.T) {
	t.Parallel()
	s := standIns{of: "Secret apps/secret password"}
	word := s.word("", nil, "")
	for _, c := range []struct{ reason, value, want string }{
		{"a text", "hunter2", word},
		{"nothing", "", ""},
		{"a text that is base64 by chance", "password", word},
		{"JSON", `{"a": [1, true, null, ""], "b": 1.5}`, `{"a":[1,true,null,""],"b":1.5}`},
		{"what only begins like JSON", "{hunter2", word},
		{"YAML", "user: a\nport: 5432\n", "port: 1\nuser: " + s.word("", nil, ".user") + "\n"},
		{"lines with a secret as a key", "a b: c\nd: e\n", word},
		{"text in base64", base64.StdEncoding.EncodeToString([]byte("hunter2")), base64.StdEncoding.EncodeToString([]byte(s.word("", nil, "#")))},
		{"an address", "HTTP://a:b@c/d?e", "http://" + word + ".invalid"},
		{"PEM of another type", "-----BEGIN HUNTER2-----\naHVudGVyMg==\n-----END HUNTER2-----\n", word},
	} {
		if got := s.text(c.value, nil, "", 0); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
	deep := "hunter2"
	for range 20 {
		deep = base64.StdEncoding.EncodeToString([]byte(deep))
	}
	if got := s.text(deep, nil, "", 0); len(got) > 1000 || strings.Contains(got, "hunter2") {
		t.Errorf("what is deep is %q", got)
	}
	for _, value := range []string{"a,b=c", "a={b", "[", "a\x00b"} {
		got, err := s.value(valuesReference("x", false), []byte(value), nil, false)
		if err == nil && got != "'"+word+"'" {
			t.Errorf("%q at a path is %q", value, got)
		}
		if err != nil && strings.Contains(err.Error(), value) {
			t.Errorf("%q is in %v", value, err)
		}
	}
}

// Two versions of a release are compared with the same stand-ins, but for values that
// have changed.
func TestStandInsTellThatAValueHasChanged(t *testing.T) {
	t.Parallel()
	server := chartServer(t)
	if err := server.AddFiles(chartFiles("dump", "1.0.0", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: dump}\ndata:\n{{ range $k, $v := .Values }}  {{ $k }}: {{ $v | quote }}\n{{ end }}", nil)); err != nil {
		t.Fatal(err)
	}
	r := renderer(t, Options{})
	of := release(t, "dump", "1.0.0", "  valuesFrom: [{kind: Secret, name: secret, valuesKey: values}, {kind: Secret, name: secret, valuesKey: password, targetPath: password}]\n")
	worldOf := func(values, password string) world {
		return world{}.add(t, repository(server.URL())).add(t, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: secret, namespace: apps}\nstringData: {values: %q, password: %q}", values, password))
	}
	before := worldOf("{a: one, b: 5, c: true, d: gone}", "hunter2")
	after := worldOf("{a: two, b: 6, c: false, e: new}", "hunter3")
	was := func(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error) {
		return before.find(ctx, id)
	}
	first, err := r.Render(t.Context(), Request{Release: of, Find: before.find})
	if err != nil {
		t.Fatal(err)
	}
	same, err := r.Render(t.Context(), Request{Release: of, Find: before.find, Secrets: Secrets{Was: was}})
	if err != nil {
		t.Fatal(err)
	}
	if changes := Diff(first.Objects, same.Objects); len(changes) > 0 {
		t.Errorf("nothing has changed, and this is shown: %+v", changes)
	}
	second, err := r.Render(t.Context(), Request{Release: of, Find: after.find, Secrets: Secrets{Was: was}})
	if err != nil {
		t.Fatal(err)
	}
	changes := Diff(first.Objects, second.Objects)
	if len(changes) != 1 {
		t.Fatalf("%+v", changes)
	}
	var paths []string
	for _, field := range changes[0].Fields {
		paths = append(paths, field.Path)
	}
	if want := []string{"data.a", "data.b", "data.c", "data.d", "data.e", "data.password"}; !slices.Equal(paths, want) {
		t.Errorf("%q has changed, want %q", paths, want)
	}
	salted, err := r.Render(t.Context(), Request{Release: of, Find: before.find, Secrets: Secrets{Salt: "x1"}})
	if err != nil {
		t.Fatal(err)
	}
	if found := Diff(first.Objects, salted.Objects); len(found) != 1 || len(found[0].Fields) != 5 {
		t.Errorf("with another salt this differs: %+v", found)
	}
}

func valuesReference(path string, literal bool) meta.ValuesReference {
	return meta.ValuesReference{Kind: secretKind, Name: "secret", ValuesKey: "password", TargetPath: path, Literal: literal}
}

// A text is never in what stands in for it.
func FuzzStandIns(f *testing.F) {
	for _, seed := range []string{"hunter22", `{"hunter22": "hunter22"}`, "a: hunter22\nb: 7\n", "aHVudGVyMjI=", "'hunter22'", "{hunter22,b}", "https://hunter22"} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, value string, literal bool) {
		s := standIns{of: "Secret apps/secret password"}
		for _, of := range []meta.ValuesReference{valuesReference("x", literal), valuesReference("", false)} {
			text, err := s.value(of, []byte(value), nil, false)
			if err != nil {
				continue
			}
			again, err := s.value(of, []byte(value), []byte(value), true)
			if err != nil || again != text {
				t.Fatalf("%q stands in for %q, and then %q, %v", text, value, again, err)
			}
			if of.TargetPath != "" {
				into, err := atPath([]byte(text))
				if !literal && (err != nil || len(into) != 1) {
					t.Fatalf("%q, for %q, is not read as one value: %v", text, value, err)
				}
			}
		}
	})
}
