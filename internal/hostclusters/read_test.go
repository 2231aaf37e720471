// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostclusters_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hostclusters"
)

const good = `apiVersion: kraan.io/v1alpha1
kind: HostCluster
metadata: {name: edge, namespace: fleet}
spec:
  version: v1.36.3
  controlPlane:
  - {name: cp-0, address: 10.0.0.10}
  - {name: cp-1, address: 10.0.0.11}
  - {name: cp-2, address: 10.0.0.12}
  workers:
  - {name: w-0, address: 10.0.0.20}
`

// read returns the cluster of a manifest, or what is said about it.
func read(t *testing.T, text string) (*v1alpha1.HostCluster, string) {
	t.Helper()
	cluster, err := hostclusters.Read(t.Context(), "hosts.yaml", []byte(text))
	var problems *hostclusters.Problems
	switch {
	case err == nil:
		return cluster, ""
	case !errors.As(err, &problems):
		t.Fatalf("%v is no *Problems", err)
	}
	return nil, err.Error()
}

func TestManifestIsFilledIn(t *testing.T) {
	cluster, said := read(t, "---\n"+good+"---\n")
	if said != "" {
		t.Fatal(said)
	}
	spec := cluster.Spec
	if spec.Endpoint.Host != "10.0.0.10" || spec.Endpoint.Port != 6443 || spec.ControlPlane[1].SSHAddress != "10.0.0.11" || spec.Workers[0].SSHPort != 22 ||
		spec.Workers[0].SSHUser != "root" || spec.Network.Pods[0] != "10.244.0.0/16" || len(spec.ControlPlane[0].Taints) != 1 || spec.Workers[0].Taints != nil {
		t.Errorf("%+v", spec)
	}
	cluster, said = read(t, strings.Replace(good, "10.0.0.10}", "10.0.0.10, taints: [], sshUser: admin, sshPort: 2222, sshAddress: bastion.example.com}", 1))
	if said != "" || cluster.Spec.ControlPlane[0].Taints == nil || len(cluster.Spec.ControlPlane[0].Taints) != 0 || cluster.Spec.ControlPlane[0].SSHPort != 2222 {
		t.Errorf("%s %+v", said, cluster)
	}
}

// The sample is a manifest, and so it is with every field that it has in comments.
func TestSampleIsAManifest(t *testing.T) {
	if _, said := read(t, hostclusters.Sample); said != "" {
		t.Error(said)
	}
	whole := regexp.MustCompile(`(?m)^( *)# ((?:- )?[a-zA-Z]+:(?: .*)?)$|^( *)# ( +[a-zA-Z-]+.*)$`).ReplaceAllString(hostclusters.Sample, "$1$3$2$4")
	whole = regexp.MustCompile(`(?m)^.*(secondAddress|hostKeys|kubectl strata).*\n`).ReplaceAllString(whole, "")
	cluster, said := read(t, whole)
	if said != "" {
		t.Fatalf("%s\n%s", said, whole)
	}
	if cluster.Spec.SSH.Bastion == nil || len(cluster.Spec.Workers) != 1 || len(cluster.Spec.Containerd.Mirrors) != 1 || cluster.Spec.ControlPlane[0].Kubelet.MaxPods != 110 {
		t.Errorf("%+v\n%s", cluster.Spec, whole)
	}
}

