// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"fmt"
	"strings"
	"testing"

	"github.com/strata-project/strata/api/v1alpha1"
)

// pools is a bundle with a layer that has one application for each of some pools, and one
// that depends on all of them.
func pools(change func(*v1alpha1.BundleApplication)) *v1alpha1.ApplicationBundle {
	chart := &v1alpha1.ChartSource{OCI: &v1alpha1.ChartOCI{URL: "oci://charts.example/pool"}}
	pool := v1alpha1.BundleApplication{
		Name: "pool", Version: "1.0.0", Chart: chart, ForEach: "inputs.pools", Namespace: "pools",
		Values:     rawJSON(`{"size":"${item.size}","checksum":"${digest(item)}"}`),
		Parameters: []v1alpha1.Parameter{{Name: "of", Value: "${item.name} of ${instance.name}"}},
	}
	if change != nil {
		change(&pool)
	}
	b := &v1alpha1.ApplicationBundle{Spec: v1alpha1.ApplicationBundleSpec{
		Family: "web", Version: "1.0.0", Inputs: []v1alpha1.BundleInput{{Name: "pools", Type: v1alpha1.InputArray}},
		Layers: []v1alpha1.BundleLayer{{Name: "workers", Applications: []v1alpha1.BundleApplication{
			pool, {Name: "scaler", Version: "1.0.0", Chart: chart, Namespace: "pools", DependsOn: []string{"pool"}},
		}}},
	}}
	b.Name = "web"
	return b
}

func releases(t *testing.T, b *v1alpha1.ApplicationBundle, inputs string) (string, error) {
	t.Helper()
	manifests, err := Render(Request{Layer: "p-workers", Instance: "p", Bundle: b, Path: "./workers", Inputs: rawJSON(inputs)})
	var found []string
	for _, m := range manifests {
		if m.Object.GetKind() != "HelmRelease" {
			continue
		}
		spec := m.Object.Object["spec"].(map[string]any)
		values, _ := spec["values"].(map[string]any)
		said := m.Object.GetName()
		if values != nil {
			said += fmt.Sprintf(" %v %v", values["size"], values["of"])
		}
		if on, _ := spec["dependsOn"].([]any); on != nil {
			said += fmt.Sprintf(" after %d", len(on))
		}
		found = append(found, said)
	}
	return strings.Join(found, ", "), err
}

// An application with forEach is there once for each item, and what depends on it depends on
// all of them.
func TestForEach(t *testing.T) {
	for inputs, want := range map[string]string{
		`{"pools":[{"name":"small","size":1},{"name":"large","size":9}]}`: "pool-large 9 large of p, pool-small 1 small of p, scaler after 2",
		`{"pools":[]}`: "scaler",
		`{}`:           "scaler",
	} {
		got, err := releases(t, pools(nil), inputs)
		if err != nil || got != want {
			t.Errorf("%s: %s, %v", inputs, got, err)
		}
	}
	if got, err := releases(t, pools(func(a *v1alpha1.BundleApplication) { a.When = "item.size > 1" }),
		`{"pools":[{"name":"small","size":1},{"name":"large","size":9}]}`); err != nil || got != "pool-large 9 large of p, scaler after 1" {
		t.Errorf("with a condition: %s, %v", got, err)
	}
	texts := pools(func(a *v1alpha1.BundleApplication) { a.Values = nil })
	if got, err := releases(t, texts, `{"pools":["a","b"]}`); err != nil || got != "pool-a <nil> a of p, pool-b <nil> b of p, scaler after 2" {
		t.Errorf("of texts: %s, %v", got, err)
	}
	if problems := Check(pools(nil), nil); len(problems) > 0 {
		t.Errorf("it cannot be installed: %v", problems)
	}
}

// What is wrong with items names the field, and nothing is rendered.
func TestForEachThatIsWrong(t *testing.T) {
	many := `{"pools":[` + strings.Repeat(`"a",`, 300) + `"b"]}`
	for _, tc := range []struct {
		change       func(*v1alpha1.BundleApplication)
		inputs, want string
	}{
		{nil, `{"pools":[{"size":1}]}`, `layers[workers].applications[pool].forEach: item 0 has the name ""`},
		{nil, `{"pools":["A b"]}`, `item 0 has the name "A b"`},
		{nil, `{"pools":["` + strings.Repeat("a", 50) + `"]}`, "at most 53 of them"},
		{nil, `{"pools":[{"name":"a","size":1},{"name":"a","size":2}]}`, "there are two applications pool-a"},
		{nil, many, "there are two applications pool-a"},
		{func(a *v1alpha1.BundleApplication) { a.ForEach = "'text'" }, `{}`, "comes to the String \"text\", and must come to a list"},
		{func(a *v1alpha1.BundleApplication) { a.Values = nil; a.ForEach = "inputs.pools.map(p, p + 'x')" }, `{"pools":["scaler"]}`, ""},
	} {
		got, err := releases(t, pools(tc.change), tc.inputs)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%.80s: %v", tc.inputs, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || got != ""):
			t.Errorf("%.80s: %s, %v, want %s", tc.inputs, got, err, tc.want)
		}
	}
	for want, change := range map[string]func(*v1alpha1.BundleApplication){
		"layers[workers].applications[pool].forEach: there is no input nodes":                  func(a *v1alpha1.BundleApplication) { a.ForEach = "inputs.nodes" },
		"layers[workers].applications[pool].forEach: ${item.a} is no expression of CEL":        func(a *v1alpha1.BundleApplication) { a.ForEach = "item.a" },
		"layers[workers].applications[pool].values.checksum: ${digest(item)} is no expression": func(a *v1alpha1.BundleApplication) { a.ForEach = "" },
	} {
		if problems := Check(pools(change), nil); len(problems) == 0 || !strings.HasPrefix(problems[0], want) {
			t.Errorf("%s: %v", want, problems)
		}
	}
}
