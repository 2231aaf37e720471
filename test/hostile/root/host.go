// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package root has hosts whose root does what it likes.
package root

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	cryptossh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	"google.golang.org/grpc"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/probes"
	"github.com/strata-project/strata/internal/ssh/sshtest"
	"github.com/strata-project/strata/test/hostile"
)

const (
	// HostName is the name of each Host.
	HostName = "h-0"
	// HostAddress is its address beside other hosts.
	HostAddress = "10.0.0.10"
	// HostVersion is the version of Kubernetes that it has.
	HostVersion = "v1.36.3"
)

// Host is the only host of a control plane, with its SSH server, its API server and its etcd,
// whose root decides what each of them says. Until it is told to do harm it is the healthy host
// of a cluster that somebody has made.
type Host struct {
	*sshtest.Machine
	// Identity is the private key that it lets in, in OpenSSH's form.
	Identity []byte
	// ID and Manager of the cluster, and Spec that was last applied.
	ID, Manager string
	Spec        v1alpha1.HostClusterSpec
	// Etcd plays its member of etcd; nil for none that is asked by gRPC.
	Etcd *Member
	// Locked is what it says of its lock; empty for that it is locked.
	Locked string

	access string
	server *httptest.Server
	mu     sync.Mutex
	does   map[string]http.HandlerFunc
	all    http.HandlerFunc
	says   func(script []byte, honest string) (string, bool)
}

// NewHost starts one, until the test ends. Nobody has made a cluster of it.
func NewHost(t testing.TB) *Host {
	t.Helper()
	h := &Host{does: map[string]http.HandlerFunc{}}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := cryptossh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	h.Identity = pem.EncodeToMemory(block)
	certificate, key := pair(t)
	h.access = credentials(t, certificate, key)
	both, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	h.server = httptest.NewUnstartedServer(h)
	h.server.EnableHTTP2 = true
	h.server.TLS = &tls.Config{Certificates: []tls.Certificate{both}, MinVersion: tls.VersionTLS12}
	h.server.StartTLS()
	t.Cleanup(func() {
		h.server.CloseClientConnections()
		h.server.Close()
	})
	h.Machine = sshtest.New(t, h.command)
	if h.User, err = cryptossh.NewSignerFromKey(private); err != nil {
		t.Fatal(err)
	}
	h.Forward = func(string) string { return h.server.Listener.Addr().String() }
	return h
}

// KnownHosts is the line by which its key is known.
func (h *Host) KnownHosts() []byte {
	return []byte(knownhosts.Line([]string{h.Address}, h.Host.PublicKey()) + "\n")
}

// Serve has a function be its API server and its etcd.
func (h *Host) Serve(answer http.HandlerFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = answer
}

// Change changes what it says of itself, also while it is asked.
func (h *Host) Change(how func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	how()
}

// Do has its API server and its etcd answer so at a path.
func (h *Host) Do(path string, answer http.HandlerFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.does[path] = answer
}

// Say has commands over SSH be answered so: by what a function returns of the script and the
// honest answer, and for ever again where it says so.
func (h *Host) Say(how func(script []byte, honest string) (answer string, again bool)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.says = how
}

// command plays what is run over SSH.
func (h *Host) command(line string, channel cryptossh.Channel) int {
	if strings.HasPrefix(line, sshtest.Held) {
		return h.lock(channel)
	}
	script, _ := io.ReadAll(channel)
	var honest string
	status := 0
	switch {
	case bytes.Contains(script, bytes.TrimSpace(probes.CredentialsScript)):
		honest = h.access
	case bytes.Contains(script, bytes.TrimSpace(probes.Script)):
		honest = h.facts()
	default: // an action
		honest, status = "strata: failed: nothing is done here\n", 1
	}
	h.mu.Lock()
	says := h.says
	h.mu.Unlock()
	if says == nil {
		_, _ = io.WriteString(channel, honest)
		return status
	}
	said, again := says(script, honest)
	for {
		if _, err := io.WriteString(channel, said); err != nil || !again {
			return status
		}
	}
}

// lock lets itself be locked until whoever does that goes.
func (h *Host) lock(channel cryptossh.Channel) int {
	_, _ = io.WriteString(channel, cmp.Or(h.Locked, "locked \n"))
	_, _ = io.Copy(io.Discard, channel)
	return 0
}

