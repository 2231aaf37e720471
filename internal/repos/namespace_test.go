// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"context"
	"testing"
)

// A namespace on an object whose kind has none is dropped, as the API server does, in a plain
// directory and in a kustomization.
func TestNamespaceOfAKindThatHasNone(t *testing.T) {
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: cr, namespace: demo}\nrules: []\n"
	for name, given := range map[string][]string{
		"plain": {"role.yaml", role}, "a List": {"role.yaml", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Namespace, metadata: {name: cr, namespace: demo}}\n"},
		"kustomization": {"role.yaml", role, "kustomization.yaml", "resources: [role.yaml]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(context.Background(), files(given...), ".")
			if err != nil {
				t.Fatal(err)
			}
			if id := got.Manifests[0].ID(); id.Namespace != "" || id.Name != "cr" {
				t.Errorf("got %s", id)
			}
		})
	}
}
