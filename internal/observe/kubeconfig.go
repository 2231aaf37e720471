// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"net"
	"strconv"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/strata-project/strata/api/v1alpha1"
)

// Kubeconfig returns a kubeconfig for the cluster at its endpoint, as the administrator that
// kubeadm has made, under a name.
func (c *Cluster) Kubeconfig(name string, endpoint v1alpha1.HostEndpoint) ([]byte, error) {
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server: "https://" + net.JoinHostPort(endpoint.Host, strconv.Itoa(int(endpoint.Port))), CertificateAuthorityData: c.Config.CAData,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name + "-admin": {ClientCertificateData: c.Config.CertData, ClientKeyData: c.Config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name + "-admin"}},
		CurrentContext: name,
	})
}
