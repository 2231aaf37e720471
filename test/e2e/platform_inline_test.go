// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
)

// oneObject is all that a cluster takes: layers with charts, in the Platform itself.
const oneObject = `
  inputs: {text: first}
  layerTemplate: {orphanGrace: 1s}
  layers:
  - name: base
    objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: base, namespace: PREFIX}, data: {text: "${inputs.text}"}}]
  - name: apps
    dependsOn: [base]
    applications:
`

// A cluster takes one object: a Platform with its layers and their charts. Other layers are
// another version, and most of a layer goes only where somebody allows it.
func TestPlatformInOneObject(t *testing.T) {
	f := newFixture(t)
	f.must(stack.oci.PushChart(f.ctx, f.prefix+"/charts/configmap", "configmap", "1.0.0"))
	chart := fmt.Sprintf("chart: {oci: {url: %q, insecure: true}}", stack.oci.URL(f.prefix+"/charts/configmap"))
	app := func(name string) string {
		return fmt.Sprintf("    - {name: %s, version: 1.0.0, namespace: PREFIX-shop, values: {data: {text: \"${inputs.text}\"}}, %s}\n", name, chart)
	}
	all := []string{"front", "back", "search", "cart", "mail"}
	spec := oneObject
	for _, name := range all {
		spec += app(name)
	}
	f.platform("shop", spec)
	f.platformSays("shop", v1alpha1.ReadyCondition, metav1.ConditionTrue, "2 layers are deployed")
	has := func(name, text string) func() error {
		return func() error {
			data, err := f.configMapOn(stack.client, f.prefix+"-shop", name)
			if err != nil || data["text"] != text {
				return fmt.Errorf("ConfigMap %s has %v: %w", name, data, err)
			}
			return nil
		}
	}
	for _, name := range all {
		f.must(has(name, "first")())
	}
	first := f.getPlatform("shop").Status.Version

	t.Log("other inputs are no other version")
	f.editPlatform("shop", `{"spec":{"inputs":{"text":"second"}}}`)
	f.eventually("the inputs arrive", has("back", "second"))
	if got := f.getPlatform("shop").Status.Version; got != first {
		t.Errorf("with other inputs its version is %s, and was %s", got, first)
	}

	t.Log("most of a layer is taken out")
	edited := strings.ReplaceAll(oneObject+app("front"), "PREFIX", f.prefix)
	f.merge("shop", edited)
	f.platformSays("shop", v1alpha1.ReadyCondition, metav1.ConditionFalse, "removes 4 of the layer's 5 releases", v1alpha1.AllowPruneAnnotation)
	f.throughout(2*time.Second, "what is to go stays", func() error {
		return stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix + "-shop", Name: "search"}, &corev1.ConfigMap{})
	})
	f.patch(&v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: f.name("shop-apps")}}, fmt.Sprintf(`{"metadata":{"annotations":{%q:"next"}}}`, v1alpha1.AllowPruneAnnotation))
	f.eventually("what was taken out is gone", func() error {
		return isGone(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix + "-shop", Name: "search"}, &corev1.ConfigMap{}))
	})
	second := f.platformSays("shop", v1alpha1.ReadyCondition, metav1.ConditionTrue, "2 layers are deployed").Status.Version
	if second == first {
		t.Errorf("without two applications its version still is %s", first)
	}

	t.Log("an application of no catalogue is refused, and changes nothing")
	f.editPlatform("shop", `{"spec":{"layers":[{"name":"apps","applications":[{"name":"front","version":"1.0.0"}]}]}}`)
	f.platformSays("shop", v1alpha1.StalledCondition, metav1.ConditionTrue, "spec.layers[apps].applications[front]: there is no HelmApplication front")
	f.eventually("what there is stays", has("front", "first"))
	f.platformGone("shop")
	f.nothingLeft(stack.client, "the management cluster")
}

// merge merges a specification, written as YAML, into a Platform.
func (f *fixture) merge(name, spec string) {
	f.Helper()
	data, err := yaml.YAMLToJSON([]byte("spec:\n" + spec))
	f.must(err)
	f.editPlatform(name, string(data))
}
