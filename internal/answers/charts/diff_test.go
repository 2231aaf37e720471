// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason, before, after string
		want                  []string
	}{
		{
			"an image, an environment variable and a port, by their names and not by their places",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: apps}, spec: {template: {spec: {containers: [
			  {name: proxy, image: "p:1"},
			  {name: web, image: "a:1", env: [{name: A, value: "1"}, {name: B, value: "2"}], ports: [{name: http, containerPort: 80}]}]}}}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: apps}, spec: {template: {spec: {containers: [
			  {name: first, image: "f:1"},
			  {name: proxy, image: "p:1"},
			  {name: web, image: "a:2", env: [{name: B, value: "3"}], ports: [{name: http, containerPort: 8080}]}]}}}}`,
			[]string{
				`~ Deployment apps/web  spec.template.spec.containers[first]: added {"image":"f:1","name":"first"}`,
				`~ Deployment apps/web  spec.template.spec.containers[web].env[A]: removed {"name":"A","value":"1"}`,
				`~ Deployment apps/web  spec.template.spec.containers[web].env[B].value: "2" -> "3"`,
				`~ Deployment apps/web  spec.template.spec.containers[web].image: a:1 -> a:2`,
				`~ Deployment apps/web  spec.template.spec.containers[web].ports[http].containerPort: 80 -> 8080`,
			},
		},
		{
			"ports without names, by their numbers; mounts by their paths",
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {ports: [{containerPort: 80}, {containerPort: 53, protocol: UDP}, {containerPort: 53, protocol: TCP}], volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /b}]}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {ports: [{containerPort: 80, hostPort: 1}, {containerPort: 53, protocol: UDP}, {containerPort: 53, protocol: TCP}], volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /b, readOnly: true}]}}`,
			[]string{"~ Pod a  spec.ports[80].hostPort: added 1", "~ Pod a  spec.volumeMounts[/b].readOnly: added true"},
		},
		{
			"the order of init containers",
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {initContainers: [{name: u}, {name: v}]}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {initContainers: [{name: v}, {name: u}]}}`,
			[]string{`~ Pod a  spec.initContainers[]: ["u","v"] -> ["v","u"]`},
		},
		{
			"arguments that come and go, and their order",
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {args: [--a, --b, --c], command: [u, v]}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {args: [--d, --c, --a, --e], command: [v, u]}}`,
			[]string{"~ Pod a  spec.args[]: --b -> --d", "~ Pod a  spec.args[]: added --e", `~ Pod a  spec.command[]: ["u","v"] -> ["v","u"]`},
		},
		{
			"rules have no names",
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a, namespace: b}, rules: [{verbs: [get]}]}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a, namespace: b}, rules: [{verbs: [get, list]}, {verbs: [watch]}]}`,
			[]string{"~ Role b/a  rules[0].verbs[]: added list", `~ Role b/a  rules[1]: added {"verbs":["watch"]}`},
		},
		{
			"another API version of the same object",
			`{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: a, namespace: b}}`,
			`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, namespace: b}}`,
			[]string{"~ PodDisruptionBudget b/a  apiVersion: policy/v1beta1 -> policy/v1"},
		},
		{
			"keys with dots, texts of several lines, long values, what looks like a number",
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app.kubernetes.io/version: "1"}}, data: {app.yaml: "a\nb\nc\nd", long: "` + strings.Repeat("x", 100) + `:1", empty: ""}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app.kubernetes.io/version: "2"}}, data: {app.yaml: "a\nB\nC\nd", long: "` + strings.Repeat("x", 100) + `:2", empty: " "}}`,
			[]string{
				"~ ConfigMap a  data.empty: \"\" -> \" \"",
				"~ ConfigMap a  data.long: …xxxxxxxxx:1 -> …xxxxxxxxx:2",
				"~ ConfigMap a  data[app.yaml]: line 2: b -> B (and 1 more lines)",
				`~ ConfigMap a  metadata.labels[app.kubernetes.io/version]: "1" -> "2"`,
			},
		},
		{
			"numbers are the same however they are written, and a null is nothing",
			`{apiVersion: v1, kind: X, metadata: {name: a}, spec: {n: 1, m: null, l: [{a: null}]}}`,
			`{apiVersion: v1, kind: X, metadata: {name: a}, spec: {n: 1.0, l: [{}]}}`,
			nil,
		},
		{
			"control characters do not reach a terminal",
			`{apiVersion: v1, kind: X, metadata: {name: a}, spec: {"k\u001b[2J": 1, v: "a"}}`,
			`{apiVersion: v1, kind: X, metadata: {name: a}, spec: {"k\u001b[2J": 2, v: "\u001b[2J"}}`,
			[]string{`~ X a  spec.v: a -> "\x1b[2J"`, `~ X a  spec["k\x1b[2J"]: 1 -> 2`},
		},
	} {
		before, after := parse(t, c.before), parse(t, c.after)
		var got []string
		for _, change := range Diff([]*unstructured.Unstructured{before}, []*unstructured.Unstructured{after}) {
			got = append(got, change.Lines(0)...)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", c.reason, diff)
		}
	}
}

