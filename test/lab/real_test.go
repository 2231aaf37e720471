// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/lab"
)

// bridgeNetwork is what a network plug-in leaves on a host. Nothing leaves the host from
// there, so that it needs no iptables.
const bridgeNetwork = `cat >/etc/cni/net.d/10-pods.conflist <<'end'
{"cniVersion": "1.0.0", "name": "pods", "plugins": [{
  "type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}
}]}
end`

// answering is what answers at a Service, and a Pod that asks there by its name.
const answering = `kubectl create deployment answer --image=registry.example.com/example:v1 --replicas=2 -- /usr/local/bin/pod serve hello
kubectl expose deployment answer --port=80 --target-port=8080
kubectl wait deployment/answer --for=condition=Available --timeout=2m
kubectl wait -n kube-system deployment/coredns --for=condition=Available --timeout=2m
kubectl run ask --image=registry.example.com/example:v1 --restart=Never --command -- /usr/local/bin/pod ask http://answer.default.svc.cluster.local/
kubectl wait pod/ask --for=jsonpath={.status.phase}=Succeeded --timeout=1m
echo said: "$(kubectl logs ask)"`

// One host with the real kubelet, containerd and runc becomes a cluster: kubeadm leaves no
// phase out, all images come from the mirror that the manifest names, Pods have a network,
// and find each other by the names of Services. When it is reset, none of it runs.
func TestRealHostBecomesACluster(t *testing.T) {
	t.Parallel()
	u := userOf(t, lab.NewReal(t))
	host := u.lab.Hosts()[0]
	mirror := u.lab.Images("v1.36.3")
	u.edit("kubelet: {cgroupV1: true}", "taints: [], kubelet: {cgroupV1: true}")
	u.add(fmt.Sprintf("  containerd:\n    mirrors:\n    - {registry: registry.k8s.io, endpoints: [%[1]s]}\n    - {registry: registry.example.com, endpoints: [%[1]s]}\n", mirror))
	u.must(0, []string{"apply", "--yes"}, "has initialised the cluster")

	said := host.File("/var/lib/strata/log")
	for _, phase := range []string{"[preflight]", "[certs]", "[etcd]", "[control-plane]", "[kubelet-start]", "[upload-certs]", "[mark-control-plane]", "[bootstrap-token]", "[addons]"} {
		if !strings.Contains(said, phase) {
			t.Errorf("kubeadm does not tell of its phase %s:\n%s", phase, said)
		}
	}
	const kubectl = "export KUBECONFIG=/etc/kubernetes/admin.conf NO_PROXY=*\nset -eu\n"
	// kube-proxy wants to set how many connections the machine tracks, and may not from a
	// network namespace that is not the machine's.
	u.run(host, kubectl+`kubectl -n kube-system get configmap kube-proxy -o yaml | sed 's/maxPerCore: null/maxPerCore: 0/' | kubectl replace -f -
kubectl -n kube-system delete pod -l k8s-app=kube-proxy`)
	u.run(host, bridgeNetwork)
	if out := u.run(host, kubectl+"kubectl wait node/cp-0 --for=condition=Ready --timeout=2m\n"+answering); !strings.Contains(out, "said: hello") {
		t.Errorf("the Pod has not heard what the other one says:\n%s", out)
	}
	u.must(0, []string{"plan"}, "Done: there is nothing to do", "cp-0   control-plane   Healthy   v1.36.3", "v2.4.2")

	u.must(0, []string{"reset", "--confirm", "fleet/edge"})
	err := controlplane.WaitFor(t.Context(), 30*time.Second, func(context.Context) error {
		if left := u.run(host, "ps -eo args | grep -E 'kube-|etcd|coredns|real-kubelet|/pod' | grep -v grep || true"); left != "" {
			return fmt.Errorf("this still runs: %s", left)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
