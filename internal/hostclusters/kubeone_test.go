// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostclusters_test

import (
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/hostclusters"
)

const kubeone = `apiVersion: kubeone.k8c.io/v1beta2
kind: KubeOneCluster
name: shop
versions: {kubernetes: 1.35.3}
cloudProvider: {hetzner: {}, external: true}
apiEndpoint: {host: api.example.com, port: 8443, alternativeNames: [10.0.0.1]}
clusterNetwork:
  podSubnet: 10.1.0.0/16
  serviceSubnet: 10.2.0.0/16
  cni: {cilium: {enableHubble: true}}
controlPlane:
  hosts:
  - {publicAddress: 1.2.3.4, privateAddress: 10.0.0.10, hostname: CP-A, sshUsername: ubuntu, sshPort: 2222, sshPrivateKeyFile: /home/me/.ssh/id, isLeader: true, bastion: 1.2.3.9, bastionUser: jump, labels: {rack: r1}}
  - {privateAddress: 10.0.0.11, taints: [{key: gpu, effect: NoSchedule}], kubelet: {maxPods: 50, systemReserved: {cpu: 1, memory: many}}, labels: {a: [1]}, annotations: {a: b}, sshPort: [22]}
staticWorkers:
  hosts: [{privateAddress: 10.0.0.20}]
containerRuntime: {containerd: {registries: {"*": {mirrors: ["https://all.example.com"]}, docker.io: {mirrors: ["https://mirror.example.com"], auth: {username: me}}}}}
systemPackages: {configureRepositories: false}
features: {podNodeSelector: {enable: true}}
addons: {enable: true, path: ./addons}
`

// What KubeOne has and a HostCluster too is carried over, and all else is named.
func TestManifestOfKubeOneIsConverted(t *testing.T) {
	text, left, err := hostclusters.FromKubeOne([]byte(kubeone), nil)
	if err != nil {
		t.Fatal(err)
	}
	cluster, said := read(t, text)
	if said != "" {
		t.Fatalf("%s\n%s", said, text)
	}
	spec := cluster.Spec
	first, second := spec.ControlPlane[0], spec.ControlPlane[1]
	switch {
	case cluster.Name != "shop" || spec.Version != "v1.35.3" || spec.Endpoint.Port != 8443 || spec.Endpoint.AlternativeNames[0] != "10.0.0.1":
	case first.Name != "cp-a" || first.Address != "10.0.0.10" || first.SSHAddress != "1.2.3.4" || first.SSHPort != 2222 || first.SSHUser != "ubuntu" || first.Labels["rack"] != "r1":
	case second.Name != "cp-1" || second.Taints[0].Key != "gpu" || second.Kubelet.MaxPods != 50 || len(second.Kubelet.SystemReserved) != 1 || len(first.Taints) != 1:
	case spec.SSH.Bastion.Address != "1.2.3.9" || spec.SSH.Bastion.User != "jump" || spec.Workers[0].Name != "worker-0":
	case spec.Containerd.Mirrors[0].Endpoints[0] != "https://mirror.example.com" || !spec.Packages.LeaveRepositories || spec.Network.Pods[0] != "10.1.0.0/16":
	default:
		text = ""
	}
	if text != "" {
		t.Errorf("%+v\n%s", spec, text)
	}
	all := strings.Join(left, "\n")
	for _, want := range []string{
		"sshPrivateKeyFile: give it with the flags", "cp-1 has no hostname", "clusterNetwork.cni: have a layer", "cloudProvider: have a layer",
		"cp-1: annotations.a is not carried over", "cp-1: labels.a is not", "cp-1: sshPort is not", "cp-1: kubelet.systemReserved is not",
		"features.podNodeSelector.enable is not carried over", "addons.enable", "containerRuntime.containerd.registries is not carried over",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("it does not say %q:\n%s", want, all)
		}
	}
}

// Hosts may come from terraform, as KubeOne reads them.
func TestHostsComeFromTerraform(t *testing.T) {
	const manifest = "apiVersion: kubeone.k8c.io/v1beta3\nkind: KubeOneCluster\nversions: {kubernetes: v1.36.3}\nclusterNetwork: {ipFamily: IPv4+IPv6}\n"
	const output = `{"kubeone_api": {"value": {"endpoint": "api.example.com", "apiserver_alternative_names": ["a.example.com"]}},
"kubeone_hosts": {"value": {"control_plane": {"cluster_name": "edge", "hostnames": ["a", "b"], "private_address": ["10.0.0.10", "10.0.0.11"],
"public_address": ["1.2.3.4", "1.2.3.5"], "ssh_user": "ubuntu", "ssh_port": 22, "bastion": ""}}},
"kubeone_static_workers": {"value": {"workers1": {"private_address": ["10.0.0.20"], "ssh_user": "core"}}},
"kubeone_workers": {"value": {"pool": {}}}}`
	text, left, err := hostclusters.FromKubeOne([]byte(manifest), []byte(output))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"name: edge", "host: api.example.com", "- a.example.com", "name: b", "sshAddress: 1.2.3.5", "sshUser: core", "fd01::/48"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if !strings.Contains(strings.Join(left, "\n"), "kubeone_workers: machines that are made are Cluster API's") {
		t.Errorf("%q", left)
	}
	// Both families need a second address, which terraform does not tell.
	if _, said := read(t, text); !strings.Contains(said, "spec.controlPlane[0].secondAddress: is missing") {
		t.Error(said)
	}
}

func TestWhatIsNoManifestOfKubeOne(t *testing.T) {
	for name, tc := range map[string]struct{ manifest, terraform, want string }{
		"another kind":   {"kind: Pod\napiVersion: v1", "", "is no KubeOneCluster"},
		"no YAML":        {"{{", "", "cannot be read"},
		"a list":         {"- a", "", "cannot be read"},
		"no hosts":       {"apiVersion: kubeone.k8c.io/v1beta2\nkind: KubeOneCluster", "", "has no hosts for the control plane"},
		"hosts are none": {"apiVersion: kubeone.k8c.io/v1beta2\nkind: KubeOneCluster\ncontrolPlane: {hosts: [a, 1]}", "", "has no hosts for the control plane"},
		"no JSON":        {kubeone, "name = x", "the output of terraform cannot be read"},
		"too much":       {kubeone + strings.Repeat("#", 1<<20), "", "has more than"},
	} {
		if _, _, err := hostclusters.FromKubeOne([]byte(tc.manifest), []byte(tc.terraform)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}

func FuzzFromKubeOne(f *testing.F) {
	f.Add([]byte(kubeone), []byte(`{"kubeone_hosts": {"value": {"control_plane": {"private_address": ["10.0.0.1"]}}}}`))
	f.Fuzz(func(t *testing.T, manifest, terraform []byte) {
		text, _, err := hostclusters.FromKubeOne(manifest, terraform)
		if err == nil && !strings.Contains(text, "kind: HostCluster") {
			t.Error(text)
		}
	})
}
