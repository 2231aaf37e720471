// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostclusters_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hostclusters"
)

// node is a Node with what somebody else has put on it, too.
func node(name string, labels map[string]string, taints ...corev1.Taint) corev1.Node {
	all := map[string]string{"kubernetes.io/hostname": name}
	for key, value := range labels {
		all[key] = value
	}
	others := corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule}
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all}, Spec: corev1.NodeSpec{Taints: append([]corev1.Taint{others}, taints...)}}
}

var control = corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}

func specOf(t *testing.T, text string) v1alpha1.HostClusterSpec {
	t.Helper()
	cluster, said := read(t, text)
	if said != "" {
		t.Fatal(said)
	}
	return cluster.Spec
}

// What differs is said field by field. What neither manifest has is nobody's business.
func TestDriftIsSaidFieldByField(t *testing.T) {
	first := specOf(t, good)
	nodes := []corev1.Node{node("cp-0", nil, control), node("cp-1", nil, control), node("cp-2", nil, control), node("w-0", map[string]string{"mine": "1"})}
	change := func(from, to string) v1alpha1.HostClusterSpec { return specOf(t, strings.Replace(good, from, to, 1)) }
	labelled := change("10.0.0.20}", "10.0.0.20, labels: {rack: r1}}")
	serving := change("spec:", "spec:\n  kubelets: {serverTLSBootstrap: true}")
	takenOver := hostclusters.TakenOver(serving)
	racked := append(append([]corev1.Node{}, nodes[:3]...), node("w-0", map[string]string{"rack": "r1"}))
	for name, tc := range map[string]struct {
		saved  *v1alpha1.HostClusterSpec
		wanted v1alpha1.HostClusterSpec
		nodes  []corev1.Node
		want   string
	}{
		"nothing":                      {&first, first, nodes, ""},
		"not saved":                    {nil, first, nodes, "the saved manifest: - -> written"},
		"settings of a new cluster":    {nil, serving, nodes, "the saved manifest: - -> written"},
		"settings of all hosts":        {&first, serving, nodes, `kubelets: {} -> {"serverTLSBootstrap":true}`},
		"those of one taken over":      {&takenOver, serving, nodes, `kubelets: {} -> {"serverTLSBootstrap":true}`},
		"a label":                      {&first, labelled, nodes, "w-0 label rack: - -> r1"},
		"a label that somebody took":   {&labelled, labelled, nodes, "w-0 label rack: - -> r1"},
		"a label that is there":        {&labelled, labelled, racked, ""},
		"a label less":                 {&labelled, first, racked, "w-0 label rack: r1 -> -"},
		"no label, and no Node":        {&first, labelled, nodes[:3], "the saved manifest: an earlier one -> this one"},
		"no taints":                    {&first, change("10.0.0.10}", "10.0.0.10, taints: []}"), nodes, `cp-0 taint node-role.kubernetes.io/control-plane:NoSchedule: "" -> -`},
		"a taint":                      {&first, change("10.0.0.20}", "10.0.0.20, taints: [{key: gpu, value: a, effect: NoExecute}]}"), nodes, "w-0 taint gpu:NoExecute: - -> a"},
		"a kubelet":                    {&first, change("10.0.0.20}", "10.0.0.20, kubelet: {maxPods: 50}}"), nodes, `w-0 kubelet: {} -> {"maxPods":50}`},
		"a mirror":                     {&first, change("spec:", "spec:\n  containerd: {mirrors: [{registry: docker.io, endpoints: [\"https://m\"]}]}"), nodes, "containerd: {} -> "},
		"what changes nothing by hand": {&first, change("10.0.0.20}", "10.0.0.20, sshUser: admin}"), nodes, "the saved manifest: an earlier one -> this one"},
	} {
		var said []string
		for _, each := range hostclusters.Drift(tc.saved, tc.wanted, tc.nodes) {
			said = append(said, each.String())
		}
		if got := strings.Join(said, "; "); got != tc.want && (tc.want == "" || !strings.HasPrefix(got, tc.want)) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// A Node that was renewed has not drifted, and keeps what others have put on it.
func TestRenewedNodeHasNotDrifted(t *testing.T) {
	before := specOf(t, strings.Replace(good, "10.0.0.20}", "10.0.0.20, labels: {rack: r1, old: a}, taints: [{key: old, effect: NoExecute}]}", 1))
	after := specOf(t, strings.Replace(good, "10.0.0.20}", "10.0.0.20, labels: {rack: r2}, taints: [{key: gpu, value: a, effect: NoExecute}]}", 1))
	is := node("w-0", map[string]string{"rack": "r1", "old": "a", "mine": "1"}, hostclusters.TaintsOf(before.Workers[0])...)
	if !hostclusters.Renew(&is, after.Workers[0], before.Workers[0]) {
		t.Error("it says that nothing has changed")
	}
	if got, want := fmt.Sprint(is.Labels), "map[kubernetes.io/hostname:w-0 mine:1 rack:r2]"; got != want {
		t.Errorf("labels %s, want %s", got, want)
	}
	if len(is.Spec.Taints) != 2 || is.Spec.Taints[0].Key != "node.kubernetes.io/not-ready" || is.Spec.Taints[1].Key != "gpu" {
		t.Errorf("%+v", is.Spec.Taints)
	}
	if hostclusters.Renew(&is, after.Workers[0], before.Workers[0]) {
		t.Error("it changes again")
	}
}

func TestWhatCannotChangeIsNamed(t *testing.T) {
	first := specOf(t, good)
	for name, tc := range map[string]struct{ from, to, want string }{
		"nothing":     {"edge", "edge", ""},
		"labels":      {"10.0.0.20}", "10.0.0.20, labels: {a: b}}", ""},
		"the network": {"spec:", "spec:\n  network: {pods: [10.1.0.0/16]}", "spec.network is "},
		"the endpoint": {
			"spec:", "spec:\n  endpoint: {host: api.example.com}", "spec.endpoint is ",
		},
		"an address": {"10.0.0.12", "10.0.0.13", "the address of cp-2 is 10.0.0.12 in the cluster, and cannot become 10.0.0.13"},
		"a role": {
			"  - {name: cp-2, address: 10.0.0.12}\n  workers:\n", "  workers:\n  - {name: cp-2, address: 10.0.0.12}\n", "cp-2 cannot change between control plane and workers",
		},
		"a host more": {"  workers:", "  - {name: cp-3, address: 10.0.0.13}\n  workers:", ""},
	} {
		got := strings.Join(hostclusters.Unchangeable(&first, specOf(t, strings.Replace(good, tc.from, tc.to, 1))), "; ")
		if got != tc.want && (tc.want == "" || !strings.HasPrefix(got, tc.want)) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := hostclusters.Unchangeable(nil, first); got != nil {
		t.Errorf("%q", got)
	}
}
