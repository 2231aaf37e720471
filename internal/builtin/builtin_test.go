// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"errors"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	found := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &found.Object); err != nil {
		t.Fatal(err)
	}
	return found
}

const (
	configMap  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n"
	secret     = "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\n"
	deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: b}\nspec:\n  selector: {matchLabels: {app: a}}\n  template:\n    metadata: {labels: {app: a}}\n    spec:\n      containers:\n      - name: a\n        image: a\n"
)

// What the API server refuses is found, at its field, and without a value.
func TestWhatIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"a number in a ConfigMap": {configMap + "data: {port: 8080, on: yes}\n", []string{
			"data[port]: must be a text, and is a number: quote it", "data[true]: must be a text, and is true or false: quote it",
		}},
		"no mapping":         {configMap + "data: [a]\n", []string{"data: must be a mapping, and is a list"}},
		"an unknown field":   {deployment + "        commando: [a]\n", []string{"spec.template.spec.containers[0].commando: there is no such field: do you mean command?"}},
		"a wrong level":      {configMap + "spec: {a: b}\n", []string{"spec: there is no such field"}},
		"a text as a number": {strings.Replace(deployment, "spec:\n", "spec:\n  replicas: '3'\n", 1), []string{"spec.replicas: must be a whole number of 32 bits, and is a text: write it without quotes"}},
		"a broken number":    {strings.Replace(deployment, "spec:\n", "spec:\n  replicas: 1.5\n", 1), []string{"spec.replicas: must be a whole number of 32 bits, and is a number"}},
		"too large a number": {strings.Replace(deployment, "spec:\n", "spec:\n  replicas: 3000000000\n", 1), []string{"spec.replicas: must be a whole number of 32 bits, and is a number"}},
		"a text as a truth":  {configMap + "immutable: 'true'\n", []string{"immutable: must be true or false, and is a text: write it without quotes"}},
		"no quantity":        {deployment + "        resources: {limits: {cpu: 1 core}}\n", []string{"spec.template.spec.containers[0].resources.limits[cpu]: is no quantity: write one such as 500m or 1Gi"}},
		"env twice": {deployment + "        env: [{name: A, value: a}, {name: B}, {name: A, value: b}]\n", []string{
			`spec.template.spec.containers[a].env: has two entries with name="A": remove one`,
		}},
		"a port twice": {"apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: b}\nspec:\n  ports: [{name: a, port: 80}, {name: b, port: 80, protocol: TCP}]\n", []string{
			`spec.ports: has two entries with port=80 and protocol="TCP": remove one`,
		}},
		"a finalizer twice":      {strings.Replace(configMap, "name: a,", "name: a, finalizers: [a/b, a/b],", 1), []string{`metadata.finalizers: has two entries with "a/b": remove one`}},
		"no base64":              {secret + "data: {a: 'no base64!'}\n", []string{"data[a]: is no base64: encode it, or write it in stringData"}},
		"no base64, binary":      {configMap + "binaryData: {a: 'no base64!'}\n", []string{"binaryData[a]: is no base64: encode it"}},
		"a number in stringData": {secret + "stringData: {pin: 1234}\n", []string{"stringData[pin]: must be a text, and is a number: quote it"}},
		"keys of labels": {strings.Replace(configMap, "name: a,", "name: a, labels: {a/b/c: x, bad key: x, good: 'no value!'},", 1), []string{
			"metadata.labels[a/b/c]: is no key of a label or an annotation: a valid label key", "metadata.labels[bad key]: is no key of a label or an annotation: name part",
			"metadata.labels[good]: is no value of a label: a valid label",
		}},
		"labels of Pods": {strings.Replace(deployment, "labels: {app: a}", "labels: {app: a, a/b/c: x}", 1), []string{
			"spec.template.metadata.labels[a/b/c]: is no key of a label or an annotation: a valid label key",
		}},
		"a selector":           {strings.Replace(deployment, "matchLabels: {app: a}", "matchLabels: {app: a, bad key: x}", 1), []string{"spec.selector.matchLabels: name part"}},
		"large annotations":    {strings.Replace(configMap, "name: a,", "name: a, annotations: {a: "+strings.Repeat("x", 300_000)+"},", 1), []string{"metadata.annotations: have 292 KiB, and an object may have 256 of annotations"}},
		"a key of a ConfigMap": {configMap + "data: {a/b: c}\n", []string{"data[a/b]: is no key of a ConfigMap: a valid config key"}},
		"a Namespace":          {"apiVersion: v1\nkind: Namespace\nmetadata: {name: a.b}\n", []string{"metadata.name: is no name of a Namespace:"}},
		"a CronJob":            {"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: " + strings.Repeat("a", 53) + "}\n", []string{"metadata.name: is no name of a CronJob: must be no more than 52 "}},
		"a definition": {"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\nspec: {group: acme.io, names: {plural: gadgets, kynd: x}}\n", []string{
			"metadata.name: is no name of a CustomResourceDefinition: spec.names.plural and spec.group make it gadgets.acme.io", "spec.names.kynd: there is no such field: do you mean kind?",
		}},
		"of others, metadata alone": {"apiVersion: acme.io/v1\nkind: Gadget\nmetadata: {name: a, labels: {a/b/c: x}}\nspec: {env: [{name: a}, {name: a}]}\n", []string{
			"metadata.labels[a/b/c]: is no key",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, found := range Check(object(t, tc.text)) {
				got = append(got, found.Error())
			}
			if len(got) != len(tc.want) {
				t.Fatalf("found %q, want %q", got, tc.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], tc.want[i]) {
					t.Errorf("found %q, want %q", got[i], tc.want[i])
				}
			}
		})
	}
}

