// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// removeChart deletes the HelmChart that Flux has made for a release that is about to be deleted
// while it is suspended, because it was given up or another one has taken its place. Flux leaves
// it, and source-controller would fetch it again and again, from a repository that may have gone.
// It goes before the release: by that alone it is known whose it is.
func (r *AddonsLayerReconciler) removeChart(ctx context.Context, id objects.ID, uid types.UID) error {
	if id.GroupKind() != kinds.HelmReleaseKind || id.Cluster != "" {
		return nil
	}
	release, err := r.kinds.Get(ctx, id)
	if err != nil || release == nil || release.GetUID() != uid || !objects.IsSuspended(release) {
		return err
	}
	chart, made := objects.ChartOf(release)
	if !made {
		return nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(chart.GroupKind().WithVersion(chartVersion))
	err = r.Reader.Get(ctx, chart.Key(), live)
	if err == nil && objects.IsChartOf(live, release) {
		known, version := live.GetUID(), live.GetResourceVersion()
		err = r.Client.Delete(ctx, live, client.Preconditions{UID: &known, ResourceVersion: &version})
	}
	switch {
	case err == nil, apierrors.IsNotFound(err), meta.IsNoMatchError(err), apierrors.IsForbidden(err):
		return nil // nothing is left, or nothing can be done
	case apierrors.IsConflict(err):
		return err
	}
	return fmt.Errorf("cannot remove %s, which Flux has made for it: %w", chart, err)
}
