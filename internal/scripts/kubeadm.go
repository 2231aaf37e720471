// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package scripts

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/hosts"
)

const (
	kubeadmVersion = "kubeadm.k8s.io/v1beta4"
	criSocket      = "unix:///run/containerd/containerd.sock"
	// tokenTime is how long a token is valid that kubeadm makes; it is used at once.
	tokenTime = "15m0s"
)

// What follows are the parts of kubeadm.k8s.io/v1beta4 and kubelet.config.k8s.io/v1beta1
// that are written. Their Go types are in modules that are not made to be imported.

type typed struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

type clusterConfiguration struct {
	typed                `json:",inline"`
	ClusterName          string     `json:"clusterName"`
	KubernetesVersion    string     `json:"kubernetesVersion"`
	ControlPlaneEndpoint string     `json:"controlPlaneEndpoint"`
	Networking           networking `json:"networking"`
	APIServer            apiServer  `json:"apiServer,omitzero"`
}

type networking struct {
	PodSubnet     string `json:"podSubnet"`
	ServiceSubnet string `json:"serviceSubnet"`
	DNSDomain     string `json:"dnsDomain"`
}

type apiServer struct {
	CertSANs     []string                `json:"certSANs,omitempty"`
	ExtraArgs    []hostclusters.Argument `json:"extraArgs,omitempty"`
	ExtraVolumes []hostclusters.Volume   `json:"extraVolumes,omitempty"`
}

type apiEndpoint struct {
	AdvertiseAddress string `json:"advertiseAddress"`
	BindPort         int32  `json:"bindPort"`
}

type bootstrapToken struct {
	Token       string   `json:"token"`
	TTL         string   `json:"ttl"`
	Description string   `json:"description"`
	Usages      []string `json:"usages"`
	Groups      []string `json:"groups"`
}

type nodeRegistration struct {
	Name                  string                  `json:"name"`
	CRISocket             string                  `json:"criSocket"`
	Taints                []corev1.Taint          `json:"taints"`
	KubeletExtraArgs      []hostclusters.Argument `json:"kubeletExtraArgs,omitempty"`
	IgnorePreflightErrors []string                `json:"ignorePreflightErrors,omitempty"`
}

type patches struct {
	Directory string `json:"directory"`
}

type initConfiguration struct {
	typed            `json:",inline"`
	BootstrapTokens  []bootstrapToken `json:"bootstrapTokens,omitempty"`
	NodeRegistration nodeRegistration `json:"nodeRegistration"`
	LocalAPIEndpoint apiEndpoint      `json:"localAPIEndpoint"`
	CertificateKey   string           `json:"certificateKey,omitempty"`
	Patches          patches          `json:"patches"`
}

type joinConfiguration struct {
	typed            `json:",inline"`
	Discovery        discovery         `json:"discovery"`
	NodeRegistration nodeRegistration  `json:"nodeRegistration"`
	ControlPlane     *joinControlPlane `json:"controlPlane,omitempty"`
	Patches          patches           `json:"patches"`
}

type discovery struct {
	BootstrapToken tokenDiscovery `json:"bootstrapToken"`
}

type tokenDiscovery struct {
	Token             string   `json:"token"`
	APIServerEndpoint string   `json:"apiServerEndpoint"`
	CACertHashes      []string `json:"caCertHashes"`
}

type joinControlPlane struct {
	LocalAPIEndpoint apiEndpoint `json:"localAPIEndpoint"`
	CertificateKey   string      `json:"certificateKey"`
}

type kubeletConfiguration struct {
	typed        `json:",inline"`
	CgroupDriver string `json:"cgroupDriver,omitempty"`
}

// initDocuments are the configuration of kubeadm init.
func initDocuments(job Job, host v1alpha1.ClusterHost) string {
	spec := job.Cluster.Spec
	given := hostclusters.APIServerOf(spec.APIServer, job.Encryption.File)
	cluster := clusterConfiguration{
		typed: typed{kubeadmVersion, "ClusterConfiguration"}, ClusterName: job.Cluster.Name, KubernetesVersion: job.Action.Version,
		ControlPlaneEndpoint: endpoint(spec.Endpoint),
		Networking: networking{
			PodSubnet: strings.Join(spec.Network.Pods, ","), ServiceSubnet: strings.Join(spec.Network.Services, ","), DNSDomain: spec.Network.Domain,
		},
		APIServer: apiServer{CertSANs: spec.Endpoint.AlternativeNames, ExtraArgs: given.Arguments, ExtraVolumes: given.Volumes},
	}
	first := initConfiguration{
		typed: typed{kubeadmVersion, "InitConfiguration"},
		BootstrapTokens: []bootstrapToken{{
			Token: job.Secrets.Token, TTL: tokenTime, Description: "made by Strata, for hosts that join",
			Usages: []string{"signing", "authentication"}, Groups: []string{"system:bootstrappers:kubeadm:default-node-token"},
		}},
		NodeRegistration: registration(job, host, initLeaves),
		LocalAPIEndpoint: apiEndpoint{host.Address, hostclusters.APIPort}, CertificateKey: job.Secrets.CertificateKey, Patches: patches{patchDir},
	}
	kubelet := kubeletConfiguration{typed: typed{"kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"}, CgroupDriver: "systemd"}
	return documents(cluster, first, kubelet)
}

