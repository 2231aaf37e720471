// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// New objects are refused that have an old word, with the word of now.
func TestOldWordsAreRefused(t *testing.T) {
	needsServer(t)
	tests := map[string]struct{ manifest, old, now string }{
		"a condition": {
			layer("old", "{version: 1.0.0, source: {name: addons, path: ./base}, waitFor: [{apiVersion: v1, kind: ConfigMap, name: a, condition: 'true'}]}"),
			", condition: 'true'", "condition is now readyExpr: write that",
		},
		"an order of deletion in a bundle": {
			applicationBundle("old", "{name: apps, "+someApplications+", teardown: {after: [a]}}", ""), ", teardown: {after: [a]}",
			"teardown.after is now teardownAfter: write that",
		},
		"an order of deletion": {
			layer("old", "{version: 1.0.0, source: {name: addons, path: ./base}, deleteAfter: [a]}"), ", deleteAfter: [a]",
			"deleteAfter is now teardownAfter: write that",
		},
		"the Secret of a cluster": {
			applicationBundle("old", "{name: a, remoteCluster: {kubeConfig: {secretRef: {name: a, namespace: b}}, secretRef: {name: a}, namespace: b}}", ""),
			", secretRef: {name: a}, namespace: b", "secretRef is now kubeConfig.secretRef: write that",
		},
		"via": {
			"apiVersion: kraan.io/v1alpha1\nkind: RemoteCluster\nmetadata: {name: old, namespace: default}\n" +
				"spec: {kubeConfig: {secretRef: {name: a}}, via: {name: outer, namespace: tenants}}",
			", via: {name: outer, namespace: tenants}", "via is now kubeConfig.clusterRef, and its namespace kubeConfig.secretRef.namespace: write that",
		},
		"a bound": {
			platform("old", "bundle: {family: base}, upgrade: {semver: Patch}"), "semver: Patch", "semver is now maxStep: write that",
		},
		"windows": {
			platform("old", "bundle: {family: base}, upgrade: {windows: [{start: '22:00', duration: 1h}]}"), "windows: [{start: '22:00', duration: 1h}]",
			"windows is now maintenanceWindows: write that",
		},
		"the recommendations of a version": {
			helmApplication("old", "{version: 1.0.0, "+repositoryChart+", recommendations: [{name: db}]}"), "recommendations: [{name: db}]",
			"recommendations is now recommends: write that",
		},
		"the dependencies of a version": {
			helmApplication("old", "{version: 1.0.0, "+repositoryChart+", dependencies: [{name: db}]}"), "dependencies: [{name: db}]",
			"dependencies is now dependsOn: write that",
		},
		"the licence of an application": {
			strings.Replace(helmApplication("old", "{version: 1.0.0, "+repositoryChart+"}"), "spec: {", "spec: {licence: MIT, ", 1), "licence: MIT,", "licence is now license: write that",
		},
		"the Kubernetes of a version": {
			helmApplication("old", "{version: 1.0.0, chart: {oci: {url: 'oci://a/b'}}, kubernetes: '1.30'}"), "kubernetes: '1.30'", "kubernetes is now kubeVersion: write that",
		},
		"the Kubernetes of a bundle": {
			applicationBundle("old", "{name: apps, "+someApplications+"}", ", kubernetes: '1.30'"), "kubernetes: '1.30'", "kubernetes is now kubeVersion: write that",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := server.Create(t.Context(), parse(t, tt.manifest), client.DryRunAll)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tt.now) {
				t.Errorf("%v, want %s", err, tt.now)
			}
			if !strings.Contains(tt.manifest, tt.old) {
				t.Fatalf("there is no %s to leave out", tt.old)
			}
			without := parse(t, strings.Replace(tt.manifest, tt.old, "", 1))
			if err := server.Create(t.Context(), without, client.DryRunAll); err != nil {
				t.Errorf("without the word: %v", err)
			}
		})
	}
}

