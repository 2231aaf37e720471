// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/primaries"
)

// Objects are where the provider's placement says, in the namespace that the claim has there.
func TestPlace(t *testing.T) {
	at := func(spec v1alpha1.CapabilityClaimSpec) *v1alpha1.CapabilityClaim {
		return &v1alpha1.CapabilityClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "db"}, Spec: spec}
	}
	home, there := at(v1alpha1.CapabilityClaimSpec{}), at(v1alpha1.CapabilityClaimSpec{Cluster: "edge", ClusterNamespace: "shop"})
	for name, test := range map[string]struct {
		spec               v1alpha1.CapabilityProviderSpec
		claim              *v1alpha1.CapabilityClaim
		cluster, namespace string
	}{
		"at home":                       {v1alpha1.CapabilityProviderSpec{}, home, "", "fleet"},
		"on the claim's cluster":        {v1alpha1.CapabilityProviderSpec{Placement: v1alpha1.PlacementClaimCluster}, there, "fleet/edge", "shop"},
		"in a namespace of its name":    {v1alpha1.CapabilityProviderSpec{}, at(v1alpha1.CapabilityClaimSpec{Cluster: "edge"}), "fleet/edge", "fleet"},
		"for a claim of elsewhere":      {v1alpha1.CapabilityProviderSpec{Placement: v1alpha1.PlacementHome}, there, "", "system"},
		"on the provider's own cluster": {v1alpha1.CapabilityProviderSpec{Placement: v1alpha1.PlacementCluster, Cluster: "big", Namespace: "dba"}, there, "dba/big", "dba"},
		"a namespace without a cluster": {v1alpha1.CapabilityProviderSpec{}, at(v1alpha1.CapabilityClaimSpec{ClusterNamespace: "kube-system"}), "", "fleet"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, namespace := capabilities.Place(test.spec, test.claim, "system")
			if cluster != test.cluster || namespace != test.namespace {
				t.Errorf("they are on %q, in %s", cluster, namespace)
			}
		})
	}
}

// The binding for workloads of another cluster has what the claim's has, and says nothing of
// who reads that.
func TestClusterBinding(t *testing.T) {
	claim := &v1alpha1.CapabilityClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "edge-db"},
		Spec:       v1alpha1.CapabilityClaimSpec{Cluster: "edge", ClusterNamespace: "shop", ClusterBinding: "db"},
	}
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"uri": "YQ=="},
		"metadata": map[string]any{"namespace": "fleet", "name": "edge-db-binding", "annotations": map[string]any{v1alpha1.RotationAnnotation: "{}"}},
	}}
	made, has := capabilities.ClusterBinding(claim, primaries.Object{ID: capabilities.BindingID, Of: "a", Object: secret, Confidential: true})
	want := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"uri": "YQ=="}, "metadata": map[string]any{"namespace": "shop", "name": "db"},
	}
	if !has || made.Cluster != "fleet/edge" || made.ID == capabilities.BindingID || !made.Confidential {
		t.Errorf("it is %+v", made)
	}
	if diff := cmp.Diff(want, made.Object.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if waits, has := capabilities.ClusterBinding(claim, primaries.Object{Waits: "waits for it"}); !has || waits.Waits != "waits for it" || waits.Object != nil {
		t.Errorf("it is %+v", waits)
	}
	for name, spec := range map[string]v1alpha1.CapabilityClaimSpec{"at home": {ClusterBinding: "db"}, "unasked": {Cluster: "edge"}} {
		if _, has := capabilities.ClusterBinding(&v1alpha1.CapabilityClaim{Spec: spec}, primaries.Object{Object: secret}); has {
			t.Errorf("%s: there is one", name)
		}
	}
}
