// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/strata-project/strata/internal/kubeconfig"
	"github.com/strata-project/strata/test/controlplane"
)

// Each cluster has a connection of its own: client-go shares the transport of
// those whose TLS is the same.
func TestKubeconfigsShareNoConnection(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["it"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: authority}
	config.AuthInfos["it"] = &clientcmdapi.AuthInfo{Token: "secret"}
	config.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "it"}
	config.CurrentContext = "it"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	clusters, err := newGuises(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = clusters.close() })
	r := &remoteBed{identity: controlplane.Identity{Kubeconfig: path}, guises: clusters}
	read := func(cluster string) *rest.Config {
		t.Helper()
		data, err := r.kubeconfig(cluster)
		if err != nil {
			t.Fatal(err)
		}
		access, err := kubeconfig.Parse(data, kubeconfig.Allow{})
		if err != nil {
			t.Fatalf("%s: %v", cluster, err)
		}
		made, err := rest.TLSConfigFor(access.Config)
		if err != nil {
			t.Fatal(err)
		}
		if made.RootCAs == nil {
			t.Errorf("%s has no authority", cluster)
		}
		return access.Config
	}
	a, b := read("a"), read("b")
	if a.Host != clusters.server.URL+"/a" || b.Host != clusters.server.URL+"/b" || a.BearerToken != b.BearerToken {
		t.Errorf("they do not name the same server and account: %s and %s", a.Host, b.Host)
	}
	transport := func(config *rest.Config) any {
		t.Helper()
		web, err := rest.HTTPClientFor(&rest.Config{Host: config.Host, TLSClientConfig: config.TLSClientConfig})
		if err != nil {
			t.Fatal(err)
		}
		return web.Transport
	}
	if first, again := transport(a), transport(read("a")); first != again {
		t.Error("client-go does not share the transport of one cluster, so that this test shows nothing")
	}
	if transport(a) == transport(b) {
		t.Error("two clusters share a transport")
	}
}
