// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/internal/objects"
)

// observeReferences finds out whether RemoteClusters have their kubeconfig from a
// Secret, and whether they are in a Namespace.
func (o *observer) observeReferences(ctx context.Context, id objects.ID) error {
	switch (schema.GroupKind{Group: id.Group, Kind: id.Kind}) {
	case schema.GroupKind{Kind: "Secret"}:
		clusters, err := read(ctx, o.reads, kubeConfigQuestion{id})
		if err != nil {
			return err
		}
		if len(clusters) > 0 {
			o.KubeConfigs[id] = clusters
		}
	case schema.GroupKind{Kind: "Namespace"}:
		if id.Cluster != "" {
			return nil
		}
		some, err := read(ctx, o.reads, clustersInQuestion{id.Name})
		if err != nil {
			return err
		}
		o.ClusterNamespaces[id.Name] = some
	}
	return nil
}