// An old word is named also where the word of now is missing, which is required.
func TestOldWordsAloneAreNamed(t *testing.T) {
	needsServer(t)
	for cluster, want := range map[string]string{
		"{secretRef: {name: a}, namespace: b}":               "secretRef is now kubeConfig.secretRef: write that",
		"{namespace: b}":                                     "namespace is now kubeConfig.secretRef.namespace: write that",
		"{kubeConfig: {secretRef: {name: a}}, namespace: b}": "namespace is now kubeConfig.secretRef.namespace: write that",
		"{kubeConfig: {secretRef: {name: a}}}":               "kubeConfig.secretRef.namespace is missing: it is where the Secret is",
		"{interval: 1m}":                                     "kubeConfig is missing: its secretRef names the Secret",
	} {
		err := server.Create(t.Context(), parse(t, applicationBundle("old", "{name: a, remoteCluster: "+cluster+"}", "")), client.DryRunAll)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", cluster, err, want)
		}
	}
}

// What was stored with an old word can say so and be mended, although nothing else of what is
// published may change: the old definition is replaced by the new one, and the word is still
// there, the status and other fields can be written, and the new word takes its place.
func TestStoredObjectsWithOldWords(t *testing.T) {
	const chart = `"chart":{"repository":{"url":"https://charts.example.com","chart":"podinfo"}}`
	tests := map[string]struct {
		plural, manifest string
		// field is the old word's in the specification, without indices.
		field []string
		// now is part of the refusal of others like it.
		now string
		// other changes something else, and mended writes the new word.
		other, mended string
	}{
		"a version of an application": {
			"helmapplications", helmApplication("NAME", "{version: 1.0.0, "+repositoryChart+", kubernetes: '1.30'}"),
			[]string{"versions", "items", "properties", "kubernetes"},
			"kubernetes is now kubeVersion",
			`{"spec":{"description":"still there"}}`, `{"spec":{"versions":[{"version":"1.0.0",` + chart + `,"kubeVersion":"1.30"}]}}`,
		},
		"a bundle": {
			"applicationbundles", applicationBundle("NAME", "{name: apps, "+someApplications+"}", ", kubernetes: '1.30'"),
			[]string{"kubernetes"},
			"kubernetes is now kubeVersion", `{"spec":{"description":"still there"}}`, `{"spec":{"kubernetes":null,"kubeVersion":"1.30"}}`,
		},
		"a layer": {
			"addonslayers", layer("NAME", "{version: 1.0.0, source: {name: addons, path: ./base}, deleteAfter: [apps]}"),
			[]string{"deleteAfter"},
			"deleteAfter is now teardownAfter", `{"spec":{"hold":true}}`, `{"spec":{"deleteAfter":null,"teardownAfter":["apps"]}}`,
		},
		"a Platform": {
			"platforms", platform("NAME", "bundle: {family: base}, upgrade: {windows: [{start: '22:00', duration: 1h}]}"),
			[]string{"upgrade", "properties", "windows"},
			"windows is now maintenanceWindows", `{"spec":{"hold":true}}`,
			`{"spec":{"upgrade":{"windows":null,"maintenanceWindows":[{"start":"22:00","duration":"1h"}]}}}`,
		},
		"a cluster": {
			"remoteclusters", "apiVersion: kraan.io/v1alpha1\nkind: RemoteCluster\nmetadata: {name: NAME, namespace: default}\n" +
				"spec: {kubeConfig: {secretRef: {name: a}}, via: {name: outer, namespace: tenants}}",
			[]string{"via"},
			"via is now kubeConfig.clusterRef", `{"spec":{"interval":"1m"}}`,
			`{"spec":{"via":null,"kubeConfig":{"clusterRef":{"name":"outer"},"secretRef":{"namespace":"tenants"}}}}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			object := func(name string) *unstructured.Unstructured {
				obj := parse(t, strings.Replace(tt.manifest, "NAME", name, 1))
				obj.SetAPIVersion("stored.example/v1alpha1")
				return obj
			}
			stored := storedBefore(t, tt.plural, object, tt.field, tt.now)
			old := tt.field[len(tt.field)-1]
			if !strings.Contains(fmt.Sprint(stored.Object["spec"]), old+":") {
				t.Fatalf("%s is lost: %v", old, stored.Object["spec"])
			}
			status := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"observedGeneration":1}}`))
			if err := server.Status().Patch(t.Context(), stored, status); err != nil {
				t.Errorf("its status cannot be written: %v", err)
			}
			for _, patch := range []string{tt.other, tt.mended} {
				if err := server.Patch(t.Context(), stored, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
					t.Errorf("%s: %v", patch, err)
				}
			}
			if strings.Contains(fmt.Sprint(stored.Object["spec"]), old+":") {
				t.Errorf("%s is still there: %v", old, stored.Object["spec"])
			}
		})
	}
}
