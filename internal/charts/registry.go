// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// ociScheme is what addresses of registries begin with.
const ociScheme = "oci://"

func (r *Renderer) fromRegistry(_ context.Context, _ Request, _ *sourcev1.HelmRepository, ref reference) (*chart.Chart, error) {
	return nil, problem(Unsupported, nil, "charts of %s cannot be fetched from here", ref.source)
}

func (r *Renderer) fromArtifact(_ context.Context, _ Request, _ *sourcev1.OCIRepository) (*chart.Chart, error) {
	return nil, problem(Unsupported, nil, "charts of an OCIRepository cannot be fetched from here")
}
