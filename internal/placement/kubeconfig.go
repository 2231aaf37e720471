// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/objects"
)

// KubeConfigSecret returns the Secret that a RemoteCluster has its kubeconfig from.
func KubeConfigSecret(cluster *v1alpha1.RemoteCluster) objects.ID {
	id := objects.ID{Kind: "Secret", Namespace: cluster.Namespace, Name: cluster.Spec.KubeConfig.SecretRef.Name}
	if on := cluster.Spec.KubeConfig.ClusterRef; on != nil {
		id.Namespace = cmp.Or(cluster.Spec.KubeConfig.SecretRef.Namespace, cluster.Namespace)
		id.Cluster = types.NamespacedName{Namespace: cluster.Namespace, Name: on.Name}.String()
	}
	return id
}

// KubeConfigKey is the key of Strata's own copy of a kubeconfig, which is the
// first one that Flux looks for.
const KubeConfigKey = "value"
