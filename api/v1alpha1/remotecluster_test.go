// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// On the cluster that Strata runs in a kubeconfig lies beside its RemoteCluster: whoever
// may write that must not have Secrets of other namespaces read.
func TestSecretsOfOtherNamespacesAreRefused(t *testing.T) {
	needsServer(t)
	for kubeConfig, want := range map[string]string{
		"{secretRef: {name: a}}":                                                           "",
		"{secretRef: {name: a, namespace: ''}}":                                            "",
		"{secretRef: {name: a, namespace: other}}":                                         "secretRef.namespace is for a Secret on another cluster",
		"{secretRef: {name: a, namespace: default}}":                                       "secretRef.namespace is for a Secret on another cluster",
		"{secretRef: {name: a, namespace: other}, clusterRef: {name: outer}}":              "",
		"{secretRef: {name: a, namespace: other}, clusterRef: {}}":                         "clusterRef.name",
		"{secretRef: {name: a, namespace: Other}, clusterRef: {name: outer}}":              "secretRef.namespace must be the name of a namespace",
		"{secretRef: {name: a, namespace: other, key: config}, clusterRef: {name: 'a.b'}}": "",
	} {
		cluster := parse(t, "apiVersion: kraan.io/v1alpha1\nkind: RemoteCluster\nmetadata: {name: a, namespace: default}\nspec: {kubeConfig: "+kubeConfig+"}")
		err := server.Create(t.Context(), cluster, client.DryRunAll)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", kubeConfig, err, want)
		}
	}
}