func TestDiffOfWholeObjects(t *testing.T) {
	t.Parallel()
	a, b, c := objectOf("v1", "ConfigMap"), objectOf("v1", "Service"), objectOf("apps/v1", "Deployment")
	changes := Diff([]*unstructured.Unstructured{b, a}, []*unstructured.Unstructured{c, a})
	var got []string
	for _, change := range changes {
		got = append(got, change.Lines(1)...)
	}
	if diff := cmp.Diff([]string{"- Service apps/it", "+ Deployment apps/it"}, got); diff != "" {
		t.Error(diff)
	}
	if changes[0].APIVersion != "v1" || changes[1].APIVersion != "apps/v1" || changes[0].Verb != Delete || changes[1].Verb != Create {
		t.Errorf("got %v", changes)
	}
}

func TestLinesHaveALimit(t *testing.T) {
	t.Parallel()
	before, after := objectOf("v1", "ConfigMap"), objectOf("v1", "ConfigMap")
	before.Object["data"] = map[string]any{"a": "x", "b": "x", "c": "x", "d": "x"}
	after.Object["data"] = map[string]any{"a": "y", "b": "y", "c": "y", "d": "y"}
	change := Diff([]*unstructured.Unstructured{before}, []*unstructured.Unstructured{after})[0]
	want := []string{"~ ConfigMap apps/it  data.a: x -> y", "~ ConfigMap apps/it  and 3 more fields"}
	if diff := cmp.Diff(want, change.Lines(2)); diff != "" {
		t.Error(diff)
	}
	if got := change.Lines(4); len(got) != 4 || strings.Contains(got[3], "more") {
		t.Errorf("got %q", got)
	}
}

func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	before := parse(t, `apiVersion: v1
kind: Secret
metadata:
  name: a
  namespace: b
  annotations: {kubectl.kubernetes.io/last-applied-configuration: hunter1, other: "1"}
type: Opaque
data: {same: aHVudGVyMg==, changed: aHVudGVyMg==, gone: aHVudGVyMg==, moved: aHVudGVyMg==}`)
	after := parse(t, `apiVersion: v1
kind: Secret
metadata:
  name: a
  namespace: b
  annotations: {kubectl.kubernetes.io/last-applied-configuration: hunter22, other: "2"}
type: Opaque
data: {same: aHVudGVyMg==, changed: aHVudGVyMzMz, come: aHVudGVyMg==}
stringData: {moved: hunter2, plain: hunter4}`)
	changes := Diff([]*unstructured.Unstructured{before}, []*unstructured.Unstructured{after})
	data, err := json.Marshal(changes)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "hunter") || strings.Contains(string(data), "aHVud") {
		t.Errorf("a value is in %s", data)
	}
	want := []string{
		"~ Secret b/a  data.changed: *** -> *** (changed)",
		"~ Secret b/a  data.come: added ***",
		"~ Secret b/a  data.gone: removed ***",
		"~ Secret b/a  data.plain: added ***",
		"~ Secret b/a  metadata.annotations.other: \"1\" -> \"2\"",
		"~ Secret b/a  metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]: *** -> *** (changed)",
	}
	if diff := cmp.Diff(want, changes[0].Lines(0)); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(text(t, []*unstructured.Unstructured{before, after}), "aHVudGVyMzMz") {
		t.Error("the objects themselves were changed")
	}
	// All of the data comes: no value either, where it is shown as a whole.
	empty := parse(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\n")
	for _, change := range Diff([]*unstructured.Unstructured{empty}, []*unstructured.Unstructured{after}) {
		if got := strings.Join(change.Lines(0), "\n"); strings.Contains(got, "hunter") || strings.Contains(got, "aHVud") {
			t.Errorf("a value is in %s", got)
		}
	}
}

// value draws any JSON that an API server may hold.
func value(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 4
		if depth == 0 {
			kinds = 2
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return rapid.SampledFrom([]any{"a", "b", ""}).Draw(t, "text")
		case 1:
			return rapid.SampledFrom([]any{int64(1), int64(2), true}).Draw(t, "other")
		case 2:
			return rapid.SliceOfN(value(depth-1), 0, 3).Draw(t, "list")
		}
		keys := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"name", "port", "x", "y.z"}), 0, 3, rapid.ID).Draw(t, "keys")
		object := map[string]any{}
		for _, key := range keys {
			object[key] = value(depth-1).Draw(t, key)
		}
		return object
	})
}

// A difference is found where the JSON differs, and only there; and the way back is
// the same turned round.
func TestDiffFindsWhatDiffers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before, after := objectOf("v1", "X"), objectOf("v1", "X")
		before.Object["spec"], after.Object["spec"] = value(3).Draw(t, "before"), value(3).Draw(t, "after")
		there := Diff([]*unstructured.Unstructured{before}, []*unstructured.Unstructured{after})
		if differs := encoded(before.Object) != encoded(after.Object); differs != (len(there) > 0) {
			t.Fatalf("differs: %t, found %v", differs, there)
		}
		back := Diff([]*unstructured.Unstructured{after}, []*unstructured.Unstructured{before})
		turned := func(changes []Change, turn bool) []string {
			var all []string
			for _, change := range changes {
				for _, field := range change.Fields {
					if turn {
						field.From, field.To = field.To, field.From
					}
					all = append(all, field.String())
				}
			}
			slices.Sort(all)
			return all
		}
		if diff := cmp.Diff(turned(there, false), turned(back, true)); diff != "" {
			t.Fatal(diff)
		}
	})
}
