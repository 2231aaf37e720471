// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/clusters"
	"github.com/strata-project/strata/internal/kubeconfig"
	"github.com/strata-project/strata/internal/signals"
	"github.com/strata-project/strata/test/authority"
)

// known answers those that have the token or a certificate of the user.
func known(w http.ResponseWriter, r *http.Request) {
	byCertificate := len(r.TLS.PeerCertificates) > 0 && r.TLS.PeerCertificates[0].Subject.CommonName == "strata"
	if r.Header.Get("Authorization") != "Bearer right" && !byCertificate {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401,"message":"the credentials are not accepted"}`)
		return
	}
	fmt.Fprint(w, `{"gitVersion":"v1.30.1","metadata":{"uid":"11111111-aaaa"}}`) // also of the namespace that says which cluster it is
}

// askedAs asks the version as a kubeconfig says.
func askedAs(t *testing.T, cluster clientcmdapi.Cluster, user clientcmdapi.AuthInfo) (*kubeconfig.Access, string, error) {
	t.Helper()
	data, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "it", Contexts: map[string]*clientcmdapi.Context{"it": {Cluster: "it", AuthInfo: "it"}},
		Clusters: map[string]*clientcmdapi.Cluster{"it": &cluster}, AuthInfos: map[string]*clientcmdapi.AuthInfo{"it": &user},
	})
	if err != nil {
		t.Fatal(err)
	}
	access, err := kubeconfig.Parse(data, kubeconfig.Allow{})
	if err != nil {
		t.Fatal(err)
	}
	over, err := guardedConnection(access, authority.Reach, func() {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(over.plain.CloseIdleConnections)
	version, _, err := askCluster(t.Context(), over)
	return access, version, err
}

func TestAskVersion(t *testing.T) {
	a := authority.New(t)
	local := net.IPv4(127, 0, 0, 1)
	endpoint := a.Serve("127.0.0.1:0", nil, known, local)
	named := a.Serve("127.0.0.1:0", []string{"api.internal"}, known)
	until := time.Now().Add(48 * time.Hour).Truncate(time.Second)
	certificate, key := a.Sign("strata", until, nil)
	stranger, strangersKey := a.Sign("stranger", until, nil)
	token := clientcmdapi.AuthInfo{Token: "right"}
	for name, test := range map[string]struct {
		cluster clientcmdapi.Cluster
		user    clientcmdapi.AuthInfo
		want    string // part of the error; empty for none
	}{
		"a token":                {clientcmdapi.Cluster{Server: endpoint, CertificateAuthorityData: a.PEM}, token, ""},
		"a wrong token":          {clientcmdapi.Cluster{Server: endpoint, CertificateAuthorityData: a.PEM}, clientcmdapi.AuthInfo{Token: "wrong"}, "the credentials are not accepted"},
		"a client certificate":   {clientcmdapi.Cluster{Server: endpoint, CertificateAuthorityData: a.PEM}, clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}, ""},
		"another's certificate":  {clientcmdapi.Cluster{Server: endpoint, CertificateAuthorityData: a.PEM}, clientcmdapi.AuthInfo{ClientCertificateData: stranger, ClientKeyData: strangersKey}, "the credentials are not accepted"},
		"another authority":      {clientcmdapi.Cluster{Server: endpoint, CertificateAuthorityData: authority.New(t).PEM}, token, "certificate signed by unknown authority"},
		"a name that is not its": {clientcmdapi.Cluster{Server: named, CertificateAuthorityData: a.PEM}, token, "doesn't contain any IP SANs"},
		"a name that is given":   {clientcmdapi.Cluster{Server: named, CertificateAuthorityData: a.PEM, TLSServerName: "api.internal"}, token, ""},
		"nobody there":           {clientcmdapi.Cluster{Server: "https://127.0.0.1:1", CertificateAuthorityData: a.PEM}, token, "connection refused"},
		"something that is no Kubernetes": {
			clientcmdapi.Cluster{Server: a.Serve("127.0.0.1:0", nil, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, local), CertificateAuthorityData: a.PEM},
			token, "no API server of Kubernetes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			access, version, err := askedAs(t, test.cluster, test.user)
			switch {
			case test.want == "" && (err != nil || version != "v1.30.1"):
				t.Errorf("it is %q, %v", version, err)
			case test.want != "" && (err == nil || !strings.Contains(shortly(err), test.want)):
				t.Errorf("the error is %v", err)
			}
			if test.user.ClientCertificateData != nil && !access.Expires.Equal(until) {
				t.Errorf("the certificate ends at %s, want %s", access.Expires, until)
			}
		})
	}
}

func TestAskVersionByIPv6(t *testing.T) {
	a := authority.New(t)
	endpoint := a.Serve("[::1]:0", nil, known, net.IPv6loopback)
	access, version, err := askedAs(t, clientcmdapi.Cluster{Server: endpoint, CertificateAuthorityData: a.PEM}, clientcmdapi.AuthInfo{Token: "right"})
	if err != nil || version != "v1.30.1" || access.Endpoint != endpoint {
		t.Errorf("%s answers %q, %v", access.Endpoint, version, err)
	}
}

// The proxy is the only one that knows where the name of the cluster leads.
func TestAskVersionByProxy(t *testing.T) {
	a := authority.New(t)
	endpoint := a.Serve("127.0.0.1:0", []string{"api.cluster.invalid"}, known)
	var tunnels atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != "api.cluster.invalid:6443" {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		tunnels.Add(1)
		there, err := net.Dial("tcp", strings.TrimPrefix(endpoint, "https://"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		here, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		fmt.Fprint(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			_, _ = io.Copy(there, here)
			_ = there.Close()
		}()
		_, _ = io.Copy(here, there)
		_ = here.Close()
	}))
	t.Cleanup(proxy.Close)
	_, version, err := askedAs(t, clientcmdapi.Cluster{Server: "https://api.cluster.invalid:6443", CertificateAuthorityData: a.PEM, ProxyURL: proxy.URL}, clientcmdapi.AuthInfo{Token: "right"})
	if err != nil || version != "v1.30.1" || tunnels.Load() != 1 {
		t.Errorf("it answers %q, %v, through %d tunnels", version, err, tunnels.Load())
	}
}

// The prober tells of news alone, and asks again soon where there was no answer.
func TestProberTellsOfNews(t *testing.T) {
	a := authority.New(t)
	var away atomic.Bool
	var asked atomic.Int32
	endpoint := a.Serve("127.0.0.1:0", nil, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if away.Load() {
			http.Error(w, "gone", http.StatusServiceUnavailable)
			return
		}
		known(w, r)
	}, net.IPv4(127, 0, 0, 1))
	config := &rest.Config{Host: endpoint, BearerToken: "right", TLSClientConfig: rest.TLSClientConfig{CAData: a.PEM}}
	over, err := guardedConnection(&kubeconfig.Access{Config: config}, authority.Reach, func() {})
	a.Must(err)
	t.Cleanup(over.plain.CloseIdleConnections)
	name := types.NamespacedName{Namespace: "fleet", Name: "prod"}
	news := make(chan types.NamespacedName, 100)
	meters := signals.NewMeters()
	p := NewProber(time.Now, func(name types.NamespacedName) { news <- name }, meters.Probed)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() { _ = p.Start(ctx) }()
	answer := func() (string, error) {
		got := p.Ask(name, over, 20*time.Millisecond, v1alpha1.RemoteClusterStatus{})
		return got.Version, got.Err
	}
	until := func(what string, is func() bool) {
		t.Helper()
		deadline := time.Now().Add(time.Minute)
		for !is() {
			if time.Now().After(deadline) {
				t.Fatal(what + " does not come")
			}
			time.Sleep(time.Millisecond)
		}
	}
	until("the first answer", func() bool { version, err := answer(); return err == nil && version == "v1.30.1" })
	told := len(news)
	before := asked.Load()
	until("five more answers", func() bool { return asked.Load() >= before+5 })
	if now := len(news); now != told {
		t.Errorf("%d more were told, of the same answer", now-told)
	}
	away.Store(true)
	until("the loss", func() bool { _, err := answer(); return err != nil })
	away.Store(false)
	until("the return", func() bool { _, err := answer(); return err == nil })
	if now := len(news); now < told+2 {
		t.Errorf("%d were told of a loss and a return", now-told)
	}
	if got := testutil.CollectAndCount(meters, "strata_remote_cluster_probe_duration_seconds"); got != 2 {
		t.Errorf("%d series of probes, want those that were answered and those that have failed", got)
	}
	p.Stop(name)
	until("an end", func() bool {
		stacks := make([]byte, 1<<20)
		return !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte(".(*Prober).run("))
	})
}

// A cluster of which a watch says that it may not answer is asked at once, whatever its interval,
// and its watches are told at once, too.
func TestDoubtsHaveAClusterBeAsked(t *testing.T) {
	a := authority.New(t)
	var away atomic.Bool
	endpoint := a.Serve("127.0.0.1:0", nil, func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			http.Error(w, "gone", http.StatusServiceUnavailable)
			return
		}
		known(w, r)
	}, net.IPv4(127, 0, 0, 1))
	config := &rest.Config{Host: endpoint, BearerToken: "right", TLSClientConfig: rest.TLSClientConfig{CAData: a.PEM}}
	over, err := guardedConnection(&kubeconfig.Access{Config: config}, authority.Reach, func() {})
	a.Must(err)
	t.Cleanup(over.plain.CloseIdleConnections)
	name := types.NamespacedName{Namespace: "fleet", Name: "prod"}
	p := NewProber(time.Now, func(types.NamespacedName) {}, signals.NewMeters().Probed)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() { _ = p.Start(ctx) }()
	eventually(t, "the first answer", func() bool {
		return p.Ask(name, over, time.Hour, v1alpha1.RemoteClusterStatus{}).Version != ""
	})
	away.Store(true)
	over.doubt(errRefused)
	eventually(t, "the loss", func() bool { return over.Answers() != nil })
	away.Store(false)
	eventually(t, "the return", func() bool { return over.Answers() == nil })
	p.Stop(name)
}

// ofProbes are the metrics that an answer has a series of.
var ofProbes = []string{"strata_remote_cluster_probe_duration_seconds", "strata_remote_cluster_last_seen_timestamp_seconds"}

// An answer that comes when nobody asks any more brings no series back.
func TestLateAnswersAreNotMeasured(t *testing.T) {
	name := types.NamespacedName{Namespace: "fleet", Name: "prod"}
	meters, woken := signals.NewMeters(), 0
	p := NewProber(time.Now, func(types.NamespacedName) { woken++ }, meters.Probed)
	over := &Connection{}
	p.Ask(name, over, time.Hour, v1alpha1.RemoteClusterStatus{})
	late := p.probes[name]
	p.note(name, late, clusters.Answer{Version: "v1.30.1"}, time.Second)
	if got := testutil.CollectAndCount(meters, ofProbes...); got != 2 || woken != 1 {
		t.Fatalf("an answer makes %d series and %d wakeups", got, woken)
	}
	p.Stop(name)
	meters.ForgetCluster(name.String())
	p.note(name, late, clusters.Answer{Version: "v1.30.2"}, time.Second)
	if got := testutil.CollectAndCount(meters, ofProbes...); got != 0 || woken != 1 {
		t.Errorf("a late answer makes %d series and wakes anew, %d in all", got, woken)
	}
}
