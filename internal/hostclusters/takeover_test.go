// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostclusters_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/strata-project/strata/internal/hostclusters"
)

// A manifest that takes a cluster over says of it what is so; each difference is named.
func TestUnlike(t *testing.T) {
	spec := specOf(t, good)
	same := hostclusters.Kubeadm{ControlPlaneEndpoint: "10.0.0.10:6443"}
	same.Networking.PodSubnet, same.Networking.ServiceSubnet, same.Networking.DNSDomain = "10.244.0.0/16", "10.96.0.0/12", "cluster.local"
	for name, tc := range map[string]struct {
		change func(*hostclusters.Kubeadm)
		nodes  []corev1.Node
		want   string
	}{
		"nothing":        {func(*hostclusters.Kubeadm) {}, nil, ""},
		"without a port": {func(k *hostclusters.Kubeadm) { k.ControlPlaneEndpoint = "10.0.0.10" }, nil, ""},
		"no endpoint": {
			func(k *hostclusters.Kubeadm) { k.ControlPlaneEndpoint = "" }, nil,
			"spec.endpoint is not set in the cluster, and 10.0.0.10:6443 in the manifest",
		},
		"another endpoint": {
			func(k *hostclusters.Kubeadm) { k.ControlPlaneEndpoint = "[fd00::1]:8443" }, nil,
			"spec.endpoint is [fd00::1]:8443 in the cluster, and 10.0.0.10:6443 in the manifest",
		},
		"Pods":     {func(k *hostclusters.Kubeadm) { k.Networking.PodSubnet = "10.1.0.0/16" }, nil, "spec.network.pods is 10.1.0.0/16 in the cluster, and 10.244.0.0/16 in the manifest"},
		"Services": {func(k *hostclusters.Kubeadm) { k.Networking.ServiceSubnet = "" }, nil, "spec.network.services is not set in the cluster"},
		"a domain": {func(k *hostclusters.Kubeadm) { k.Networking.DNSDomain = "\x1b[31m" }, nil, "spec.network.domain is "},
		"KubeOne at work": {
			func(*hostclusters.Kubeadm) {},
			[]corev1.Node{node("cp-1", map[string]string{"kubeone.io/upgrade-in-progress": ""})},
			"KubeOne upgrades cp-1, or has not ended that",
		},
	} {
		is := same
		tc.change(&is)
		got := strings.Join(hostclusters.Unlike(is, tc.nodes, spec), "; ")
		if (tc.want == "") != (got == "") || !strings.HasPrefix(got, tc.want) || strings.Contains(got, "\x1b") {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// Nodes of hosts that have left a manifest are told from those that it never listed.
func TestNodesThatAreNotListed(t *testing.T) {
	before, after := specOf(t, good), specOf(t, strings.Replace(good, "  - {name: cp-2, address: 10.0.0.12}\n", "", 1))
	ready := node("cp-2", nil)
	ready.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	gone := node("cp-2", nil)
	gone.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	for name, tc := range map[string]struct {
		nodes []corev1.Node
		want  string
	}{
		"one that runs":     {[]corev1.Node{node("cp-0", nil), ready, node("machine", nil)}, "[{cp-2 true}]"},
		"one that does not": {[]corev1.Node{gone}, "[{cp-2 false}]"},
		"none":              {[]corev1.Node{node("cp-0", nil), node("machine", nil)}, "[]"},
	} {
		if left := fmt.Sprint(hostclusters.Left(before, after, tc.nodes)); left != tc.want {
			t.Errorf("%s: %s", name, left)
		}
	}
	if others := strings.Join(hostclusters.Unlisted([]corev1.Node{node("cp-0", nil), node("machine", nil)}, before), " "); others != "machine" {
		t.Errorf("not listed: %s", others)
	}
}

// The consent to take a host out is for once: it is no setting that has drifted.
func TestConsentDoesNotLast(t *testing.T) {
	spec := specOf(t, strings.Replace(good, "10.0.0.12}", "10.0.0.12, replace: true}", 1))
	nodes := []corev1.Node{node("cp-0", nil, control), node("cp-1", nil, control), node("cp-2", nil, control), node("w-0", nil)}
	saved := hostclusters.Lasting(spec)
	if changes := hostclusters.Drift(&saved, spec, nodes); len(changes) > 0 || saved.ControlPlane[2].Replace || !spec.ControlPlane[2].Replace {
		t.Errorf("%v", changes)
	}
}
