// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/repos"
)

// pieces are what directories are made of: what is fine, and what is not.
var pieces = []string{
	"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n",
	"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n",
	"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Foo_Bar, namespace: shop}\n",
	"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"${APP}-config\", namespace: shop}\n",
	"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: a.b}\n",
	"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d, namespace: shop, labels: {on: true}}\n",
	"apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
	"apiVersion: v1\nkind: Namespace\nmetadata: {name: other, namespace: shop}\n",
	"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: \"acme:reader\"}\n",
	"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: e}\n",
	"apiVersion: acme.io/v1\nkind: Gadget\nmetadata: {name: f}\n",
	"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: g, namespace: shop}\nspec:\n  interval: 1m\n  chartRef: {kind: OCIRepository, name: charts}\n",
	"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: h, namespace: shop}\nspec:\n  interval: 1m\n  chartRef: {kind: OCIRepository, name: charts}\n  dependsOn: [{name: h}]\n",
	"apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: shop}\nstringData: {a: \"ENC[AES256_GCM,data:x]\"}\nsops: {mac: \"ENC[AES256_GCM,data:x]\"}\n",
	"apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: x, namespace: shop}\n",
	"kind: ConfigMap\nmetadata: {name: x, namespace: shop}\n",
	"a: [\n",
	"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: twice, name: twice, namespace: shop}\n",
}

// ways are what layers say of how their directories become objects.
var ways = []string{
	"", "  build: Flux\n", "  targetNamespace: shop\n", "  namePrefix: Big_\n", "  components: [../none]\n",
	"  targetNamespace: shop\n  postBuild: {substitute: {APP: web}}\n", "  postBuild: {substitute: {APP: Web_}}\n", "  postBuild: {strict: true, substitute: {OTHER: web}}\n",
	"  decryption: {provider: sops, secretRef: {name: keys}}\n",
}

// beginnings are those of kustomizations, which then list all files; the first is of none.
var beginnings = []string{"", "resources: [", "namespace: shop\nresources: [", "resources: [none.yaml, ", "resources: [https://example.com/x, "}

// clusterScopes are what a cluster says of these kinds.
var clusterScopes = map[string]objects.Scope{
	"ConfigMap": objects.ScopeNamespaced, "Secret": objects.ScopeNamespaced, "Deployment": objects.ScopeNamespaced, "HelmRelease": objects.ScopeNamespaced,
	"Namespace": objects.ScopeCluster, "ClusterRole": objects.ScopeCluster,
}

// tester is a test, or a check of a property.
type tester interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
}

// verdict returns the controller's mistake in the directory of a layer; nil where it takes
// the directory.
func verdict(t tester, files map[string]string, layer *v1alpha1.AddonsLayer) *directories.ContentError {
	how, err := builds.Of(&layer.Spec)
	if err != nil {
		t.Fatal(err)
	}
	directory, err := repos.ParseAs(t.Context(), repository(files), layer.Spec.Source.Path, how)
	if err == nil {
		scopes := map[objects.ServedKind]objects.Scope{}
		for i := range directory.Manifests {
			id := directory.Manifests[i].ID()
			scopes[id.ServedKind()] = clusterScopes[id.Kind]
		}
		_, err = layers.Content(directory, layer.Name, layer.Spec.Version, scopes)
	}
	var mistake *directories.ContentError
	if err != nil && !errors.As(err, &mistake) {
		t.Fatal(err)
	}
	return mistake
}

// What the controller refuses lint finds, in the same file and with the same words, and
// what the controller takes lint calls no error.
func TestLintAndControllerAgree(t *testing.T) {
	// Each check starts several processes.
	if checks := flag.Lookup("rapid.checks"); checks != nil && os.Getenv("STRATA_TEST_ALL") == "" && checks.Value.String() == checks.DefValue {
		if err := checks.Value.Set("25"); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		files := map[string]string{}
		kustomization := rapid.SampledFrom(beginnings).Draw(t, "kustomization")
		for i, piece := range rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 4).Draw(t, "files") {
			files[fmt.Sprintf("base/%d.yaml", i)] = piece
			if kustomization != "" {
				kustomization += fmt.Sprintf("%d.yaml, ", i)
			}
		}
		if kustomization != "" {
			files["base/kustomization.yaml"] = kustomization + "]\n"
		}
		manifest := addonsLayer("base", "./base", rapid.SampledFrom(ways).Draw(t, "way"))
		agree(t, files, manifest)
	})
}

func agree(t tester, files map[string]string, manifest string) {
	layer := &v1alpha1.AddonsLayer{}
	if err := yaml.Unmarshal([]byte(manifest), layer); err != nil {
		t.Fatal(err)
	}
	refused := verdict(t, files, layer)
	files["layer.yaml"] = manifest
	report, err := Run(t.Context(), Options{Files: repository(files), Now: today})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	said := false
	for _, finding := range report.Findings {
		if finding.Level != Error {
			continue
		}
		found = append(found, finding.String())
		said = said || refused != nil && strings.Contains(finding.Message, refused.Message)
	}
	switch {
	case refused == nil && len(found) > 0:
		t.Fatalf("the controller takes the directory, and lint finds %q", found)
	case refused != nil && !said:
		t.Fatalf("the controller says %q, and lint finds %q", refused.Error(), found)
	}
}

// They agree on the examples, too.
func TestLintAndControllerAgreeOnExamples(t *testing.T) {
	const root = "../../../examples/platform"
	files := map[string]string{}
	for _, folder := range []string{"addons/bootstrap", "addons/base", "addons/base/common", "addons/apps"} {
		items, err := os.ReadDir(path.Join(root, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			if item.IsDir() {
				continue
			}
			data, err := os.ReadFile(path.Join(root, folder, item.Name()))
			if err != nil {
				t.Fatal(err)
			}
			files[path.Join(folder, item.Name())] = string(data)
		}
	}
	for _, folder := range []string{"addons/bootstrap", "addons/base", "addons/apps"} {
		agree(t, maps.Clone(files), addonsLayer("base", "./"+folder, ""))
	}
}
