// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
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

// A version of an application that was stored with an old word can be mended, although
// nothing else of it may change.
func TestStoredApplicationWithAnOldWord(t *testing.T) {
	app := func(name string) *unstructured.Unstructured {
		obj := parse(t, helmApplication(name, "{version: 1.0.0, chart: {oci: {url: 'oci://a/b'}}, kubernetes: '1.30'}"))
		obj.SetAPIVersion("stored.example/v1alpha1")
		return obj
	}
	stored := storedBefore(t, "helmapplications", app, []string{"versions", "items", "properties", "kubernetes"}, "kubernetes is now kubeVersion")
	for _, patch := range []string{
		`{"spec":{"description":"still there"}}`,
		`{"spec":{"versions":[{"version":"1.0.0","chart":{"oci":{"url":"oci://a/b"}},"kubeVersion":"1.30"}]}}`,
	} {
		if err := server.Patch(t.Context(), stored, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Errorf("%s: %v", patch, err)
		}
	}
}
