// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/test/lab"
)

// The versions of an upgrade: what is built of the minor version before, and of this one.
const before, after = "v1.35.3", "v1.36.3"

// newUpgradable makes hosts whose packages are served in two minor versions, and a manifest
// of the earlier one.
func newUpgradable(t *testing.T, n int) *user {
	t.Helper()
	u := userOf(t, lab.NewUpgradable(t, n, before, after))
	r := newRepository(t, u.lab)
	older, err := lab.OlderProgram("kubeadm")
	if err != nil {
		t.Fatal(err)
	}
	for version, kubeadm := range map[string]string{before: older, after: "kubeadm"} {
		number := strings.TrimPrefix(version, "v")
		said := filepath.Join(t.TempDir(), "kubelet.version")
		if err := os.WriteFile(said, []byte(version), 0o644); err != nil {
			t.Fatal(err)
		}
		below := "core/" + version[:len("v1.35")] + "/deb"
		list := r.build(below, "kubeadm", number+"-1.1", kubeadm) + r.build(below, "kubelet", number+"-1.1", "kubelet", said)
		r.release(below, "Packages", list, "kubernetes")
	}
	u.packages = r
	r.write("docker/debian/gpg", []byte(r.armored()))
	u.serveContainerd("2.2.0")
	u.edit(after, before)
	for _, host := range u.lab.Hosts() {
		u.edit("address: "+host.IP()+",", "address: "+host.IP()+", taints: [],")
	}
	u.add("  packages:\n    containerd: {url: " + r.served + "/docker}\n    kubernetes:\n      url: " + r.served + "/core/{minor}/{format}\n      key: |\n        " +
		strings.ReplaceAll(strings.TrimSpace(r.armored()), "\n", "\n        ") + "\n")
	return u
}

// serveContainerd has the packages of containerd be of a version.
func (u *user) serveContainerd(version string) {
	u.Helper()
	said := filepath.Join(u.packages.t.TempDir(), "containerd.version")
	if err := os.WriteFile(said, []byte("v"+version), 0o644); err != nil {
		u.Fatal(err)
	}
	codename := codenameOf(u.packages.t)
	u.packages.release("docker/debian/dists/"+codename, "stable/binary-amd64/Packages",
		u.packages.build("docker/debian", "containerd.io", version+"-1", "containerd", said), codename)
}

// spread is an application of two Pods, of which one may be away.
const spread = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "lab/web:v1"}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
`

// restless is a layer that accepts the earlier version alone.
const restless = `apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: base}
spec:
  version: 1.0.0
  source: {name: addons, path: ./base}
  prereqs: {k8sVersion: "<1.36"}
`

// A cluster of two hosts goes from one minor version to the next, with the real kubeadm, API
// servers and apt, while apply is killed at every step that it reports. What a layer does not
// accept, and what stands in the way of a drain, is named; Pods are away one at a time, and no
// host is left without Pods.
func TestClusterIsUpgradedThoughApplyIsKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	u := newUpgradable(t, 2)
	u.serveContainerd("1.7.29")
	u.must(0, []string{"apply", "--yes"}, "Done: ")
	u.serveContainerd("2.2.0")
	u.kubectl(networkPlugin, "apply", "-f", "-")
	u.kubectl("", "apply", "-f", filepath.Join("..", "..", "config", "crd", "bases", "kraan.io_addonslayers.yaml"))
	u.kubectl("", "wait", "node", "--all", "--for=condition=Ready", "--timeout=60s")
	u.kubectl("", "wait", "crd/addonslayers.kraan.io", "--for=condition=Established", "--timeout=60s")
	u.kubectl(spread, "apply", "-f", "-")
	u.kubectl(restless, "apply", "-f", "-")
	u.kubectl("", "wait", "deployment/web", "--for=condition=Available", "--timeout=60s")

	u.edit("version: "+before, "version: "+after)
	u.must(2, []string{"plan"}, "layer base is for Kubernetes <1.36, and "+after+" is not: change spec.prereqs.k8sVersion of the layer first")
	u.kubectl("", "patch", "addonslayer/base", "--type=merge", "-p", `{"spec": {"prereqs": {"k8sVersion": ">=1.35"}}}`)
	u.must(2, []string{"plan"}, "1. UpgradeContainerd cp-0", "2. UpgradeContainerd cp-1", "Upgrade cp-0 to "+after+" with the cluster: it has "+before, "Upgrade cp-1 to "+after+": it has "+before)

	u.kubectl("", "run", "alone", "--image=lab/alone:v1", "--overrides", `{"spec": {"nodeName": "cp-0"}}`)
	u.must(1, []string{"apply", "--yes"}, "cp-0 has Pods that nothing would make again: default/alone")
	u.kubectl("", "delete", "pod", "alone", "--grace-period=1")

	seen, kills := map[string]bool{}, 0
	for u.applyUntil(seen) {
		kills++
		if kills > 40 {
			t.Fatalf("it is not finished after %d kills: %v", kills, seen)
		}
	}
	if kills < 5 { // of each host when Pods leave it and when it begins, and at the end
		t.Errorf("it was killed %d times: %v", kills, seen)
	}
	u.must(0, []string{"plan"}, "Done: there is nothing to do", "cp-0   control-plane   Healthy   "+after, "cp-1   control-plane   Healthy   "+after, "v2.2.0")
	u.eventually("the application is there, and every host takes Pods", func(ctx context.Context) error {
		client := u.client()
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range nodes.Items {
			if node := &nodes.Items[i]; node.Spec.Unschedulable || hostclusters.IsCordoned(node) || node.Status.NodeInfo.KubeletVersion != after {
				return fmt.Errorf("%s: unschedulable: %t, %v, %s", node.Name, node.Spec.Unschedulable, node.Annotations, node.Status.NodeInfo.KubeletVersion)
			}
		}
		web, err := client.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		if err == nil && web.Status.AvailableReplicas != 2 {
			err = errors.New("Pods are missing")
		}
		return err
	})
	if version, err := u.client().Discovery().ServerVersion(); err != nil || version.GitVersion != after {
		t.Errorf("the API server is %v, %v", version, err)
	}
	for _, host := range u.lab.Hosts() {
		if manifest := host.File("/etc/kubernetes/manifests/kube-scheduler.yaml"); !strings.Contains(manifest, after) {
			t.Errorf("%s has another scheduler: %s", host.Name, manifest)
		}
	}
	u.edit("version: "+after, "version: "+before)
	u.must(2, []string{"plan"}, before+" is lower than "+after+", which the cluster has: it cannot go back")
	u.noSecretsInLogs()
}