// apiDocuments are the configuration by which kubeadm writes the manifest of the host's API
// server anew: that of the cluster, and what is the host's own.
func apiDocuments(job Job, host v1alpha1.ClusterHost) string {
	own := initConfiguration{
		typed: typed{kubeadmVersion, "InitConfiguration"}, NodeRegistration: registration(job, host, nil),
		LocalAPIEndpoint: apiEndpoint{host.Address, hostclusters.APIPort}, Patches: patches{patchDir},
	}
	return strings.TrimSpace(job.Configuration) + "\n---\n" + document(own)
}

// joinDocument is the configuration of kubeadm join.
func joinDocument(job Job, host v1alpha1.ClusterHost, isWorker bool) string {
	joins := joinConfiguration{
		typed: typed{kubeadmVersion, "JoinConfiguration"},
		Discovery: discovery{BootstrapToken: tokenDiscovery{
			Token: job.Secrets.Token, APIServerEndpoint: endpoint(job.Cluster.Spec.Endpoint), CACertHashes: []string{job.Secrets.AuthorityHash},
		}},
		NodeRegistration: registration(job, host, joinLeaves), Patches: patches{patchDir},
	}
	if !isWorker {
		joins.ControlPlane = &joinControlPlane{apiEndpoint{host.Address, hostclusters.APIPort}, job.Secrets.CertificateKey}
	}
	return documents(joins)
}

// What an action that was killed leaves, on which kubeadm would stop when it goes on.
var (
	initLeaves = []string{
		"DirAvailable--var-lib-etcd", "FileAvailable--etc-kubernetes-manifests-etcd.yaml", "FileAvailable--etc-kubernetes-manifests-kube-apiserver.yaml",
		"FileAvailable--etc-kubernetes-manifests-kube-controller-manager.yaml", "FileAvailable--etc-kubernetes-manifests-kube-scheduler.yaml",
		"Port-10250", "Port-10257", "Port-10259", "Port-2379", "Port-2380", "Port-6443",
	}
	joinLeaves = append(slices.Clone(initLeaves), "DirAvailable--etc-kubernetes-manifests", "FileAvailable--etc-kubernetes-bootstrap-kubelet.conf",
		"FileAvailable--etc-kubernetes-kubelet.conf", "FileAvailable--etc-kubernetes-pki-ca.crt")
)

// registration says how a host becomes a Node.
func registration(job Job, host v1alpha1.ClusterHost, leaves []string) nodeRegistration {
	address := host.Address
	if host.SecondAddress != "" {
		address += "," + host.SecondAddress
	}
	made := nodeRegistration{
		Name: host.Name, CRISocket: criSocket, Taints: hostclusters.TaintsOf(host),
		KubeletExtraArgs: []hostclusters.Argument{{Name: "node-ip", Value: address}},
	}
	if job.Action.Continues && job.Action.Verb != hosts.VerbReset {
		made.IgnorePreflightErrors = slices.Clone(leaves)
	}
	made.IgnorePreflightErrors = append(made.IgnorePreflightErrors, ignored(host)...)
	return made
}

// ignored are the checks of kubeadm that a host is let through.
func ignored(host v1alpha1.ClusterHost) []string {
	if host.Kubelet.CgroupV1 {
		// kubeadm wants this said beside the kubelet's own setting.
		return []string{"SystemVerification"}
	}
	return nil
}

// kubeletPatch is what is different about the kubelet of a host from what kubeadm makes.
func kubeletPatch(all v1alpha1.HostKubelets, kubelet v1alpha1.HostKubelet) string {
	patch := map[string]any{"maxPods": max(kubelet.MaxPods, 0)}
	if all.ServerTLSBootstrap {
		patch["serverTLSBootstrap"] = true
	}
	if kubelet.MaxPods == 0 {
		patch["maxPods"] = 110
	}
	if kubelet.CgroupV1 {
		patch["failCgroupV1"] = false
		patch["cgroupDriver"] = "cgroupfs"
	}
	for name, list := range map[string]map[string]resource.Quantity{"systemReserved": kubelet.SystemReserved, "kubeReserved": kubelet.KubeReserved} {
		reserved := map[string]string{}
		for name, quantity := range list {
			reserved[name] = quantity.String()
		}
		if len(reserved) > 0 {
			patch[name] = reserved
		}
	}
	return document(patch)
}

// endpoint joins a host and a port, also of IPv6.
func endpoint(e v1alpha1.HostEndpoint) string {
	host := e.Host
	if address, err := netip.ParseAddr(host); err == nil {
		host = address.String()
	}
	return net.JoinHostPort(host, strconv.Itoa(int(e.Port)))
}

func document(value any) string {
	data, err := yaml.Marshal(value)
	if err != nil {
		panic(err) // these are values of our own types
	}
	return strings.TrimSpace(string(data))
}

// documents joins documents of YAML.
func documents(values ...any) string {
	texts := make([]string, len(values))
	for i, each := range values {
		texts[i] = document(each)
	}
	return strings.Join(texts, "\n---\n")
}
