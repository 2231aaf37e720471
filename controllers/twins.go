// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/clusters"
)

// hub returns the UID of the cluster that the controller runs in; empty where it may
// not be read. It is asked for once.
func (p *Process) hub(ctx context.Context) (string, error) {
	if known := p.remotes.Hub(); known != "" {
		return known, nil
	}
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(namespaceVersion)
	switch err := p.Reader.Get(ctx, types.NamespacedName{Name: clusters.SystemNamespace}, found); {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("cannot read namespace %s: %w", clusters.SystemNamespace, err)
	}
	p.wakeTwins(ctx, p.remotes.Identified("", string(found.UID)))
	return string(found.UID), nil
}

// allSeen tells whether this process has looked at every RemoteCluster, so that it
// knows which of them are the same cluster.
func (p *Process) allSeen(ctx context.Context) bool {
	list := &v1alpha1.RemoteClusterList{}
	if err := p.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return false
	}
	return !slices.ContainsFunc(list.Items, func(c v1alpha1.RemoteCluster) bool {
		return !p.remotes.Seen(client.ObjectKeyFromObject(&c).String())
	})
}
