// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/test/lab"
)

// byKubeOne makes a cluster of one host as KubeOne does: with its configuration of kubeadm,
// and what it leaves in a cluster.
func byKubeOne(u *user, host *lab.Host) {
	u.Helper()
	u.run(host, fmt.Sprintf(`set -e
unset HTTPS_PROXY https_proxy
echo 1 >/proc/sys/net/ipv4/ip_forward
systemctl enable --now containerd
systemctl enable kubelet
mkdir -p /etc/kubernetes/patches /etc/kubeone
printf 'failCgroupV1: false\n' >/etc/kubernetes/patches/kubeletconfiguration+merge.yaml
cat >/etc/kubeone/master_0.yaml <<'X'
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: %[1]s, bindPort: 6443}
nodeRegistration:
  name: %[2]s
  criSocket: unix:///run/containerd/containerd.sock
  taints: [{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}]
  kubeletExtraArgs: [{name: node-ip, value: %[1]s}]
  ignorePreflightErrors: [SystemVerification]
patches: {directory: /etc/kubernetes/patches}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: edge
kubernetesVersion: v1.36.3
controlPlaneEndpoint: %[1]s:6443
networking: {podSubnet: 10.244.0.0/16, serviceSubnet: 10.96.0.0/12, dnsDomain: cluster.local}
apiServer:
  extraArgs: [{name: endpoint-reconciler-type, value: lease}, {name: profiling, value: "false"}, {name: request-timeout, value: 1m}]
controllerManager: {extraArgs: [{name: flex-volume-plugin-dir, value: /var/lib/kubelet/volumeplugins}]}
etcd: {local: {extraArgs: [{name: heartbeat-interval, value: "500"}, {name: election-timeout, value: "5000"}]}}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
rotateCertificates: true
protectKernelDefaults: true
X
kubeadm init --config /etc/kubeone/master_0.yaml
until kubectl --kubeconfig /etc/kubernetes/admin.conf get --raw /readyz >/dev/null 2>&1; do sleep 0.2; done
`, host.IP(), host.Name))
}

// whole are digests of what a host has, and its processes: what a cluster is made of.
func (u *user) whole(host *lab.Host) string {
	u.Helper()
	return u.run(host, `
find /etc /var/lib/kubelet -xdev -type f ! -path '/etc/ssh/*' ! -name '*.log' 2>/dev/null | sort | xargs sha256sum >/run/whole 2>/dev/null
sha256sum </run/whole
grep -E 'kube|containerd|sysctl|modules' /run/whole
for each in /proc/[0-9]*; do
  name=$(tr '\0' ' ' <$each/cmdline 2>/dev/null | cut -c1-60)
  case $name in *kube*|*etcd*|*containerd*) printf '%s %s\n' "${each##*/}" "$name" ;; esac
done | sort
`)
}

// A cluster that was made by the configuration of KubeOne is taken over as it is: what the
// manifest says is saved, and no file and no process changes. From then on it is kept.
func TestClusterOfKubeOneIsTakenOver(t *testing.T) {
	t.Parallel()
	u := newUser(t, 2)
	cp := u.lab.Hosts()
	u.write("edge", cp[0])
	byKubeOne(u, cp[0])
	u.must(2, []string{"apply", "--yes"}, "Error (Refused): Strata has not made the cluster on these hosts: --take-over takes it as it is")
	client := u.client()
	labelled := metav1.ObjectMeta{Name: "canal", Namespace: "kube-system", Labels: map[string]string{"kubeone.io/addon": "cni-canal"}}
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "canal"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "canal"}}}}
	_, err := client.AppsV1().DaemonSets("kube-system").Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: labelled, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}, Template: pod},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	// What the manifest says must be so already.
	u.edit("  controlPlane:\n", "  network: {pods: [10.1.0.0/16]}\n  controlPlane:\n")
	u.must(2, []string{"plan", "--take-over"}, "spec.network.pods is 10.244.0.0/16 in the cluster, and 10.1.0.0/16 in the manifest")
	u.edit("  network: {pods: [10.1.0.0/16]}\n", "")
	u.write("edge", cp...)
	u.must(2, []string{"apply", "--yes", "--take-over"}, "a cluster is taken over as it is, and these hosts are no healthy ones of it: cp-1")
	u.write("edge", cp[0])
	u.edit("cgroupV1: true}", "cgroupV1: true}, labels: {example.com/rack: r1}")

	before := u.whole(cp[0])
	u.must(2, []string{"plan", "--take-over"}, "1. Update: what the manifest says is saved in the cluster, and nothing else is done",
		"Warning: KubeOne's add-ons are left alone: DaemonSet kube-system/canal")
	u.must(2, []string{"apply", "--yes", "--take-over"}, "what was applied is saved in the cluster", "1. Update: cp-0 label example.com/rack: - -> r1")
	if after := u.whole(cp[0]); after != before || !strings.Contains(after, "/etc/kubernetes/manifests/etcd.yaml") {
		t.Errorf("something has changed:\n%s\n%s", before, after)
	}

	// It is kept as any other one: the label, another host, and certificates.
	u.add("  snapshots: {directory: snapshots}\n")
	u.must(0, []string{"apply", "--yes"}, "Done: ")
	u.write("edge", cp...)
	u.add("  snapshots: {directory: snapshots}\n")
	u.must(0, []string{"apply", "--yes"}, "has saved etcd", "cp-1 has joined", "Done: ")
	u.must(0, []string{"certs", "renew", "--yes"}, "cp-0 has new certificates", "Done: ")
	if plan := u.plan(); len(plan.Members) != 2 || plan.Outcome != hosts.Done {
		t.Errorf("%+v", plan)
	}
	if manifest := cp[0].File("/etc/kubernetes/manifests/etcd.yaml"); !strings.Contains(manifest, "--election-timeout=5000") {
		t.Errorf("its settings are lost: %s", manifest)
	}
}
