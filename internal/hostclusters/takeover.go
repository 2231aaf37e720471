// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostclusters

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/printable"
)

// Kubeadm is what is read of kubeadm's own configuration of a cluster.
type Kubeadm struct {
	KubernetesVersion    string `json:"kubernetesVersion"`
	ControlPlaneEndpoint string `json:"controlPlaneEndpoint"`
	Networking           struct {
		PodSubnet     string `json:"podSubnet"`
		ServiceSubnet string `json:"serviceSubnet"`
		DNSDomain     string `json:"dnsDomain"`
	} `json:"networking"`
}

// upgradeLock is on a Node while KubeOne upgrades it.
const upgradeLock = "kubeone.io/upgrade-in-progress"

// Unlike returns where a manifest says something else than the cluster has that it is to take
// over: hosts join by it later.
func Unlike(kubeadm Kubeadm, nodes []corev1.Node, wanted v1alpha1.HostClusterSpec) []string {
	var found []string
	add := func(field, is, says string) {
		if is != says {
			found = append(found, fmt.Sprintf("%s is %s in the cluster, and %s in the manifest", field, orUnset(printable.Line(is, 200)), says))
		}
	}
	endpoint := kubeadm.ControlPlaneEndpoint
	if host, port, err := net.SplitHostPort(endpoint); err == nil {
		endpoint = net.JoinHostPort(strings.Trim(host, "[]"), port)
	} else if endpoint != "" {
		endpoint = net.JoinHostPort(endpoint, strconv.Itoa(APIPort))
	}
	add("spec.endpoint", endpoint, net.JoinHostPort(wanted.Endpoint.Host, strconv.Itoa(int(wanted.Endpoint.Port))))
	add("spec.network.pods", kubeadm.Networking.PodSubnet, strings.Join(wanted.Network.Pods, ","))
	add("spec.network.services", kubeadm.Networking.ServiceSubnet, strings.Join(wanted.Network.Services, ","))
	add("spec.network.domain", kubeadm.Networking.DNSDomain, wanted.Network.Domain)
	for i := range nodes {
		if _, locked := nodes[i].Labels[upgradeLock]; locked {
			found = append(found, fmt.Sprintf("KubeOne upgrades %s, or has not ended that: the Node has the label %s", printable.Line(nodes[i].Name, 253), upgradeLock))
		}
	}
	return found
}

func orUnset(text string) string {
	if text == "" {
		return "not set"
	}
	return text
}

// Unlisted returns the Nodes of a cluster that a manifest does not list.
func Unlisted(nodes []corev1.Node, wanted v1alpha1.HostClusterSpec) []string {
	listed := map[string]bool{}
	for _, host := range Hosts(wanted) {
		listed[host.Name] = true
	}
	var found []string
	for i := range nodes {
		if !listed[nodes[i].Name] {
			found = append(found, printable.Line(nodes[i].Name, 253))
		}
	}
	return found
}
