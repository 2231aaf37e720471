// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestLeaveToFillers(t *testing.T) {
	for name, test := range map[string]struct{ reason, manifest, want string }{
		"aggregated": {
			"kube-controller-manager writes the rules",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {clusterRoleSelectors: [{}]}, rules: []}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {clusterRoleSelectors: [{}]}}",
		},
		"not aggregated": {
			"git writes them",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {}, rules: []}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {}, rules: []}",
		},
		"webhook": {
			"cert-manager injects its authority",
			`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {annotations: {cert-manager.io/inject-ca-from: a/b}},
				webhooks: [{name: x, clientConfig: {caBundle: Cg==, service: {name: s}}}, {name: y}]}`,
			`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {annotations: {cert-manager.io/inject-ca-from: a/b}},
				webhooks: [{name: x, clientConfig: {service: {name: s}}}, {name: y}]}`,
		},
		"webhook of nobody": {
			"the authority is git's",
			"{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, webhooks: [{clientConfig: {caBundle: Cg==}}]}",
			"{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, webhooks: [{clientConfig: {caBundle: Cg==}}]}",
		},
		"API service": {
			"cert-manager injects its authority",
			"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {annotations: {cert-manager.io/inject-ca-from-secret: a/b}}, spec: {caBundle: Cg==, group: g}}",
			"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {annotations: {cert-manager.io/inject-ca-from-secret: a/b}}, spec: {group: g}}",
		},
		"definition": {
			"cert-manager injects its authority",
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {annotations: {cert-manager.io/inject-apiserver-ca: "true"}},
				spec: {conversion: {webhook: {clientConfig: {caBundle: Cg==, url: u}}}}}`,
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {annotations: {cert-manager.io/inject-apiserver-ca: "true"}},
				spec: {conversion: {webhook: {clientConfig: {url: u}}}}}`,
		},
		"odd": {
			"whatever a field is, it is left",
			"{apiVersion: admissionregistration.k8s.io/v1, kind: X, metadata: {annotations: {cert-manager.io/inject-ca-from: a}}, webhooks: [1, {clientConfig: 2}]}",
			"{apiVersion: admissionregistration.k8s.io/v1, kind: X, metadata: {annotations: {cert-manager.io/inject-ca-from: a}}, webhooks: [1, {clientConfig: 2}]}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			parse := func(text string) *unstructured.Unstructured {
				obj := map[string]any{}
				if err := yaml.Unmarshal([]byte(text), &obj); err != nil {
					t.Fatal(err)
				}
				return &unstructured.Unstructured{Object: obj}
			}
			obj := parse(test.manifest)
			LeaveToFillers(obj)
			if diff := cmp.Diff(parse(test.want).Object, obj.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}
