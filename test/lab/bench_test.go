// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"
)

// joinCommand is what kubeadm init says that hosts are joined with.
var joinCommand = regexp.MustCompile(`--token (\S+)[^-]*--discovery-token-ca-cert-hash (\S+)(?s:.*?)--certificate-key (\S+)`)

// byHand makes the cluster as somebody does who knows all commands beforehand, and types
// them at once.
func byHand(u *user) {
	all := u.lab.Hosts()
	const prepare = "set -e; unset HTTPS_PROXY https_proxy; echo 1 >/proc/sys/net/ipv4/ip_forward; systemctl enable --now containerd; systemctl enable kubelet; "
	const patch = "mkdir -p /etc/kubernetes/patches; printf 'failCgroupV1: false\\n' >/etc/kubernetes/patches/kubeletconfiguration+merge.yaml; "
	config := fmt.Sprintf(`cat >/run/kubeadm.yaml <<'X'
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
controlPlaneEndpoint: %[1]s:6443
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: %[1]s, bindPort: 6443}
nodeRegistration: {criSocket: "unix:///run/containerd/containerd.sock", ignorePreflightErrors: [SystemVerification]}
patches: {directory: /etc/kubernetes/patches}
X
`, all[0].IP())
	said := u.run(all[0], prepare+patch+config+"kubeadm init --config /run/kubeadm.yaml --upload-certs")
	found := joinCommand.FindStringSubmatch(said)
	if found == nil {
		u.Fatal(said)
	}
	for _, host := range all[1:] {
		config := fmt.Sprintf(`cat >/run/kubeadm.yaml <<'X'
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery: {bootstrapToken: {token: %s, apiServerEndpoint: "%s:6443", caCertHashes: ["%s"]}}
controlPlane: {localAPIEndpoint: {advertiseAddress: %s, bindPort: 6443}, certificateKey: %s}
nodeRegistration: {criSocket: "unix:///run/containerd/containerd.sock", ignorePreflightErrors: [SystemVerification]}
patches: {directory: /etc/kubernetes/patches}
X
`, found[1], all[0].IP(), found[2], host.IP(), found[3])
		u.run(host, prepare+patch+config+"kubeadm join --config /run/kubeadm.yaml")
	}
	for _, host := range all {
		u.run(host, "unset HTTPS_PROXY https_proxy; until kubectl --kubeconfig /etc/kubernetes/admin.conf --server https://"+host.IP()+":6443 get --raw /readyz >/dev/null 2>&1; do sleep 0.2; done")
	}
}

// From three empty hosts to a healthy control plane: with apply, and with the same kubeadm
// typed by hand in the same lab, one after the other.
//
//	go test ./test/lab -run none -bench ThreeHosts -benchtime 3x
func BenchmarkThreeHosts(b *testing.B) {
	var applied, typed time.Duration
	for b.Loop() {
		b.StopTimer()
		for _, hand := range []bool{true, false} {
			u := newUser(b, 3)
			begin := time.Now()
			if hand {
				byHand(u)
				typed += time.Since(begin)
			} else {
				u.must(0, []string{"apply", "--yes"}, "Done: ")
				applied += time.Since(begin)
				begin = time.Now()
				u.must(0, []string{"apply", "--yes"}, "Done: ")
				b.ReportMetric(time.Since(begin).Seconds(), "s/nothing-to-do")
			}
			for _, host := range u.lab.Hosts() {
				host.Kill()
			}
		}
		b.StartTimer()
	}
	b.ReportMetric(applied.Seconds()/float64(b.N), "s/apply")
	b.ReportMetric(typed.Seconds()/float64(b.N), "s/by-hand")
	b.ReportMetric(applied.Seconds()/typed.Seconds(), "ratio")
}
