// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestNetworkPolicyLetsProbesAndArtifactsThrough(t *testing.T) {
	policy := named[*networkingv1.NetworkPolicy](t, render(t, everything), "strata")
	var ports []string
	for _, rule := range policy.Spec.Ingress {
		for _, port := range rule.Ports {
			ports = append(ports, port.Port.String())
		}
	}
	for _, rule := range policy.Spec.Egress {
		for _, port := range rule.Ports {
			ports = append(ports, port.Port.String())
		}
	}
	want := []string{"health", "http-metrics", "53", "53", "443", "6443", "80", "9090", "8443", "3128"}
	if diff := cmp.Diff(want, ports); diff != "" {
		t.Errorf("open ports (-want +got):\n%s", diff)
	}
	if got := named[*networkingv1.NetworkPolicy](t, render(t, everything), "strata-artifacts").Namespace; got != "flux-system" {
		t.Errorf("the policy that opens source-controller is in %s, want flux-system", got)
	}
	budget := only[*policyv1.PodDisruptionBudget](t, render(t, everything)).Spec
	if budget.MinAvailable.String() != "50%" || budget.MaxUnavailable != nil {
		t.Errorf("disruption budget is %v, want minAvailable 50%% alone", budget)
	}
}

// The API server of another cluster may be anywhere, and be known only later: what
// the policy leaves open is not to be guessed from the ports of this one.
func TestNetworkPolicyLetsOtherClustersThrough(t *testing.T) {
	tcp := corev1.ProtocolTCP
	open := []networkingv1.NetworkPolicyPort{{Protocol: &tcp}}
	for _, test := range []struct {
		reason, values string
		want           []networkingv1.NetworkPolicyPort
	}{
		{"there are no other clusters", `{networkPolicy: {enabled: true, remoteClusterPorts: [8443]}}`, nil},
		{"all ports where none is named", `{networkPolicy: {enabled: true}, remoteClusters: {enabled: true}}`, open},
		{
			"those that are named", `{networkPolicy: {enabled: true, remoteClusterPorts: [8443]}, remoteClusters: {enabled: true}}`,
			[]networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: ptr(intstr.FromInt32(8443))}},
		},
	} {
		egress := named[*networkingv1.NetworkPolicy](t, render(t, test.values), "strata").Spec.Egress
		var got []networkingv1.NetworkPolicyPort
		for _, rule := range egress[2:] { // those before are of names, and of this cluster
			if len(rule.To) > 0 {
				t.Errorf("%s: a rule opens %v alone", test.reason, rule.To)
			}
			got = append(got, rule.Ports...)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: ports (-want +got):\n%s", test.reason, diff)
		}
	}
}

// Where other clusters must be, the network is open to no more than that.
func TestNetworkPolicyEndsWhereOtherClustersEnd(t *testing.T) {
	egress := named[*networkingv1.NetworkPolicy](t, render(t, everything), "strata").Spec.Egress
	want := []networkingv1.NetworkPolicyPeer{
		{IPBlock: &networkingv1.IPBlock{CIDR: "10.20.0.0/16"}}, {IPBlock: &networkingv1.IPBlock{CIDR: "fd00::/8"}},
	}
	if diff := cmp.Diff(want, egress[2].To); diff != "" {
		t.Errorf("where the controller may go for other clusters (-want +got):\n%s", diff)
	}
}
