// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package oldwords_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/oldwords"
)

func parse[T any](t *testing.T, text string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// A version that was published in old words is the same in new ones, so that it can be
// mended; the digest was made before there were new ones.
func TestVersionsKeepTheirDigests(t *testing.T) {
	const want = "sha256:e7169ce88c0a7fd13ae45fd3723b64c7e8f9e745bda09f311bedf5abff8fcad0"
	for _, text := range []string{
		"{version: 1.0.0, chart: {oci: {url: 'oci://a/b'}}, kubernetes: '>=1.30', dependencies: [{name: db, range: ^1}], recommendations: [{name: dns}]}",
		"{version: 1.0.0, chart: {oci: {url: 'oci://a/b'}}, kubeVersion: '>=1.30', dependsOn: [{name: db, range: ^1}], recommends: [{name: dns}]}",
	} {
		if got, err := catalogue.DigestOf(*parse[v1alpha1.HelmApplicationVersion](t, text)); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}

// The same goes for bundles.
func TestBundlesKeepTheirDigests(t *testing.T) {
	const want = "sha256:aa1daed09c52a9664b98918a65df639c9d0335b0a240c956cd5759640c4da467"
	for _, text := range []string{
		"{spec: {family: web, version: 1.0.0, kubernetes: '>=1.30', layers: [" +
			"{name: a, objects: [{a: b}], waitFor: [{apiVersion: v1, kind: Pod, name: a, condition: 'true'}], teardown: {after: [b]}}, " +
			"{name: b, remoteCluster: {namespace: 'n', secretRef: {name: s, key: k}}, teardown: {after: []}}]}}",
		"{spec: {family: web, version: 1.0.0, kubeVersion: '>=1.30', layers: [" +
			"{name: a, objects: [{a: b}], waitFor: [{apiVersion: v1, kind: Pod, name: a, readyExpr: 'true'}], teardownAfter: [b]}, " +
			"{name: b, remoteCluster: {kubeConfig: {secretRef: {name: s, namespace: 'n', key: k}}}, teardownAfter: []}]}}",
	} {
		if got, err := bundles.DigestOf(parse[v1alpha1.ApplicationBundle](t, text)); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}

func TestWhatIsSaid(t *testing.T) {
	tests := map[string]struct{ got, want string }{
		"a version": {
			oldwords.InApplication(parse[v1alpha1.HelmApplication](t, "{spec: {versions: [{version: 1.0.0}, {version: 1.1.0, kubernetes: '1.30'}]}}")),
			"versions[1.1.0].kubernetes is now kubeVersion: write that",
		},
		"a bundle": {
			oldwords.InBundle(parse[v1alpha1.ApplicationBundle](t, "{spec: {kubernetes: '1.30'}}")),
			"kubernetes is now kubeVersion: write that",
		},
		"a licence": {
			oldwords.InApplication(parse[v1alpha1.HelmApplication](t, "{spec: {licence: MIT, versions: [{version: 1.0.0}]}}")), "licence is now license: write that",
		},
		"dependencies": {
			oldwords.InApplication(parse[v1alpha1.HelmApplication](t, "{spec: {versions: [{version: 1.0.0, dependencies: [{name: db}]}]}}")),
			"versions[1.0.0].dependencies is now dependsOn: write that",
		},
		"recommendations": {
			oldwords.InApplication(parse[v1alpha1.HelmApplication](t, "{spec: {versions: [{version: 1.0.0, recommendations: [{name: db}]}]}}")),
			"versions[1.0.0].recommendations is now recommends: write that",
		},
		"windows": {
			oldwords.InPlatform(parse[v1alpha1.Platform](t, "{spec: {upgrade: {windows: [{start: '22:00', duration: 1h}]}}}")),
			"spec.upgrade.windows is now maintenanceWindows: write that",
		},
		"a bound": {
			oldwords.InPlatform(parse[v1alpha1.Platform](t, "{spec: {upgrade: {semver: Patch}}}")), "spec.upgrade.semver is now maxStep: write that",
		},
		"via": {
			oldwords.InCluster(parse[v1alpha1.RemoteCluster](t, "{spec: {via: {name: a}}}")),
			"spec.via is now kubeConfig.clusterRef, and its namespace kubeConfig.secretRef.namespace: write that",
		},
		"the Secret of a cluster": {
			oldwords.InBundle(parse[v1alpha1.ApplicationBundle](t, "{spec: {layers: [{name: a}, {name: b, remoteCluster: {namespace: tenants, secretRef: {name: a}}}]}}")),
			"layers[b].remoteCluster.secretRef is now kubeConfig.secretRef: write that",
		},
		"an order of deletion": {
			oldwords.InLayer(parse[v1alpha1.AddonsLayer](t, "{spec: {deleteAfter: [a]}}")), "spec.deleteAfter is now teardownAfter: write that",
		},
		"an order of deletion in a bundle": {
			oldwords.InBundle(parse[v1alpha1.ApplicationBundle](t, "{spec: {layers: [{name: a, teardown: {after: []}}]}}")),
			"layers[a].teardown.after is now teardownAfter: write that",
		},
		"a condition": {
			oldwords.InLayer(parse[v1alpha1.AddonsLayer](t, "{spec: {waitFor: [{kind: A, name: a}, {kind: A, name: b, condition: 'true'}]}}")),
			"spec.waitFor[1].condition is now readyExpr: write that",
		},
		"a condition in a bundle": {
			oldwords.InBundle(parse[v1alpha1.ApplicationBundle](t, "{spec: {layers: [{name: a, waitFor: [{kind: A, name: b, condition: 'true'}]}]}}")),
			"layers[a].waitFor[0].condition is now readyExpr: write that",
		},
		"a mode": {
			oldwords.InPlatform(parse[v1alpha1.Platform](t, "{spec: {upgrade: {mode: Notify}}}")),
			"spec.upgrade.mode: Notify is no mode any more: write mode Manual and forceAfterEndOfLife: true",
		},
		"a bundle of now":   {oldwords.InBundle(parse[v1alpha1.ApplicationBundle](t, "{spec: {kubeVersion: '1.30'}}")), ""},
		"a Platform of now": {oldwords.InPlatform(parse[v1alpha1.Platform](t, "{spec: {upgrade: {mode: Auto}}}")), ""},
	}
	for name, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: %q, want %q", name, tt.got, tt.want)
		}
	}
}
