// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostile has servers that do what servers should not. They listen on
// loopback, and count who comes.
package hostile

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Token is the bearer token in the kubeconfigs of an APIServer.
const Token = "right"

// APIServer answers as an API server that has nothing, until it is told to do harm.
// It is safe for concurrent use.
type APIServer struct {
	server *httptest.Server
	dials  atomic.Int64
	// stop ends all answers that go on.
	stop context.CancelFunc

	mu    sync.Mutex
	does  map[string]http.HandlerFunc
	asked map[string]int
	last  map[string]http.Header
	// annotations of its namespace kube-system.
	annotations map[string]string
}

// Start returns one that listens. Close it.
func Start() *APIServer {
	s := &APIServer{does: map[string]http.HandlerFunc{}, asked: map[string]int{}, last: map[string]http.Header{}}
	s.server = httptest.NewUnstartedServer(s)
	s.server.EnableHTTP2 = true
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	s.server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.dials.Add(1)
		}
	}
	s.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	s.server.StartTLS()
	return s
}

// Close ends all answers and connections, also of those who connect meanwhile.
func (s *APIServer) Close() {
	s.stop()
	s.server.CloseClientConnections()
	s.server.Close()
}

// URL is where it listens.
func (s *APIServer) URL() string { return s.server.URL }

// UID is what it says its namespace kube-system has; no two have the same.
func (s *APIServer) UID() string {
	return "uid-of-" + strings.NewReplacer("https://", "", ".", "-", ":", "-").Replace(s.URL())
}

// Authority returns the certificate that vouches for it.
func (s *APIServer) Authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
}

// Kubeconfig returns one that leads to it; change alters what it says.
func (s *APIServer) Kubeconfig(change ...func(*clientcmdapi.Cluster)) ([]byte, error) {
	cluster := &clientcmdapi.Cluster{Server: s.URL(), CertificateAuthorityData: s.Authority()}
	for _, alter := range change {
		alter(cluster)
	}
	return clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "it", Contexts: map[string]*clientcmdapi.Context{"it": {Cluster: "it", AuthInfo: "it"}},
		Clusters:  map[string]*clientcmdapi.Cluster{"it": cluster},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"it": {Token: Token}},
	})
}

// Do has it answer so what is asked for at a path: of one that ends with a slash,
// everything below. The longest path counts; watches of a list have ?watch behind
// it. Without an answer it is harmless there again.
func (s *APIServer) Do(path string, answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer == nil {
		delete(s.does, path)
		return
	}
	s.does[path] = answer
}

// Dials returns how many connections were opened.
func (s *APIServer) Dials() int64 { return s.dials.Load() }

// Asked returns how often a path was asked for.
func (s *APIServer) Asked(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

// Header returns what the last request for a path had in a header.
func (s *APIServer) Header(path, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[path].Get(name)
}

// ServeHTTP does what it was told to.
func (s *APIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(r.URL.Path, "/")
	if r.URL.Query().Get("watch") != "" {
		path += "?watch"
	}
	s.mu.Lock()
	s.asked[path]++
	s.last[path] = r.Header.Clone()
	answer, length := http.HandlerFunc(s.harmless), -1
	for at, does := range s.does {
		if len(at) > length && (at == path || strings.HasSuffix(at, "/") && strings.HasPrefix(path+"/", at)) {
			answer, length = does, len(at)
		}
	}
	s.mu.Unlock()
	answer(w, r)
}

// harmless answers as an API server with no objects but the namespace that says
// which cluster it is.
func (s *APIServer) harmless(w http.ResponseWriter, r *http.Request) {
	path := strings.Trim(r.URL.Path, "/")
	parts := strings.Split(path, "/")
	switch {
	case path == "version":
		Version("v1.30.1")(w, r)
	case path == "api":
		text(w, http.StatusOK, `{"kind":"APIVersions","apiVersion":"v1","versions":["v1"]}`)
	case path == "apis":
		text(w, http.StatusOK, `{"kind":"APIGroupList","apiVersion":"v1","groups":[`+group+`]}`)
	case path == "apis/apiextensions.k8s.io":
		text(w, http.StatusOK, group)
	case path == "api/v1":
		text(w, http.StatusOK, kinds("v1", `{"name":"namespaces","kind":"Namespace","namespaced":false,`+verbs+`},
			{"name":"configmaps","kind":"ConfigMap","namespaced":true,`+verbs+`},{"name":"secrets","kind":"Secret","namespaced":true,`+verbs+`}`))
	case path == "apis/apiextensions.k8s.io/v1":
		text(
			w,
			http.StatusOK,
			kinds("apiextensions.k8s.io/v1", `{"name":"customresourcedefinitions","kind":"CustomResourceDefinition","namespaced":false,`+verbs+`}`),
		)
	case path == "api/v1/namespaces/kube-system":
		s.system(w, r)
	case r.Method != http.MethodGet:
		_, _ = io.Copy(w, r.Body)
	case r.URL.Query().Get("watch") != "":
		Silent(w, r)
	case len(parts) > 2 && isPlural(parts[len(parts)-1]):
		text(w, http.StatusOK, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
	default:
		Failure(http.StatusNotFound, "NotFound", "there is none")(w, r)
	}
}

// system answers with the namespace that says which cluster it is, and keeps the
// annotations that are written to it.
func (s *APIServer) system(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodPatch {
		var patch struct {
			Metadata struct{ Annotations map[string]string }
		}
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
			Failure(http.StatusBadRequest, "BadRequest", "this is no patch")(w, r)
			return
		}
		s.annotations = patch.Metadata.Annotations
	}
	said, _ := json.Marshal(map[string]any{"kind": "Namespace", "apiVersion": "v1", "metadata": map[string]any{
		"name": "kube-system", "uid": s.UID(), "resourceVersion": "1", "annotations": s.annotations,
	}})
	text(w, http.StatusOK, string(said))
}

const (
	verbs = `"verbs":["get","list","watch","create","patch","delete"]`
	group = `{"kind":"APIGroup","apiVersion":"v1","name":"apiextensions.k8s.io","versions":[{"groupVersion":"apiextensions.k8s.io/v1","version":"v1"}],
		"preferredVersion":{"groupVersion":"apiextensions.k8s.io/v1","version":"v1"}}`
)

func kinds(version, resources string) string {
	return `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"` + version + `","resources":[` + resources + `]}`
}

func isPlural(name string) bool {
	switch name {
	case "namespaces", "configmaps", "secrets", "customresourcedefinitions":
		return true
	}
	return false
}

func text(w http.ResponseWriter, code int, answer string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, answer)
}

