// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const (
	gadgets = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gadgets.acme.io}\nspec:\n  group: acme.io\n  scope: Cluster\n" +
		"  names: {kind: Gadget, plural: gadgets}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n" +
		"        properties:\n          spec:\n            type: object\n            properties: {size: {type: integer}}\n"
	wrongPort  = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: shop\ndata:\n  port: 8080\n"
	overridden = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: m, namespace: shop}\nspec:\n  interval: 1m\n  chartRef: {kind: OCIRepository, name: charts}\n" +
		"  values:\n    base: &base {replicas: 1}\n    web: {<<: *base, replicas: 3}\n"
)

// Lint finds what the API server refuses of Kubernetes' own kinds, and of those that the
// repository defines, where it is written, and nothing that the controller takes.
func TestWhatAPIServersRefuse(t *testing.T) {
	early := strings.Replace(overridden, "{<<: *base, replicas: 3}", "{replicas: 3, <<: *base}", 1)
	for name, tc := range map[string]struct {
		files      map[string]string
		kubernetes string
		want       []string
	}{
		"in a plain directory": {
			files: map[string]string{"layers.yaml": addonsLayer("base", "./base", ""), "base/a.yaml": wrongPort},
			want:  []string{"base/a.yaml:7: error schema: data[port]: must be a text, and is a number: quote it"},
		},
		"in a kustomization": {
			files: map[string]string{"layers.yaml": addonsLayer("base", "./base", ""), "base/a.yaml": wrongPort, "base/kustomization.yaml": "resources: [a.yaml]\n"},
			want:  []string{"base/a.yaml:7: error schema: data[port]: must be a text, and is a number: quote it"},
		},
		"in a kustomization that mends it": {
			files: map[string]string{
				"layers.yaml": addonsLayer("base", "./base", ""), "base/a.yaml": wrongPort,
				"base/kustomization.yaml": "resources: [a.yaml]\npatches:\n- patch: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: a, namespace: shop}\n    data: {port: '8080'}\n",
			},
		},
		"without a layer": {
			files: map[string]string{"a.yaml": wrongPort},
			want:  []string{"a.yaml:7: error schema: data[port]: must be a text, and is a number: quote it"},
		},
		"a field of a later version": {
			files:      map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\nnewer: true\n"},
			kubernetes: "1.99",
			want:       []string{"a.yaml:4: warning unknown-field: newer: there is no such field"},
		},
		"a namespace too many": {
			files: map[string]string{
				"layers.yaml": addonsLayer("base", "./base", "  build: Flux\n"), "crd.yaml": gadgets,
				"base/a.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: cr\n  namespace: demo\nrules: []\n",
				"base/b.yaml": "apiVersion: acme.io/v1\nkind: Gadget\nmetadata:\n  name: g\n  namespace: demo\nspec: {size: 1}\n",
			},
			want: []string{
				"base/a.yaml:5: warning namespace: metadata.namespace: ClusterRole demo/cr is of a kind without namespaces, and it is dropped: remove it",
				"base/b.yaml:5: warning namespace: metadata.namespace: Gadget demo/g is of a kind without namespaces, and it is dropped: remove it",
			},
		},
		"kinds that the repository defines": {
			files: map[string]string{
				"layers.yaml": addonsLayer("base", "./base", ""), "crd.yaml": gadgets,
				"base/b.yaml": "apiVersion: acme.io/v1\nkind: Gadget\nmetadata: {name: g}\nspec:\n  size: large\n  sice: 1\n",
			},
			want: []string{
				"base/b.yaml:5: error schema: spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
				"base/b.yaml:6: error unknown-field: spec.sice: there is no such field: do you mean size?",
			},
		},
		"merged keys": {
			files: map[string]string{"layers.yaml": addonsLayer("base", "./base", ""), "base/a.yaml": overridden},
		},
		"merged keys in a kustomization": {
			files: map[string]string{"layers.yaml": addonsLayer("base", "./base", ""), "base/a.yaml": overridden, "base/kustomization.yaml": "resources: [a.yaml]\n"},
		},
		"what only kustomize reads, in a plain directory": {
			files: map[string]string{"layers.yaml": addonsLayer("base", "./base", ""), "base/a.yaml": early},
			want: []string{
				"base/a.yaml:9: error manifest: the key \"replicas\" stands before the << that has it, too: kubectl takes the merged one, and kustomize does not; write << first",
			},
		},
		"what only kustomize reads, in a kustomization": {
			files: map[string]string{"layers.yaml": addonsLayer("base", "./base", ""), "base/a.yaml": early, "base/kustomization.yaml": "resources: [a.yaml]\n"},
		},
		"what only kustomize reads, built as Flux does": {
			files: map[string]string{"layers.yaml": addonsLayer("base", "./base", "  build: Flux\n"), "base/a.yaml": early},
		},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := Run(t.Context(), Options{Files: repository(tc.files), Kubernetes: tc.kubernetes, Now: today})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, finding := range report.Findings {
				got = append(got, finding.String())
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
