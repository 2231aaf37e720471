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

// familiesOf are those of ranges of addresses.
func familiesOf(ranges []string) []string {
	var families []string
	for _, each := range ranges {
		if strings.Contains(each, ":") {
			families = append(families, "IPv6")
		} else {
			families = append(families, "IPv4")
		}
	}
	return families
}

// bridgeNetwork is what a network plug-in leaves on a host, for ranges of addresses.
// Nothing leaves the host from there, so that it needs no iptables.
func bridgeNetwork(ranges []string) string {
	anywhere := map[string]string{"IPv4": "0.0.0.0/0", "IPv6": "::/0"}
	var subnets, routes []string
	for i, family := range familiesOf(ranges) {
		subnets = append(subnets, `[{"subnet": "`+ranges[i]+`"}]`)
		routes = append(routes, `{"dst": "`+anywhere[family]+`"}`)
	}
	return fmt.Sprintf(`cat >/etc/cni/net.d/10-pods.conflist <<'end'
{"cniVersion": "1.0.0", "name": "pods", "plugins": [{
  "type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
  "ipam": {"type": "host-local", "ranges": [%s], "routes": [%s]}
}]}
end`, strings.Join(subnets, ", "), strings.Join(routes, ", "))
}

// answering is Pods that answer at a Service of each family of addresses, and Pods that ask
// there by its name.
func answering(families ...string) string {
	script := &strings.Builder{}
	script.WriteString(`kubectl create deployment answer --image=registry.example.com/example:v1 --replicas=2 -- /usr/local/bin/pod serve hello
kubectl wait deployment/answer --for=condition=Available --timeout=2m
kubectl wait -n kube-system deployment/coredns --for=condition=Available --timeout=2m
`)
	for _, family := range families {
		name := strings.ToLower(family)
		fmt.Fprintf(script, `kubectl expose deployment answer --name=%[1]s --port=80 --target-port=8080 --overrides='{"spec": {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["%[2]s"]}}'
kubectl run ask-%[1]s --image=registry.example.com/example:v1 --restart=Never --command -- /usr/local/bin/pod ask http://%[1]s.default.svc.cluster.local/
kubectl wait pod/ask-%[1]s --for=jsonpath='{.status.phase}'=Succeeded --timeout=1m
echo "%[2]s says $(kubectl logs ask-%[1]s)"
`, name, family)
	}
	return script.String()
}

// One host with the real kubelet, containerd and runc becomes a cluster: kubeadm leaves no
// phase out, all images come from the mirror that the manifest names, Pods have a network,
// of each family of addresses, and find each other by the names of Services. When the host
// is reset, none of it runs.
func TestRealHostBecomesACluster(t *testing.T) {
	for name, families := range map[string]struct {
		host    func(*lab.Host) string // its addresses in the manifest
		network string                 // in the manifest
		pods    []string               // addresses of its Pods
	}{
		"IPv4": {host: func(h *lab.Host) string { return "address: " + h.IP() }, pods: []string{"10.244.0.0/24"}},
		"IPv6": {
			host:    func(h *lab.Host) string { return fmt.Sprintf("address: '%s', sshAddress: %s", h.IPv6(), h.IP()) },
			network: "  network: {pods: ['fd44::/48'], services: ['fd96::/112']}\n", pods: []string{"fd44::/64"},
		},
		"both": {
			host:    func(h *lab.Host) string { return fmt.Sprintf("address: %s, secondAddress: '%s'", h.IP(), h.IPv6()) },
			network: "  network: {pods: [10.244.0.0/16, 'fd44::/48'], services: [10.96.0.0/16, 'fd96::/112']}\n", pods: []string{"10.244.0.0/24", "fd44::/64"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := userOf(t, lab.NewReal(t))
			host := u.lab.Hosts()[0]
			u.edit("address: "+host.IP()+", kubelet:", families.host(host)+", taints: [], kubelet:")
			u.add(families.network)
			u.becomesRealCluster(families.pods)
		})
	}
}

// becomesRealCluster makes a cluster of the one host, whose Pods have addresses of ranges,
// and resets it.
func (u *user) becomesRealCluster(pods []string) {
	u.Helper()
	host := u.lab.Hosts()[0]
	mirror := u.lab.Images("v1.36.3")
	u.add(fmt.Sprintf("  containerd:\n    mirrors:\n    - {registry: registry.k8s.io, endpoints: [%[1]s]}\n    - {registry: registry.example.com, endpoints: [%[1]s]}\n", mirror))
	u.add("  kubelets: {serverTLSBootstrap: true}\n")
	u.must(0, []string{"apply", "--yes"}, "has initialised the cluster", "cp-0 gets its serving certificate")
	u.servesSigned(host)
	said := host.File("/var/lib/strata/log")
	for _, phase := range []string{"[preflight]", "[certs]", "[etcd]", "[control-plane]", "[kubelet-start]", "[upload-certs]", "[mark-control-plane]", "[bootstrap-token]", "[addons]"} {
		if !strings.Contains(said, phase) {
			u.Errorf("kubeadm does not tell of its phase %s:\n%s", phase, said)
		}
	}
	const kubectl = "export KUBECONFIG=/etc/kubernetes/admin.conf NO_PROXY=*\nset -eu\n"
	// kube-proxy wants to set how many connections the machine tracks, and may not from a
	// network namespace that is not the machine's.
	u.run(host, kubectl+`kubectl -n kube-system get configmap kube-proxy -o yaml | sed 's/maxPerCore: null/maxPerCore: 0/' | kubectl replace -f -
kubectl -n kube-system delete pod -l k8s-app=kube-proxy`)
	u.run(host, bridgeNetwork(pods))
	families := familiesOf(pods)
	out := u.run(host, kubectl+"kubectl wait node/cp-0 --for=condition=Ready --timeout=2m\n"+answering(families...))
	for _, family := range families {
		if !strings.Contains(out, family+" says hello") {
			u.Errorf("a Pod has not heard over %s what another one says:\n%s", family, out)
		}
	}
	u.must(0, []string{"plan"}, "Done: there is nothing to do", "cp-0   control-plane   Healthy   v1.36.3", "v2.4.2")

	u.must(0, []string{"reset", "--confirm", "fleet/edge"})
	err := controlplane.WaitFor(u.Context(), 30*time.Second, func(context.Context) error {
		if left := u.run(host, "ps -eo args | grep -E 'kube-|etcd|coredns|real-kubelet|/pod' | grep -v grep || true"); left != "" {
			return fmt.Errorf("this still runs: %s", left)
		}
		return nil
	})
	if err != nil {
		u.Error(err)
	}
}
