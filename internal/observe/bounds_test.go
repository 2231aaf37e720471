// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/machines"
	"github.com/strata-project/strata/internal/observe"
	"github.com/strata-project/strata/internal/ssh"
	"github.com/strata-project/strata/test/hostile/root"
)

// hostileHost looks at a cluster of one host, whose API server and etcd are a function, and
// returns why the cluster was not asked.
func hostileHost(t *testing.T, serve http.HandlerFunc) string {
	t.Helper()
	machine := root.NewHost(t)
	machine.Serve(serve)
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
`, root.HostAddress, host, port))
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
	return sight.NotQueried
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