// Every mistake is said, with its field, and all of them at once.
func TestMistakesNameTheirFields(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to string
		want     []string
	}{
		"several": {
			"version: v1.36.3\n  controlPlane:\n  - {name: cp-0, address: 10.0.0.10}", "version: latest\n  controlPlane:\n  - {name: CP_0, address: somewhere, colour: red}",
			[]string{"hosts.yaml: spec.version: ", "spec.controlPlane[0].name: ", "spec.controlPlane[0].colour: there is no such field"},
		},
		"a mistyped field": {"controlPlane:", "controlplane:", []string{"spec.controlplane: there is no such field: do you mean controlPlane?", "spec.controlPlane"}},
		"no hosts":         {hostsOf(good), "  controlPlane: []\n", []string{"spec.controlPlane"}},
		"too old":          {"v1.36.3", "v1.20.1", []string{"spec.version: is v1.20.1: the oldest that hosts can be given is v1.33.0"}},
		"one name twice":   {"cp-1", "cp-0", []string{"spec.controlPlane[1]: Duplicate value"}},
		"one name in both": {"w-0", "cp-0", []string{"workers and controlPlane must not have the same name"}},
		"one address twice": {
			"10.0.0.11", "10.0.0.10", []string{"spec.controlPlane: Invalid value: two hosts must not have the same address"},
		},
		"one address in both": {"10.0.0.20", "10.0.0.10", []string{"workers and controlPlane must not have the same address"}},
		"loopback":            {"10.0.0.10", "127.0.0.1", []string{"spec.controlPlane[0].address: ", "at which other hosts reach this one"}},
		"an address of Pods":  {"10.0.0.10", "10.244.1.1", []string{"spec.controlPlane[0].address: is in 10.244.0.0/16, which Pods or Services have"}},
		"another family":      {"10.0.0.10", "fd00::1", []string{"spec.controlPlane[0].address: must be of the family of the first range in spec.network.pods"}},
		"networks that overlap": {
			"spec:", "spec:\n  network: {pods: [10.96.0.0/16]}", []string{"spec.network: pods 10.96.0.0/16 and services 10.96.0.0/12 have addresses in common"},
		},
		"one network of two families": {
			"spec:", "spec:\n  network: {pods: [10.1.0.0/16, 'fd00:1::/56']}",
			[]string{"spec.network.services: must have the families of spec.network.pods", "spec.workers[0].secondAddress: is missing"},
		},
		"an address for a range":          {"spec:", "spec:\n  network: {pods: [10.1.2.0/16]}", []string{"spec.network.pods[0]: is an address and not a range: write 10.1.0.0/16"}},
		"a host key":                      {"10.0.0.10}", "10.0.0.10, hostKeys: [SHA256:abc]}", []string{"spec.controlPlane[0].hostKeys[0]: must be a key such as"}},
		"a label":                         {"10.0.0.10}", "10.0.0.10, labels: {'a b': c}}", []string{`spec.controlPlane[0].labels: "a b"="c" is no label`}},
		"a taint":                         {"10.0.0.10}", "10.0.0.10, taints: [{key: a, effect: Never}]}", []string{"spec.controlPlane[0].taints[0].effect: ", "must be NoSchedule, PreferNoSchedule or NoExecute"}},
		"a resource":                      {"10.0.0.10}", "10.0.0.10, kubelet: {kubeReserved: {gpu: 1}}}", []string{"spec.controlPlane[0].kubelet.kubeReserved: has gpu"}},
		"a mirror":                        {"spec:", "spec:\n  containerd: {mirrors: [{registry: docker.io, endpoints: [\"https://a\\\"; x\"]}]}", []string{"spec.containerd.mirrors[0].endpoints[0]"}},
		"a private key of age":            {"spec:", "spec:\n  snapshots: {directory: s, encryption: {age: [AGE-SECRET-KEY-1ABC]}}", []string{"spec.snapshots.encryption.age: must be public keys of age"}},
		"two keys in one":                 {"spec:", "spec:\n  snapshots: {directory: s, encryption: {age: [\"a\\nb\"]}}", []string{"spec.snapshots.encryption.age: must be"}},
		"an address of a host that moves": {"spec:", "spec:\n  endpoint: {host: 10.0.0.10, kubeVIP: {interface: eth0, image: a}}", []string{"spec.endpoint.host: must be an address of the hosts' network that no machine has"}},
		"a name that moves":               {"spec:", "spec:\n  endpoint: {host: api.example.com, kubeVIP: {interface: eth0, image: a}}", []string{"spec.endpoint.host: must be an address"}},
		"two places":                      {"spec:", "spec:\n  snapshots: {directory: a, s3: {bucket: abc}}", []string{"spec.snapshots: ", "directory and s3 must not both be given"}},
		"a key of no generation":          {"spec:", "spec:\n  apiServer: {encryption: {keyGeneration: -1}}", []string{"spec.apiServer.encryption.keyGeneration"}},
		"a folder that is none":           {"spec:", "spec:\n  packages: {directory: '/opt/$(reboot)'}", []string{"spec.packages.directory"}},
		"no worker at once":               {"spec:", "spec:\n  upgrade: {maxUnavailable: 0}", []string{"spec.upgrade.maxUnavailable: must be a number from 1 on, or a part such as 25%"}},
		"snapshots without room":          {"spec:", "spec:\n  snapshots: {directory: s, quota: 0}", []string{"spec.snapshots.quota: must be more than 0, such as 20Gi"}},
		"a part of nothing":               {"spec:", "spec:\n  upgrade: {maxUnavailable: many}", []string{"spec.upgrade.maxUnavailable: must be"}},
		"no snapshots":                    {"spec:", "spec:\n  snapshots: {directory: s, keep: 0}", []string{"spec.snapshots.keep"}},
		"a user":                          {"spec:", "spec:\n  ssh: {user: 'root; reboot'}", []string{"spec.ssh.user"}},
		"a key of a repository":           {"spec:", "spec:\n  packages: {kubernetes: {url: 'file:///x'}}", []string{"spec.packages.kubernetes.url"}},
		"another kind":                    {"HostCluster", "AddonsLayer", []string{"must be one HostCluster of kraan.io/v1alpha1: kubectl strata hosts init writes one"}},
		"two documents":                   {"spec:", "---\nspec:", []string{"has 2 documents"}},
		"a field twice":                   {"spec:", "spec: {}\nspec:", []string{"cannot be read", "spec"}},
		"no YAML":                         {good, "{{", []string{"cannot be read"}},
		"nothing":                         {good, "", []string{"must be one HostCluster"}},
		"a list":                          {good, "- a", []string{"cannot be read"}},
		"too much":                        {good, good + strings.Repeat("#", 1<<20), []string{"is longer than"}},
	} {
		text := strings.Replace(good, tc.from, tc.to, 1)
		if text == good {
			t.Fatalf("%s changes nothing", name)
		}
		_, said := read(t, text)
		for _, want := range tc.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, said)
			}
		}
	}
}

