// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/directories"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestTranslate(t *testing.T) {
	got, err := Translate(object(t, `
apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata:
  name: base
  uid: abc
  resourceVersion: "1"
  finalizers: [finalizers.kraan.io]
  annotations: {kubectl.kubernetes.io/last-applied-configuration: x}
spec:
  hold: true
  interval: 1m0s
  newField: {deep: 1}
  prereqs: {k8sVersion: "1.16", dependsOn: [a@1.0.0, b@1.x, c]}
  source: {kind: gitrepositories.source.toolkit.fluxcd.io, name: addons, namespace: "", path: ./base}
  version: 1.0.0
status: {state: Hold, conditions: []}
`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := Text("", got.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata:
  annotations:
    kraan.io/hold-releases: "true"
  name: base
spec:
  hold: true
  interval: 1m0s
  prereqs:
    dependsOn:
    - a@1.0.0
    - b@1.x
    - c
    k8sVersion: "1.16"
  source:
    name: addons
    path: ./base
  version: 1.0.0
`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	notes := strings.Join(got.Notes, "\n")
	for _, word := range []string{"spec.newField was left out", "k8sVersion 1.16", "dependsOn b@1.x", "dependsOn c:", "kraan.io/hold-releases"} {
		if !strings.Contains(notes, word) {
			t.Errorf("the notes lack %q: %s", word, notes)
		}
	}
	if len(got.Notes) != 5 || len(got.Problems) != 0 {
		t.Errorf("%q, %q", got.Notes, got.Problems)
	}
}

func TestTranslateFindsWhatIsRefused(t *testing.T) {
	got, err := Translate(object(t, `
apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: `+strings.Repeat("a", 64)+`}
spec: {interval: 0s, timeout: -1s, source: {name: addons, path: ./../x}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Problems) != 5 {
		t.Errorf("%q", got.Problems)
	}
	if _, err := Translate(object(t, "kind: AddonsLayer\nmetadata: {name: a}\nspec: {version: [1]}\n")); err == nil || !strings.Contains(err.Error(), "cannot understand layer a") {
		t.Errorf("what is no layer is taken: %v", err)
	}
}

const inGit = `metadata: {name: web, namespace: shop}
spec: {interval: 1m, chart: {spec: {chart: podinfo, version: 1.2.3, sourceRef: {kind: HelmRepository, name: charts}}}, values: {a: {b: 1, c: 2}}}
`

func TestDifferences(t *testing.T) {
	for _, test := range []struct {
		name    string
		old     string
		new     string
		fields  string
		another bool
	}{
		{"nothing", "", "", "", false},
		{"defaults of the API server, and the interval", "interval: 1m, chart: {spec: {", "interval: 5m, chart: {spec: {reconcileStrategy: ChartVersion, interval: 2m, ", "", false},
		{"the namespace of the source", "name: charts}", "name: charts, namespace: shop}", "", false},
		{"the order of values", "{b: 1, c: 2}", "{c: 2, b: 1}", "", false},
		{"a value", "b: 1", "b: 2", "spec.values", false},
		{"the version", "1.2.3", "1.2.4", "spec.chart", false},
		{"the source", "name: charts", "name: others", "spec.chart", false},
		{"empty values from elsewhere", "values:", "valuesFrom: [], values:", "", false},
		{"values from elsewhere", "values:", "valuesFrom: [{kind: Secret, name: x}], values:", "spec.valuesFrom", false},
		{"its name", "interval: 1m", "interval: 1m, releaseName: front", "", true},
		{"where it is", "interval: 1m", "interval: 1m, targetNamespace: other, releaseName: web", "", true},
		{"where Helm keeps it", "interval: 1m", "interval: 1m, storageNamespace: other", "", true},
		{"the name that it has anyway", "interval: 1m", "interval: 1m, releaseName: web, targetNamespace: shop, storageNamespace: shop", "", false},
	} {
		live := liveRelease(t, strings.Replace(inGit, test.old, test.new, 1))
		fields, another := Differences(liveRelease(t, inGit), live)
		if got := strings.Join(fields, " "); got != test.fields || another != test.another {
			t.Errorf("%s: %q, %v", test.name, got, another)
		}
	}
}

func TestOutcome(t *testing.T) {
	named := func(name, more string) string {
		return "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\n" + strings.Replace(strings.Replace(inGit, "name: web", "name: "+name, 1), "namespace: shop}", "namespace: shop"+more+"}", 1)
	}
	const byLabel, byReference = ", generation: 1, labels: {kraan/layer: base}", ", generation: 1, labels: {kraan/layer: base}, ownerReferences: [{apiVersion: kraan.io/v1alpha1, kind: AddonsLayer, name: base, uid: u, controller: true}]"
	listed := func(name string) *unstructured.Unstructured { return object(t, named(name, "")) }
	live := func(name, more string) *unstructured.Unstructured { return object(t, named(name, more)) }
	upgraded := live("upgraded", byLabel)
	_ = unstructured.SetNestedField(upgraded.Object, "1.0.0", "spec", "chart", "spec", "version")
	renamed := live("old", byLabel)
	_ = unstructured.SetNestedField(renamed.Object, "renamed", "spec", "releaseName")
	elsewhere := live("elsewhere", byLabel)
	_ = unstructured.SetNestedField(elsewhere.Object, "other", "spec", "storageNamespace")
	w := world(
		[]*unstructured.Unstructured{
			live("web", byLabel), live("owned", byReference), live("nobodys", ", generation: 1"), upgraded, renamed, elsewhere,
			live("left", byLabel), live("taken", byReference), live("moved", byLabel), live("foreign", ""),
		},
		map[string]*directories.Directory{
			"base": directory(listed("elsewhere"), object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra, namespace: shop}\n"), listed("new"), listed("nobodys"), listed("owned"), listed("renamed"), listed("upgraded"), listed("web")),
			"apps": directory(listed("moved")),
		},
		layer("base"), layer("apps"),
	)
	got := map[string]string{}
	outcome := w.Outcome(w.Layers[0])
	for _, item := range outcome.Items {
		got[item.Name] = item.Action + ": " + item.Note
	}
	want := map[string]string{
		"web": "adopt: nothing changes", "owned": "adopt: nothing changes", "nobodys": "adopt: nothing changes; nobody has it yet",
		"upgraded": "upgrade: git has something else in spec.chart", "new": "install: it is not there",
		"renamed":   "rename: HelmRelease shop/old stands for the same Helm release",
		"elsewhere": "reinstall: it stands for the Helm release other/elsewhere, and git for shop/elsewhere",
		"left":      "prune: no layer lists it: it would be uninstalled", "taken": "prune: no layer lists it: it would be uninstalled",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ConfigMap shop/extra"}, outcome.New); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	outcome = w.Outcome(w.Layers[1])
	if len(outcome.Items) != 1 || outcome.Items[0].Action != ActionAdopt || outcome.Items[0].Note != "nothing changes; layer base has it yet" || outcome.Message != "" {
		t.Errorf("%+v", outcome)
	}
}

// What the controller itself would do with what Kraan has left is part of a look.
func TestLookTakesWhatKraanLeft(t *testing.T) {
	const kraans = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: %s, namespace: shop, uid: u, generation: 1, labels: {kraan/layer: base}, ownerReferences: [{apiVersion: kraan.io/v1alpha1, kind: AddonsLayer, name: base, uid: u, controller: true}]}\nspec: {interval: 1m}\n"
	live := []*unstructured.Unstructured{object(t, fmt.Sprintf(kraans, "web")), object(t, fmt.Sprintf(kraans, "left"))}
	w := world(live, map[string]*directories.Directory{"base": directory(liveRelease(t, "metadata: {name: web, namespace: shop}\nspec: {interval: 1m}\n"))}, layer("base"))
	got := map[string]bool{}
	for _, action := range w.Look(w.Layers[0]).Plan.Actions {
		got[string(action.Verb)+" "+action.ID.Name] = true
	}
	if !got["Disown left"] && !got["Mark left"] || !got["Write web"] {
		t.Errorf("%v", got)
	}
}

// The controller's own guards say why a layer would not go on.
func TestOutcomeSaysWhatIsInTheWay(t *testing.T) {
	base := layer("base")
	base.Spec.Prereqs.K8sVersion = "1.40"
	w := world(nil, map[string]*directories.Directory{"base": directory()}, base)
	if got := w.Outcome(base).Message; !strings.Contains(got, "waits for Kubernetes 1.40") {
		t.Error(got)
	}
	w.Directories["base"] = &directories.Directory{Digest: "sha256:empty", Missing: true}
	base.Spec.Prereqs.K8sVersion = ""
	if got := w.Outcome(base).Message; !strings.Contains(got, "there is no directory ./base") {
		t.Error(got)
	}
}
