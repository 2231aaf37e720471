// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	sigsyaml "sigs.k8s.io/yaml"
)

func render(t *testing.T, values string) []object {
	t.Helper()
	files, err := renderChart(t, values)
	if err != nil {
		t.Fatalf("cannot render: %v\nvalues: %s", err, values)
	}
	var objects []object
	for _, name := range keys(files) {
		if strings.HasSuffix(name, ".yaml") {
			objects = append(objects, decode(t, name, files[name])...)
		}
	}
	return objects
}

func renderChart(t *testing.T, values string) (map[string]string, error) {
	t.Helper()
	chart, err := loader.LoadDir(".")
	if err != nil {
		t.Fatalf("cannot load the chart: %v", err)
	}
	return renderOf(t, chart, values)
}

// renderOf renders a chart with values. Later values win.
func renderOf(t *testing.T, chart *chartv2.Chart, values ...string) (map[string]string, error) {
	t.Helper()
	given := map[string]any{}
	for _, each := range values {
		given = loader.MergeMaps(given, parse(t, each))
	}
	options := common.ReleaseOptions{Name: releaseName, Namespace: releaseNamespace, IsInstall: true, Revision: 1}
	all, err := util.ToRenderValues(chart, given, options, nil)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(chart, all)
}

// build is what kustomize makes of a directory.
func build(t *testing.T, dir string) []object {
	t.Helper()
	result, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("cannot build %s: %v", dir, err)
	}
	text, err := result.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, dir, string(text))
}

func decodeFile(t *testing.T, file string) []object {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, file, string(text))
}

// decode reads documents strictly; only kinds of Prometheus have no types here.
func decode(t *testing.T, name, text string) []object {
	t.Helper()
	var objects []object
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		raw := parse(t, string(document))
		if len(raw) == 0 {
			continue
		}
		untyped := &unstructured.Unstructured{Object: raw}
		if untyped.GroupVersionKind().Group == "monitoring.coreos.com" {
			objects = append(objects, untyped)
			continue
		}
		obj, gvk, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, document)
			continue
		}
		obj.GetObjectKind().SetGroupVersionKind(*gvk)
		objects = append(objects, obj.(object))
	}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := sigsyaml.UnmarshalStrict([]byte(text), &values); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return values
}

func checkMetadata(t *testing.T, obj object) {
	t.Helper()
	if len(obj.GetName()) > 63 {
		t.Errorf("the name %s is longer than a label's value", obj.GetName())
	}
	if strings.HasSuffix(obj.GetName(), "-extra") {
		return // whoever writes it says all of it
	}
	clusterWide := strings.HasPrefix(kindOf(obj), "Cluster") || kindOf(obj) == "CustomResourceDefinition"
	if (obj.GetNamespace() == "") != clusterWide {
		t.Errorf("%s %s has the namespace %q", kindOf(obj), obj.GetName(), obj.GetNamespace())
	}
	if obj.GetLabels()["app.kubernetes.io/instance"] != releaseName {
		t.Errorf("%s %s has the labels %v", kindOf(obj), obj.GetName(), obj.GetLabels())
	}
}

// essence is what an object does, without what tells who made it.
func essence(obj object) map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		panic(err)
	}
	accessor, err := meta.Accessor(&unstructured.Unstructured{Object: content})
	if err != nil {
		panic(err)
	}
	labels := map[string]string{}
	for key, value := range accessor.GetLabels() {
		if !strings.HasPrefix(key, "app.kubernetes.io/") && key != "helm.sh/chart" {
			labels[key] = value
		}
	}
	accessor.SetLabels(labels)
	annotations := accessor.GetAnnotations()
	delete(annotations, "helm.sh/resource-policy")
	accessor.SetAnnotations(annotations)
	return content
}

func rulesOf(objects []object) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, obj := range objects {
		switch role := obj.(type) {
		case *rbacv1.ClusterRole:
			rules = append(rules, role.Rules...)
		case *rbacv1.Role:
			rules = append(rules, role.Rules...)
		}
	}
	return rules
}

func named[T object](t *testing.T, objects []object, name string) T {
	t.Helper()
	for _, obj := range objects {
		if typed, ok := obj.(T); ok && obj.GetName() == name {
			return typed
		}
	}
	var none T
	t.Fatalf("there is no %T %s", none, name)
	return none
}

func only[T object](t *testing.T, objects []object) T {
	t.Helper()
	var found []T
	for _, obj := range objects {
		if typed, ok := obj.(T); ok {
			found = append(found, typed)
		}
	}
	if len(found) != 1 {
		t.Fatalf("there are %d of %T, want one", len(found), found)
	}
	return found[0]
}

func index(objects []object) map[string]object {
	byName := map[string]object{}
	for _, obj := range objects {
		name := fmt.Sprintf("%s %s", kindOf(obj), obj.GetName())
		byName[name] = obj
	}
	return byName
}

func keys[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func kindOf(obj runtime.Object) string {
	return obj.GetObjectKind().GroupVersionKind().Kind
}

func ptr[T any](value T) *T {
	return &value
}
