// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"encoding/json"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestConvert(t *testing.T) {
	cases := map[string]struct {
		reason, from, to, err string
	}{
		"served": {
			reason: "what is served is left alone, even with a field of that name",
			from:   "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec: {chart: {spec: {valuesFile: a}}}",
			to:     "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec: {chart: {spec: {valuesFile: a}}}",
		},
		"another group": {
			reason: "a kind of the same name is not Flux's",
			from:   "apiVersion: example.com/v2beta1\nkind: HelmRelease",
			to:     "apiVersion: example.com/v2beta1\nkind: HelmRelease",
		},
		"values file": {
			reason: "Flux merged valuesFile before valuesFiles",
			from:   "apiVersion: helm.toolkit.fluxcd.io/v2beta1\nkind: HelmRelease\nspec: {chart: {spec: {valuesFile: a, valuesFiles: [b, c]}}, future: {x: 1}}",
			to:     "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec: {chart: {spec: {valuesFiles: [a, b, c]}}, future: {x: 1}}",
		},
		"only a values file": {
			reason: "valuesFiles is made",
			from:   "apiVersion: helm.toolkit.fluxcd.io/v2beta2\nkind: HelmRelease\nspec: {chart: {spec: {valuesFile: a}}}",
			to:     "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec: {chart: {spec: {valuesFiles: [a]}}}",
		},
		"patches": {
			reason: "in the order in which kustomize applied them",
			from: `apiVersion: helm.toolkit.fluxcd.io/v2beta1
kind: HelmRelease
spec:
  postRenderers:
  - kustomize:
      patchesJson6902:
      - target: {kind: Deployment, name: a}
        patch:
        - {op: add, path: /x, value: 9007199254740993}
      patches:
      - patch: middle
      patchesStrategicMerge:
      - apiVersion: v1
        kind: Service
        metadata: {name: s}
      images: [{name: i}]
  - kustomize: {patches: [{patch: p}]}
`,
			to: `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
spec:
  postRenderers:
  - kustomize:
      patches:
      - patch: "apiVersion: v1\nkind: Service\nmetadata:\n  name: s\n"
      - patch: middle
      - target: {kind: Deployment, name: a}
        patch: "- op: add\n  path: /x\n  value: 9007199254740993\n"
      images: [{name: i}]
  - kustomize: {patches: [{patch: p}]}
`,
		},
		"a patch that is none": {
			reason: "the field is named",
			from:   "apiVersion: helm.toolkit.fluxcd.io/v2beta1\nkind: HelmRelease\nspec: {postRenderers: [{kustomize: {patchesJson6902: [{patch: text}]}}]}",
			err:    "spec.postRenderers[0].kustomize.patchesJson6902[0]: is not a patch that can be converted: write it as an element of patches",
		},
		"HelmRepository": {
			reason: "v1 is a superset", from: "apiVersion: source.toolkit.fluxcd.io/v1beta1\nkind: HelmRepository\nspec: {url: u, accessFrom: {}}",
			to: "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nspec: {url: u, accessFrom: {}}",
		},
		"OCIRepository": {
			reason: "v1 is a superset", from: "apiVersion: source.toolkit.fluxcd.io/v1beta2\nkind: OCIRepository\nspec: {url: u}",
			to: "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nspec: {url: u}",
		},
		"GitRepository": {
			reason: "the removed fields had no effect", from: "apiVersion: source.toolkit.fluxcd.io/v1beta2\nkind: GitRepository\nspec: {url: u, gitImplementation: go-git, accessFrom: {}}",
			to: "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nspec: {url: u}",
		},
		"HelmChart": {
			reason: "it has the same field as a release", from: "apiVersion: source.toolkit.fluxcd.io/v1beta2\nkind: HelmChart\nspec: {valuesFile: a, accessFrom: {}}",
			to: "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmChart\nspec: {valuesFiles: [a]}",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := object(t, c.from)
			text := ""
			if err := convert(got); err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff(c.err, text); diff != "" {
				t.Errorf("%s: error (-want +got):\n%s", c.reason, diff)
			}
			if c.err != "" {
				return
			}
			if diff := cmp.Diff(object(t, c.to).Object, got.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			again := got.DeepCopy()
			if err := convert(again); err != nil || !cmp.Equal(got, again) {
				t.Errorf("%s: converting twice changes it: %v", c.reason, err)
			}
		})
	}
}

// What is converted must be what the served type knows, to the last field.
func TestConvertedReleaseIsServed(t *testing.T) {
	old := object(t, `apiVersion: helm.toolkit.fluxcd.io/v2beta1
kind: HelmRelease
metadata: {name: a}
spec:
  interval: 1m
  dependsOn: [{name: b}]
  chart: {spec: {chart: c, version: "1", valuesFile: v, sourceRef: {kind: HelmRepository, name: r}, verify: {provider: cosign}}}
  postRenderers: [{kustomize: {patchesStrategicMerge: [{kind: A}], patchesJson6902: [{target: {kind: A}, patch: [{op: remove, path: /x}]}]}}]
  valuesFrom: [{kind: Secret, name: s, targetPath: x, optional: true}]
  install: {remediation: {retries: 3}, crds: Create}
  upgrade: {remediation: {retries: 3, strategy: rollback}}
`)
	if err := convert(old); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(old.Object)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, &helmv2.HelmRelease{}); err != nil {
		t.Errorf("the served type does not know what was converted: %v", err)
	}
}

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	d := &document{file: "a.yaml", first: 1, text: []byte(text)}
	value, err := d.value()
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: value}
}
