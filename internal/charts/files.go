// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func (r *Renderer) fromFiles(_ context.Context, _ Request, _ *unstructured.Unstructured, ref reference) (*chart.Chart, error) {
	return nil, problem(Unsupported, nil, "charts of %s cannot be fetched from here", ref.source)
}