// facts is what the host says of itself.
func (h *Host) facts() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	said := &strings.Builder{}
	fmt.Fprintf(said, "user=0\nhostname=%s\nkernel=6.1.0\nmachine=x86_64\ntime=%d\nos=debian 12\ncgroup=cgroup2fs\nswap=0\nmemory=8000000\nfree=80000000\n",
		HostName, time.Now().Unix())
	said.WriteString("initialised=/etc/kubernetes/kubelet.conf\nunit.kubelet=loaded active running\nunit.containerd=loaded active running\n")
	fmt.Fprintf(said, "version.kubelet=Kubernetes %[1]s\nversion.kubeadm=%[1]s\n", HostVersion)
	said.WriteString("version.containerd=containerd github.com/containerd/containerd v2.2.0 x\n")
	if h.ID != "" {
		fmt.Fprintf(said, "journal={\"cluster\":%q,\"action\":\"Init\",\"version\":%q,\"ended\":true}\n", h.ID, HostVersion)
	}
	return said.String() + "end=1\n"
}

// ServeHTTP answers as its API server, and as the gateway and the member of its etcd.
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	does, all := h.does[r.URL.Path], h.all
	h.mu.Unlock()
	switch {
	case all != nil:
		all(w, r)
	case does != nil:
		does(w, r)
	case strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") && h.Etcd != nil:
		server := grpc.NewServer()
		h.Etcd.Register(server)
		server.ServeHTTP(w, r)
	default:
		h.honest(w, r)
	}
}

// honest answers as the servers of a healthy host do.
func (h *Host) honest(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	const configMaps, leases = "/api/v1/namespaces/kube-system/configmaps/", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
	switch path := r.URL.Path; {
	case path == "/readyz":
		_, _ = io.WriteString(w, "ok")
	case path == configMaps+"kubeadm-config":
		configMap(w, "kubeadm-config", map[string]string{"ClusterConfiguration": "kubernetesVersion: " + HostVersion})
	case path == configMaps+"strata-hostcluster" && h.ID != "":
		spec, _ := json.Marshal(h.Spec)
		configMap(w, "strata-hostcluster", map[string]string{"id": h.ID, "manager": h.Manager, "spec": string(spec)})
	case path == "/api/v1/nodes":
		text(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"`+HostName+`"},
			"spec":{"taints":[{"key":"node-role.kubernetes.io/control-plane","effect":"NoSchedule"}]},
			"status":{"conditions":[{"type":"Ready","status":"True"}]}}]}`)
	case path == "/v3/cluster/member/list":
		text(w, `{"members":[{"ID":"1","name":"`+HostName+`","peerURLs":["https://`+HostAddress+`:2380"]}]}`)
	case path == "/health":
		text(w, `{"health":"true"}`)
	case strings.HasPrefix(path, leases) && r.Method != http.MethodGet:
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		_, _ = io.Copy(w, r.Body)
	default:
		hostile.Failure(http.StatusNotFound, "NotFound", "there is none")(w, r)
	}
}

func text(w http.ResponseWriter, answer string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, answer)
}

func configMap(w http.ResponseWriter, name string, data map[string]string) {
	said, _ := json.Marshal(map[string]any{
		"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]string{"name": name, "namespace": "kube-system"}, "data": data,
	})
	text(w, string(said))
}

// pair makes a certificate for the host that signs itself, and its key, in PEM.
func pair(t testing.TB) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.ParseIP(HostAddress)},
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	written, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: written})
}

// credentials is what a host answers that has a cluster with one certificate for everything.
func credentials(t testing.TB, certificate, key []byte) string {
	t.Helper()
	admin, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"a": {Server: "https://" + HostAddress + ":6443", CertificateAuthorityData: certificate}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"a": {ClientCertificateData: certificate, ClientKeyData: key}},
		Contexts:       map[string]*clientcmdapi.Context{"a": {Cluster: "a", AuthInfo: "a"}},
		CurrentContext: "a",
	})
	if err != nil {
		t.Fatal(err)
	}
	said := &strings.Builder{}
	for name, content := range map[string][]byte{
		"admin": admin, "authority": certificate, "etcd.authority": certificate, "etcd.certificate": certificate, "etcd.key": key,
	} {
		fmt.Fprintf(said, "%s=%s\n", name, base64.StdEncoding.EncodeToString(content))
	}
	return said.String() + "end=1\n"
}