// What the API server takes is nothing.
func TestWhatIsTaken(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                         configMap + "data:\n",
		"null is as if it were not there": configMap + "data: {a: null}\nimmutable: null\n",
		"a whole float":                   strings.Replace(deployment, "spec:\n", "spec:\n  replicas: 3.0\n", 1),
		"quantities as numbers":           deployment + "        resources: {limits: {cpu: 1, memory: 1.5Gi}, requests: {cpu: 0.5}}\n",
		"a port by name and by number":    deployment + "        livenessProbe: {httpGet: {port: http}}\n        readinessProbe: {httpGet: {port: 80}}\n",
		"base64 on lines":                 secret + "data:\n  a: |\n    aGVs\n    bG8=\n",
		"encrypted":                       secret + "data: {a: 'ENC[AES256_GCM,data:x,iv:y]'}\n",
		"a variable":                      strings.Replace(deployment, "spec:\n", "spec:\n  replicas: ${REPLICAS}\n", 1),
		"status":                          deployment + "status: {anything: true}\n",
		"one port of two protocols":       "apiVersion: v1\nkind: Service\nmetadata: {name: dns, namespace: b}\nspec:\n  ports: [{name: a, port: 53}, {name: b, port: 53, protocol: UDP}]\n",
		"a role":                          "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: 'system:a'}\nrules: []\n",
		"a List of others":                "apiVersion: acme.io/v1\nkind: Gadget\nmetadata: {name: a}\nspec: {anything: 1}\n",
		"a definition": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gadgets.acme.io}\nspec:\n  group: acme.io\n  scope: Namespaced\n  names: {plural: gadgets, kind: Gadget}\n" +
			"  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string, default: b}}}}}\n",
		"a managed field": strings.Replace(configMap, "name: a,", "name: a, creationTimestamp: null, managedFields: [{manager: a, fieldsType: FieldsV1, fieldsV1: {'f:data': {}}, time: '2026-01-02T03:04:05Z'}],", 1),
		"a webhook":       "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: a}\nwebhooks: [{name: a.b.c, clientConfig: {caBundle: Cg==, url: 'https://a'}, sideEffects: None, admissionReviewVersions: [v1]}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			if found := Check(object(t, text)); len(found) > 0 {
				t.Errorf("found %q", found)
			}
		})
	}
}

// Before a creation only lists are looked at: a later version may have further fields.
func TestLists(t *testing.T) {
	for text, want := range map[string]string{
		deployment: "",
		deployment + "        env: [{name: A}, {name: A}]\n":                                               `spec.template.spec.containers[a].env: has two entries with name="A": remove one`,
		deployment + "        later: true\n":                                                               "",
		deployment + "        later: true\n        env: [{name: A}, {name: A}]\n":                          `spec.template.spec.containers[a].env: has two entries with name="A": remove one`,
		configMap + "data: {port: 8080}\n":                                                                 "",
		"apiVersion: acme.io/v1\nkind: Gadget\nmetadata: {name: a}\nspec: {env: [{name: a}, {name: a}]}\n": "",
	} {
		got := ""
		err := Refusal(object(t, text))
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			cause := status.Status().Details.Causes[0]
			got = cause.Field + ": " + strings.TrimPrefix(cause.Message, "Invalid value: ")
		}
		if got != want || apierrors.IsInvalid(err) != (want != "") {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// Every kind of client-go has a type that can be looked through, and one that structured-merge-diff
// knows.
func TestEveryKindIsKnown(t *testing.T) {
	count := 0
	for gvk := range known().AllKnownTypes() {
		if strings.HasSuffix(gvk.Kind, "List") || strings.HasSuffix(gvk.Kind, "Options") || gvk.Version == "__internal" || gvk.Kind == "WatchEvent" {
			continue
		}
		value := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}}}
		value.SetGroupVersionKind(gvk)
		typed, err := known().New(gvk)
		if err != nil {
			t.Fatal(err)
		}
		if _, has := jsonFields(reflect.TypeOf(typed))["metadata"]; !has {
			continue
		}
		for _, found := range Check(value) {
			if found.Field != "metadata.name" {
				t.Errorf("%s: %v", gvk, found)
			}
		}
		count++
	}
	if count < 100 {
		t.Errorf("no more than %d kinds are known", count)
	}
	if _, err := converter().ObjectToTyped(object(t, deployment)); err != nil {
		t.Errorf("a Deployment has no type: %v", err)
	}
}

// The version that is named is that of the types.
func TestVersion(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`k8s\.io/api v0\.(\d+)\.`).FindSubmatch(text)
	if found == nil {
		t.Fatal("go.mod does not name k8s.io/api")
	}
	if diff := cmp.Diff("1."+string(found[1]), Version); diff != "" {
		t.Error(diff)
	}
}
