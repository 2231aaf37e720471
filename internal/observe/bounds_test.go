// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	cryptossh "golang.org/x/crypto/ssh"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/machines"
	"github.com/strata-project/strata/internal/observe"
	"github.com/strata-project/strata/internal/probes"
	"github.com/strata-project/strata/internal/ssh"
	"github.com/strata-project/strata/internal/ssh/sshtest"
)

const hostAddress = "10.0.0.10"

// pair makes a certificate for the host that signs itself, and its key, in PEM.
func pair(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.ParseIP(hostAddress)},
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
func credentials(t *testing.T, certificate, key []byte) string {
	t.Helper()
	admin, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"a": {Server: "https://" + hostAddress + ":6443", CertificateAuthorityData: certificate}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"a": {ClientCertificateData: certificate, ClientKeyData: key}},
		Contexts:       map[string]*clientcmdapi.Context{"a": {Cluster: "a", AuthInfo: "a"}},
		CurrentContext: "a",
	})
	if err != nil {
		t.Fatal(err)
	}
	said := &strings.Builder{}
	for name, content := range map[string][]byte{"admin": admin, "authority": certificate, "etcd.authority": certificate, "etcd.certificate": certificate, "etcd.key": key} {
		fmt.Fprintf(said, "%s=%s\n", name, base64.StdEncoding.EncodeToString(content))
	}
	return said.String() + "end=1\n"
}

// hostileHost looks at a cluster of one host, whose API server and etcd are a function, and
// returns why the cluster was not asked.
func hostileHost(t *testing.T, serve http.HandlerFunc) string {
	t.Helper()
	certificate, key := pair(t)
	server := httptest.NewUnstartedServer(serve)
	both, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{both}}
	server.StartTLS()
	t.Cleanup(server.Close)
	access := credentials(t, certificate, key)
	machine := sshtest.New(t, func(_ string, channel cryptossh.Channel) int {
		script, _ := io.ReadAll(channel)
		if bytes.Contains(script, bytes.TrimSpace(probes.CredentialsScript)) {
			_, _ = io.WriteString(channel, access)
		} else {
			_, _ = io.WriteString(channel, strings.Replace(empty(0), "end=1", "initialised=/etc/kubernetes/kubelet.conf\nend=1", 1))
		}
		return 0
	})
	machine.Forward = func(string) string { return server.Listener.Addr().String() }
	host, port, err := net.SplitHostPort(machine.Address)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := hostclusters.Read(t.Context(), "hosts.yaml", fmt.Appendf(nil, `apiVersion: kraan.io/v1alpha1
kind: HostCluster
metadata: {name: edge, namespace: fleet}
spec:
  version: v1.36.3
  kubelets: {serverTLSBootstrap: true}
  controlPlane: [{name: h-0, address: %s, sshAddress: %s, sshPort: %s}]
`, hostAddress, host, port))
	if err != nil {
		t.Fatal(err)
	}
	pins, err := ssh.OpenPins(filepath.Join(t.TempDir(), "known_hosts"))
	if err != nil {
		t.Fatal(err)
	}
	all := machines.Open(cluster, machines.Access{Auth: []cryptossh.AuthMethod{cryptossh.PublicKeys(machine.User)}, Pins: pins})
	t.Cleanup(all.Close)
	sight, err := observe.Look(t.Context(), observe.Options{Cluster: cluster, Machines: all, HostTime: time.Minute, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return sight.Unasked
}

// packed returns a text as gzip has it. Several one after another are one, too.
func packed(text []byte) []byte {
	to := &bytes.Buffer{}
	writer := gzip.NewWriter(to)
	_, _ = writer.Write(text)
	_ = writer.Close()
	return to.Bytes()
}

// mebibytes of blanks, packed.
var mebibytes = packed(bytes.Repeat([]byte(" "), 8<<20))

// blanks is an answer without an end, of which a little on the wire is much in memory.
func blanks(w http.ResponseWriter, begins string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	_, err := w.Write(packed([]byte(begins)))
	for err == nil {
		_, err = w.Write(mebibytes)
	}
}

// Whoever is root on a host of the control plane decides what its API server and its etcd
// answer. Each answer ends at a limit, in little memory, and it is said which host that was.
func TestAnswersOfHostsAreBounded(t *testing.T) {
	const configMaps, version = "/api/v1/namespaces/kube-system/configmaps/", "v1.36.3"
	good := map[string]string{
		"/readyz":                     "ok",
		configMaps + "kubeadm-config": `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"ClusterConfiguration":"kubernetesVersion: ` + version + `"}}`,
		"/apis/certificates.k8s.io/v1/certificatesigningrequests": `{"kind":"CertificateSigningRequestList","apiVersion":"certificates.k8s.io/v1","items":[]}`,
		"/api/v1/nodes": `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"h-0"}}]}`,
	}
	for name, tc := range map[string]struct {
		path   string
		answer http.HandlerFunc
		want   string
	}{
		"a list":           {"/api/v1/nodes", func(w http.ResponseWriter, _ *http.Request) { blanks(w, `{"kind":"NodeList","items":[`) }, "of more than 32768 KiB"},
		"an object":        {configMaps + "kubeadm-config", func(w http.ResponseWriter, _ *http.Request) { blanks(w, `{"kind":"ConfigMap","data":{`) }, "of more than 3072 KiB"},
		"what was applied": {configMaps + observe.SavedName, func(w http.ResponseWriter, _ *http.Request) { blanks(w, `{"kind":"ConfigMap","data":{`) }, "of more than 3072 KiB"},
		"requests":         {"/apis/certificates.k8s.io/v1/certificatesigningrequests", func(w http.ResponseWriter, _ *http.Request) { blanks(w, `{`) }, "of more than 32768 KiB"},
		"an error": {"/api/v1/nodes", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(http.StatusInternalServerError)
			blanks(w, `{"kind":"Status","message":"`)
		}, "which is not read"},
		"pages": {"/api/v1/nodes", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{"continue":"again"},"items":[{"metadata":{"name":"h-0"}}]}`)
		}, "lists more than 5000 Nodes, which are not read"},
		"large pages": {"/api/v1/nodes", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			for _, part := range [][]byte{
				packed([]byte(`{"kind":"NodeList","apiVersion":"v1","metadata":{"continue":"again"},"items":[{"metadata":{"name":"h-0"}}]`)), mebibytes, mebibytes, packed([]byte("}")),
			} {
				_, _ = w.Write(part)
			}
		}, "lists and watches of more than 65536 KiB"},
		"a redirect": {"/api/v1/nodes", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, "redirect"},
		"etcd": {"/v3/cluster/member/list", func(w http.ResponseWriter, _ *http.Request) { blanks(w, `{"members":[`) }, "of more than 1024 KiB"},
		"etcd sends elsewhere": {"/v3/cluster/member/list", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, "it answers 307"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			said := hostileHost(t, func(w http.ResponseWriter, r *http.Request) {
				text, known := good[r.URL.Path]
				switch {
				case r.URL.Path == tc.path:
					tc.answer(w, r)
				case known:
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, text)
				default:
					http.NotFound(w, r)
				}
			})
			runtime.ReadMemStats(&after)
			if !strings.Contains(said, "h-0") || !strings.Contains(said, tc.want) {
				t.Errorf("the cluster was not asked for %q, want h-0 and %q", said, tc.want)
			}
			if taken := (after.TotalAlloc - before.TotalAlloc) >> 20; taken > 1024 {
				t.Errorf("it took %d MiB", taken)
			}
		})
	}
}
