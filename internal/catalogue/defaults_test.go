// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
)

func parsed(t *testing.T, text string) *v1alpha1.HelmApplication {
	t.Helper()
	app := &v1alpha1.HelmApplication{}
	if err := yaml.UnmarshalStrict([]byte("metadata: {name: shop}\nspec:\n"+text), app); err != nil {
		t.Fatal(err)
	}
	return app
}

const shared = `
  defaults:
    chart: {repository: {url: "https://charts.example", chart: shop}}
    namespace: {name: shop, create: true}
    releaseName: store
    values: {a: {b: 1, c: 2}, d: [1], e: 1}
    parameters: [{name: x, value: "1"}, {name: "y", value: "2"}]
    dependsOn: [{name: db, range: ^1}, {name: dns}]
    recommends: [{name: mail}]
    kubeVersion: ">=1.30"
    interval: 1m
    timeout: 9m
    ready: Applied
  versions:
  - version: 1.0.0
  - version: 1.1.0
    chart: {oci: {url: "oci://charts.example/shop"}}
    namespace: {name: other}
    values: {a: {b: 5}, d: [2], e: null}
    parameters: [{name: "y", value: "3"}]
    dependsOn: [{name: db, range: ^2}]
    kubeVersion: ">=1.31"
    ready: Healthy
`

// A version has what all share, and its own wins: values field by field, lists with names
// name by name, all else as a whole.
func TestDefaults(t *testing.T) {
	want := parsed(t, `
  versions:
  - version: 1.0.0
    chart: {repository: {url: "https://charts.example", chart: shop}}
    namespace: {name: shop, create: true}
    releaseName: store
    values: {a: {b: 1, c: 2}, d: [1], e: 1}
    parameters: [{name: x, value: "1"}, {name: "y", value: "2"}]
    dependsOn: [{name: db, range: ^1}, {name: dns}]
    recommends: [{name: mail}]
    kubeVersion: ">=1.30"
    interval: 1m
    timeout: 9m
    ready: Applied
  - version: 1.1.0
    chart: {oci: {url: "oci://charts.example/shop"}}
    namespace: {name: other}
    releaseName: store
    values: {a: {b: 5, c: 2}, d: [2], e: null}
    parameters: [{name: x, value: "1"}, {name: "y", value: "3"}]
    dependsOn: [{name: dns}, {name: db, range: ^2}]
    recommends: [{name: mail}]
    kubeVersion: ">=1.31"
    interval: 1m
    timeout: 9m
    ready: Healthy
`)
	app := parsed(t, shared)
	before := app.DeepCopy()
	got := WithDefaults(app)
	for i, version := range want.Spec.Versions {
		wanted, err := DigestOf(version)
		has, errHas := DigestOf(got.Spec.Versions[i])
		if err != nil || errHas != nil || wanted != has {
			t.Errorf("version %s: %s", version.Version, cmp.Diff(version, got.Spec.Versions[i]))
		}
	}
	if diff := cmp.Diff(before, app); diff != "" {
		t.Errorf("what was read is changed: %s", diff)
	}
	if diff := cmp.Diff(got, WithDefaults(got)); diff != "" {
		t.Errorf("what has its defaults gets them again: %s", diff)
	}
	if WithDefaults(want) != want {
		t.Error("without defaults it is copied")
	}
}

// Defaults are a part of what was published: another one is another content.
func TestDefaultsArePublished(t *testing.T) {
	app := WithDefaults(parsed(t, shared))
	app.Status = Decide(observe(app)).Status
	changed := parsed(t, strings.Replace(shared, "timeout: 9m", "timeout: 8m", 1))
	changed.Status = app.Status
	if got := conditionsOf(Decide(observe(WithDefaults(changed))).Status); !strings.Contains(got, v1alpha1.ReasonContentChanged) {
		t.Errorf("it says %s", got)
	}
}

func TestOverlay(t *testing.T) {
	under := map[string]any{"a": map[string]any{"b": int64(1), "c": []any{"x"}}, "d": "e", "n": nil}
	over := map[string]any{"a": map[string]any{"c": []any{"y"}, "f": 1.5}, "d": nil, "n": map[string]any{"z": true}}
	want := map[string]any{"a": map[string]any{"b": int64(1), "c": []any{"y"}, "f": 1.5}, "d": nil, "n": map[string]any{"z": true}}
	got := Overlay(under, over)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got["a"].(map[string]any)["c"].([]any)[0] = "changed"
	if under["a"].(map[string]any)["c"].([]any)[0] != "x" || over["a"].(map[string]any)["c"].([]any)[0] != "y" {
		t.Error("what it was made of has changed with it")
	}
	if got := Overlay(nil, nil); got == nil || len(got) != 0 {
		t.Errorf("nothing over nothing is %v", got)
	}
}
