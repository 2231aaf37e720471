// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/strata-project/strata/api/v1alpha1"
)

// gateway is another way to a cluster: it can say that the cluster is of another
// version, be cut, and go for good.
type gateway struct {
	*httptest.Server
	config *rest.Config

	mu      sync.Mutex
	version string
	// cut is closed to let those go on who wait because the gateway is cut; nil
	// where it is not.
	cut chan struct{}
	// gone is set when every connection is broken off at once.
	gone bool
}

// gateway starts a gateway to a cluster at an address.
func (f *fixture) gateway(far *farCluster, address string) *gateway {
	f.Helper()
	direct := far.Config()
	target, err := url.Parse(direct.Host)
	f.must(err)
	// Whoever asks says who they are.
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(direct))
	f.must(err)
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	g := &gateway{}
	g.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		version, cut, gone := g.state()
		if gone {
			panic(http.ErrAbortHandler)
		}
		if cut != nil {
			select {
			case <-cut:
			case <-r.Context().Done():
			}
			panic(http.ErrAbortHandler)
		}
		if version != "" && r.URL.Path == "/version" {
			fmt.Fprintf(w, `{"gitVersion":%q}`, version)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	f.must(g.Listener.Close())
	g.Listener, err = net.Listen("tcp", address)
	f.must(err)
	g.StartTLS()
	f.Cleanup(func() {
		g.join()
		g.CloseClientConnections()
		g.Close()
	})
	g.config = &rest.Config{
		Host: g.URL, BearerToken: direct.BearerToken,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw}),
			CertData: direct.CertData, KeyData: direct.KeyData,
		},
	}
	return g
}

func (g *gateway) state() (version string, cut chan struct{}, gone bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.version, g.cut, g.gone
}

// says has the gateway name a version of its own.
func (g *gateway) says(version string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.version = version
}

// sever has the gateway answer nobody any more, and join again.
func (g *gateway) sever() {
	g.mu.Lock()
	g.cut = make(chan struct{})
	g.mu.Unlock()
	g.CloseClientConnections()
}

func (g *gateway) join() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cut != nil {
		close(g.cut)
		g.cut = nil
	}
}

// goes has the gateway break off whatever anybody asks it, as an endpoint does behind
// which nothing runs any more. Nobody hangs in it: helm-controller, which may be asking
// by the old way at this moment, would wait for as long as a release may take.
func (g *gateway) goes() {
	g.mu.Lock()
	g.gone = true
	g.mu.Unlock()
	g.CloseClientConnections()
}

// The version that gates want is that of the layer's own cluster, and a layer that
// waits for it goes on when the cluster has it.
func TestGatesAskTheLayersOwnCluster(t *testing.T) {
	f := newFixture(t)
	gateway := f.gateway(f.far(0), "127.0.0.1:0")
	gateway.says("v1.29.4")
	f.kubeconfigSecret(stack.client, f.prefix, "old", kubeconfigOf(t, gateway.config))
	old := f.remoteCluster("old")
	current := f.joined("current", f.far(1))
	revision := f.push(map[string]string{"base/settings.yaml": settingsOf("default", f.prefix)})
	wants := func(layer *v1alpha1.AddonsLayer) {
		layer.Spec.Source.Path, layer.Spec.Prereqs.K8sVersion = "./base", ">=1.30"
	}
	f.layer("current", on(current), wants)
	f.layer("old", on(old), wants)
	f.deployed("current", revision)
	f.state("old", v1alpha1.StateK8sVersion, "the cluster is at v1.29.4")

	gateway.says("v1.31.0")
	f.deployed("old", revision)
	found := f.clusterSays(old, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable, "v1.31.0")
	if found.Status.Version != "v1.31.0" {
		t.Errorf("it says that it is at %s", found.Status.Version)
	}
}

// A network that swallows all that is sent is as a cluster that is away, and what
// happens meanwhile is caught up with.
func TestClusterIsCutOff(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	gateway := f.gateway(far, "127.0.0.1:0")
	f.kubeconfigSecret(stack.client, f.prefix, "cut", kubeconfigOf(t, gateway.config))
	cluster := f.remoteCluster("cut", func(c *v1alpha1.RemoteCluster) {
		c.Spec.Unreachable.After = &metav1.Duration{Duration: 2 * time.Second}
	})
	f.must(far.CreateNamespace(f.ctx, f.prefix))
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one"), "base/settings.yaml": settingsOf(f.prefix, "one")})
	f.layer("base", on(cluster))
	f.deployed("base", revision)

	gateway.sever()
	f.clusterSays(cluster, v1alpha1.ReachableCondition, metav1.ConditionFalse, v1alpha1.ReasonUnreachable)
	f.state("base", v1alpha1.StateUnknown)
	revision = f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "two"), "base/settings.yaml": settingsOf(f.prefix, "two")})
	if data, err := f.configMapOn(far.client, f.prefix, "settings"); err != nil || data["value"] != "one" {
		t.Errorf("what is there has changed: %v, %v", data, err)
	}
	gateway.join()
	f.deployed("base", revision)
	if data, err := f.configMapOn(far.client, f.prefix, "settings"); err != nil || data["value"] != "two" {
		t.Errorf("what is there: %v, %v", data, err)
	}
}

// When the endpoint in the kubeconfig is another one, the old one, which is of IPv6,
// is not used any more.
func TestEndpointIsChanged(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	gateway := f.gateway(far, "[::1]:0")
	f.kubeconfigSecret(stack.client, f.prefix, "moves", kubeconfigOf(t, gateway.config))
	cluster := f.remoteCluster("moves")
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base", on(cluster))
	f.deployed("base", revision)
	found := f.clusterSays(cluster, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable)
	if !strings.HasPrefix(found.Status.Endpoint, "https://[::1]:") {
		t.Errorf("it is reached at %s", found.Status.Endpoint)
	}

	f.kubeconfigSecret(stack.client, f.prefix, "moves", far.kubeconfig(t))
	f.eventually("the RemoteCluster names the new endpoint", func() error {
		found := f.clusterSays(cluster, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable)
		if found.Status.Endpoint != far.Config().Host {
			return fmt.Errorf("it names %s", found.Status.Endpoint)
		}
		return nil
	})
	gateway.goes()
	revision = f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "two")})
	f.deployed("base", revision)
}