// Redirect sends elsewhere.
func Redirect(code int, to string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(code)
	}
}

// Version says that it is of one version after the other, and stays with the last.
func Version(versions ...string) http.HandlerFunc {
	var asked atomic.Int64
	return func(w http.ResponseWriter, _ *http.Request) {
		said, _ := json.Marshal(map[string]string{"gitVersion": versions[min(int(asked.Add(1)), len(versions))-1]})
		text(w, http.StatusOK, string(said))
	}
}

// Failure refuses with a Status.
func Failure(code int, reason, message string) http.HandlerFunc {
	said, _ := json.Marshal(map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": message,
	})
	return func(w http.ResponseWriter, _ *http.Request) { text(w, code, string(said)) }
}

// Flood begins with a text, and goes on with as many bytes of a filling, in gzip
// where the client takes that.
func Flood(begin, filling string, size int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		out := io.Writer(w)
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			packed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
			defer func() { _ = packed.Close() }()
			out = packed
		}
		_, _ = io.WriteString(out, begin)
		// As bytes: a text would be copied by each write, and who measures what reading
		// takes, in the same process, would count that.
		chunk := []byte(strings.Repeat(filling, max(1, (64<<10)/len(filling))))
		for sent := int64(0); sent < size && r.Context().Err() == nil; sent += int64(len(chunk)) {
			if _, err := out.Write(chunk); err != nil {
				return
			}
		}
	}
}

// Slow answers a byte now and then, for ever.
func Slow(pause time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for {
			_, _ = io.WriteString(w, " ")
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(pause):
			}
		}
	}
}

// Junk answers with what is nothing.
func Junk(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, "\x00\xff{\"kind\":[[\x1b[31m")
}

// Silent is a watch on which nothing happens.
func Silent(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// Object is an object of a list or an event, of about a size.
func Object(version, kind, name string, size int) string {
	return `{"apiVersion":"` + version + `","kind":"` + kind + `","metadata":{"name":"` + name + `","uid":"uid-of-` + name +
		`","resourceVersion":"2","annotations":{"a":"` + strings.Repeat("a", size) + `"}}}`
}

// EndlessList is a list each page of which names another one; item returns the only
// object of a page.
func EndlessList(item func(page int64) string) http.HandlerFunc {
	var pages atomic.Int64
	return func(w http.ResponseWriter, _ *http.Request) {
		page := pages.Add(1)
		text(w, http.StatusOK, fmt.Sprintf(`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":"%d"},"items":[%s]}`, page, item(page)))
	}
}

// Events is a watch of one event after the other, as fast as they are read; item
// returns the object of each, and nothing for the end.
func Events(item func(event int64) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for event := int64(1); r.Context().Err() == nil; event++ {
			object := item(event)
			if object == "" {
				return
			}
			if _, err := fmt.Fprintf(w, "{\"type\":\"ADDED\",\"object\":%s}\n", object); err != nil {
				return
			}
		}
	}
}
