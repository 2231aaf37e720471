// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/objects"
)

// TestApart shows whose layers are not asked what they list: those of clusters on which
// the layer has nothing, under any name, and only where nothing of it can be theirs.
func TestApart(t *testing.T) {
	release := func(name string) objects.ID {
		return objects.ID{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease", Namespace: "fleet", Name: name}
	}
	through := func(cluster string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": "fleet"},
			"spec":     map[string]any{"kubeConfig": map[string]any{"secretRef": map[string]any{"name": "strata-kubeconfig-" + cluster}}},
		}}
	}
	copied := func(cluster string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{v1alpha1.PlacedForAnnotation: cluster}},
		}}
	}
	others := map[string]*v1alpha1.ClusterReference{
		"home": nil, "a": {Namespace: "fleet", Name: "a"}, "b": {Namespace: "fleet", Name: "b"}, "c": {Namespace: "fleet", Name: "c"},
	}
	for name, tc := range map[string]struct {
		on     string
		live   map[objects.ID]*unstructured.Unstructured
		status v1alpha1.AddonsLayerStatus
		twins  Twins
		want   []string
	}{
		"on the cluster that Strata runs in":  {live: map[objects.ID]*unstructured.Unstructured{release("x"): nil}},
		"on another one":                      {on: "a", live: map[objects.ID]*unstructured.Unstructured{release("x"): through("a"), release("y"): nil}, want: []string{"b", "c"}},
		"with a copy":                         {on: "a", live: map[objects.ID]*unstructured.Unstructured{{Kind: "Secret", Namespace: "fleet", Name: "s"}: copied("fleet/a")}, want: []string{"b", "c"}},
		"with something there":                {on: "a", live: map[objects.ID]*unstructured.Unstructured{{Cluster: "fleet/b", Kind: "ConfigMap", Name: "m"}: nil}, want: []string{"c"}},
		"with something left there":           {on: "a", status: v1alpha1.AddonsLayerStatus{Resources: []v1alpha1.Resource{{Cluster: "fleet/c"}}}, want: []string{"b"}},
		"known by two names":                  {on: "a", twins: Twins{"fleet/a": {"fleet/b"}, "fleet/b": {"fleet/a"}}, want: []string{"c"}},
		"with a release of where it was":      {on: "a", live: map[objects.ID]*unstructured.Unstructured{release("x"): through("b")}},
		"with a release of the home cluster":  {on: "a", live: map[objects.ID]*unstructured.Unstructured{release("x"): {Object: map[string]any{}}}},
		"with a copy for another cluster":     {on: "a", live: map[objects.ID]*unstructured.Unstructured{{Kind: "Secret", Namespace: "fleet", Name: "s"}: copied("fleet/b")}},
		"with a RemoteCluster that it is for": {on: "a", live: map[objects.ID]*unstructured.Unstructured{{Group: "kraan.io", Kind: "RemoteCluster", Namespace: "fleet", Name: "r"}: nil}},
	} {
		o := Observation{Layer: &v1alpha1.AddonsLayer{Status: tc.status}}
		o.Live, o.Twins = tc.live, tc.twins
		if tc.on != "" {
			o.Remote = &Remote{Name: types.NamespacedName{Namespace: "fleet", Name: tc.on}}
		}
		isApart := o.Apart()
		var got []string
		for other, cluster := range others {
			if isApart(&v1alpha1.AddonsLayer{Spec: v1alpha1.AddonsLayerSpec{Cluster: cluster}}) {
				got = append(got, other)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: it does not ask those of %v, want %v", name, got, tc.want)
		}
	}
}
