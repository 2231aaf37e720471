// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/objects"
)

// dump shows all values of a chart.
const dump = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: dump}\ndata:\n  values: {{ .Values | toJson | quote }}\n"

func TestValues(t *testing.T) {
	t.Parallel()
	server := chartServer(t)
	if err := server.AddFiles(chartFiles("dump", "1.0.0", dump, map[string]string{"values.yaml": "chart: own\na: chart\n", "extra.yaml": "chart: extra\n"})); err != nil {
		t.Fatal(err)
	}
	w := world{}.add(t, repository(server.URL())).add(t, `apiVersion: v1
kind: ConfigMap
metadata: {name: base, namespace: apps}
data:
  values.yaml: "{a: config, b: config, c: config, nested: {x: 1}}"
  other: "{b: other}"
  one: "7"
  quoted: "'7'"
  raw: "x=1,y={2}"
  broken: "a: [hunter2"
---
apiVersion: v1
kind: Secret
metadata: {name: secret, namespace: apps}
data: {values.yaml: Yzogc2VjcmV0CmQ6IHNlY3JldAo=}
stringData: {broken: "a: [hunter2", password: hunter2}`)
	r := renderer(t, Options{})
	for _, c := range []struct{ reason, spec, want string }{
		{"the chart's own", "", `{"a":"chart","chart":"own"}`},
		{"those of the release above", "  values: {a: release, i: 1, chart: null}\n", `{"a":"release","i":1}`},
		{
			"references in their order, and those of the release above them",
			"  valuesFrom: [{kind: ConfigMap, name: base}, {kind: ConfigMap, name: base, valuesKey: other}, {kind: Secret, name: secret}]\n  values: {d: release}\n",
			`{"a":"config","b":"other","c":"secret","chart":"own","d":"release","nested":{"x":1}}`,
		},
		{
			"a value at a path, above those of the release",
			"  valuesFrom: [{kind: ConfigMap, name: base, valuesKey: one, targetPath: 'nested.z[0]'}, {kind: ConfigMap, name: base, valuesKey: quoted, targetPath: a}, {kind: ConfigMap, name: base, valuesKey: raw, targetPath: raw, literal: true}]\n  values: {nested: {x: 2, z: [1]}, a: release}\n",
			`{"a":"release","chart":"own","nested":{"x":2,"z":[7]},"raw":"x=1,y={2}"}`,
		},
		{
			"what is optional may lack",
			"  valuesFrom: [{kind: ConfigMap, name: none, optional: true}, {kind: Secret, name: secret, valuesKey: none, optional: true}]\n",
			`{"a":"chart","chart":"own"}`,
		},
		{"files of the chart in the place of its own", "", `{"chart":"extra"}`},
	} {
		of := release(t, "dump", "1.0.0", c.spec)
		if strings.Contains(c.reason, "files") {
			if err := unstructured.SetNestedStringSlice(of.Object, []string{"extra.yaml"}, "spec", "chart", "spec", "valuesFiles"); err != nil {
				t.Fatal(err)
			}
		}
		got, err := r.Render(t.Context(), Request{Release: of, Find: w.find, Secrets: Secrets{True: true}})
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		values, _, _ := unstructured.NestedString(got.Objects[0].Object, "data", "values")
		if diff := cmp.Diff(c.want, values); diff != "" {
			t.Errorf("%s:\n%s", c.reason, diff)
		}
	}
	for _, c := range []struct {
		from  string
		parts []string
	}{
		{"{kind: ConfigMap, name: none}", []string{"there is no ConfigMap apps/none"}},
		{"{kind: ConfigMap, name: base, valuesKey: none}", []string{"ConfigMap apps/base", "no key none"}},
		{"{kind: ConfigMap, name: base, valuesKey: broken}", []string{"ConfigMap apps/base", "broken"}},
		{"{kind: Secret, name: secret, valuesKey: broken}", []string{"Secret apps/secret", "broken"}},
		{"{kind: Secret, name: secret, valuesKey: password}", []string{"Secret apps/secret", "password"}},
		{"{kind: Secret, name: secret, valuesKey: password, targetPath: 'a[x]'}", []string{"Secret apps/secret", "targetPath a[x]"}},
		{"{kind: Pod, name: secret}", []string{"Pod", "ConfigMap or a Secret"}},
	} {
		_, err := r.Render(t.Context(), Request{Release: release(t, "dump", "1.0.0", "  valuesFrom: ["+c.from+"]\n"), Find: w.find, Secrets: Secrets{True: true}})
		if err == nil {
			t.Fatalf("%s: no error", c.from)
		}
		wantProblem(t, err, ValuesUnavailable, c.parts...)
		if strings.Contains(c.from, "Secret") && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("a secret is in %v", err)
		}
	}
	forbidden := func(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error) {
		if id.Kind == "Secret" {
			return nil, errors.New("secrets is forbidden")
		}
		return w.find(ctx, id)
	}
	_, err := r.Render(t.Context(), Request{Release: release(t, "dump", "1.0.0", "  valuesFrom: [{kind: Secret, name: secret}]\n"), Find: forbidden, Secrets: Secrets{True: true}})
	wantProblem(t, err, ValuesUnavailable, "Secret apps/secret may not be read", "forbidden")
}

// Charts repeat values in what they refuse.
func TestSecretsAreNotInMessages(t *testing.T) {
	t.Parallel()
	server := chartServer(t)
	charts := map[string]map[string]string{
		"fails":  chartFiles("fails", "1.0.0", `{{ fail (printf "password %s is too weak" .Values.password) }}`, nil),
		"schema": chartFiles("schema", "1.0.0", dump, map[string]string{"values.schema.json": `{"properties": {"password": {"enum": ["a"]}, "pin": {"maximum": 1}}}`}),
		"broken": chartFiles("broken", "1.0.0", "kind: {{ .Values.password }}: [", nil),
	}
	for _, files := range charts {
		if err := server.AddFiles(files); err != nil {
			t.Fatal(err)
		}
	}
	w := world{}.add(t, repository(server.URL())).add(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: secret, namespace: apps}\nstringData: {values.yaml: \"{password: hunter22, short: hunter2, pin: 123456}\"}")
	r := renderer(t, Options{})
	for name := range charts {
		_, err := r.Render(t.Context(), Request{Release: release(t, name, "1.0.0", "  valuesFrom: [{kind: Secret, name: secret}]\n"), Find: w.find, Secrets: Secrets{True: true}})
		wantProblem(t, err, RenderFailed, name)
		if strings.Contains(err.Error(), "hunter") || strings.Contains(err.Error(), "123456") || strings.Contains(err.Error(), "***2") {
			t.Errorf("%s: a secret is in %v", name, err)
		}
		for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(cause) {
			if strings.Contains(cause.Error(), "hunter") {
				t.Errorf("%s: a secret is in the cause %v", name, cause)
			}
		}
	}
}