// hostsOf returns the part of a manifest that lists the hosts.
func hostsOf(manifest string) string {
	_, after, _ := strings.Cut(manifest, "  controlPlane:")
	return "  controlPlane:" + after
}

func TestWarnings(t *testing.T) {
	cluster, _ := read(t, good)
	if found := hostclusters.Warnings(cluster); len(found) != 1 || !strings.Contains(found[0], "spec.endpoint.host is the address of one host") {
		t.Errorf("%q", found)
	}
	cluster, _ = read(t, strings.Replace(strings.Replace(good, "  - {name: cp-2, address: 10.0.0.12}\n", "", 1), "spec:", "spec:\n  endpoint: {host: api.example.com}", 1))
	if found := hostclusters.Warnings(cluster); len(found) != 1 || !strings.Contains(found[0], "has 2 hosts: they survive the loss of as many as 1 do") {
		t.Errorf("%q", found)
	}
}

func TestPartOfWorkersIsRead(t *testing.T) {
	for _, most := range []string{"2", "25%", "100%"} {
		cluster, said := read(t, strings.Replace(good, "spec:", "spec:\n  upgrade: {maxUnavailable: "+most+"}", 1))
		if said != "" || cluster.Spec.Upgrade.MaxUnavailable.String() != most {
			t.Errorf("%s: %s", most, said)
		}
	}
}
