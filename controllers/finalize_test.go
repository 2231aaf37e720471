// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/kinds"
)

// A cache that lags must not let a layer go before its objects.
func TestLeftBehind(t *testing.T) {
	cases := map[string]struct {
		reason string
		labels map[string]string
		want   bool
	}{
		"own":        {"the cache lacks it, and it is there", map[string]string{v1alpha1.LayerLabel: "base"}, true},
		"another's":  {"another layer has adopted it", map[string]string{v1alpha1.LayerLabel: "apps"}, false},
		"nobody's":   {"it was released", nil, false},
		"gone":       {"it was deleted", map[string]string{"gone": "true"}, false},
		"not served": {"there can be none of a kind that is not served", map[string]string{"unserved": "true", v1alpha1.LayerLabel: "base"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			release := &unstructured.Unstructured{}
			release.SetGroupVersionKind(helmReleaseVersion)
			release.SetNamespace("default")
			release.SetName("podinfo")
			release.SetLabels(tc.labels)
			builder := fake.NewClientBuilder().WithScheme(runtime.NewScheme())
			if tc.labels["gone"] == "" {
				builder = builder.WithObjects(release)
			}
			r := &AddonsLayerReconciler{Process: &Process{Reader: builder.Build()}}
			r.kinds = informers.NewKinds(r.home(), r.wiring())
			if tc.labels["unserved"] == "" {
				r.kinds.Serves(helmReleaseVersion)
			}
			layer := &v1alpha1.AddonsLayer{}
			layer.Name = "base"
			layer.Status.Resources = []v1alpha1.Resource{
				{Namespace: "default", Name: "podinfo", Kind: kinds.ResourceKind(kinds.HelmReleaseKind)},
			}
			if got, err := (&hands{r: r}).LeftBehind(context.Background(), layer); err != nil || got != tc.want {
				t.Errorf("%s: got %v, %v", tc.reason, got, err)
			}
		})
	}
}
