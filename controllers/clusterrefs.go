// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
)

// clustersIn asks whether there are RemoteClusters in a namespace.
func clustersIn(namespace string) reading {
	return reading{id: dependents.ID{Group: clusterKind.Group, Kind: clusterKind.Kind, Namespace: namespace}}
}

// observeReferences finds out whether RemoteClusters have their kubeconfig from a
// Secret, and whether they are in a Namespace.
func (o *observer) observeReferences(ctx context.Context, id dependents.ID) error {
	switch (schema.GroupKind{Group: id.Group, Kind: id.Kind}) {
	case schema.GroupKind{Kind: "Secret"}:
		clusters, err := o.r.clustersOf(ctx, id)
		if err != nil {
			return err
		}
		o.answers[reading{id: id, field: indexKubeConfig}] = namesOf(clusters)
		if len(clusters) > 0 {
			o.KubeConfigs[id] = clusters
		}
	case schema.GroupKind{Kind: "Namespace"}:
		if id.Cluster != "" {
			return nil
		}
		answer, err := o.r.hasClusters(ctx, id.Name)
		if err != nil {
			return err
		}
		o.answers[clustersIn(id.Name)] = answer
		o.ClusterNamespaces[id.Name] = answer != ""
	}
	return nil
}

// namesOf is the answer that names RemoteClusters; empty for none.
func namesOf(clusters []types.NamespacedName) string {
	names := make([]string, 0, len(clusters))
	for _, cluster := range clusters {
		names = append(names, cluster.String())
	}
	return versionsOf(names)
}

// hasClusters answers whether there are RemoteClusters in a namespace; empty for none.
func (r *AddonsLayerReconciler) hasClusters(ctx context.Context, namespace string) (string, error) {
	list := &v1alpha1.RemoteClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("cannot list RemoteClusters: %w", err)
	}
	if len(list.Items) == 0 {
		return "", nil
	}
	return "some", nil
}

// clustersOf returns the RemoteClusters that have their kubeconfig from a Secret.
func (r *AddonsLayerReconciler) clustersOf(ctx context.Context, secret dependents.ID) ([]types.NamespacedName, error) {
	list := &v1alpha1.RemoteClusterList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{indexKubeConfig: secret.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list RemoteClusters: %w", err)
	}
	names := make([]types.NamespacedName, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return names, nil
}
