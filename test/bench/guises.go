// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// systemPath is where a cluster says which one it is.
const systemPath = "/api/v1/namespaces/kube-system"

// guises answer as the clusters of a fleet, all of which one API server stands in
// for: each has a path, and an identity of its own. All else is that server's.
type guises struct {
	server *httptest.Server
	proxy  *httputil.ReverseProxy

	mu sync.Mutex
	// annotations of the namespace by which each cluster is known.
	annotations map[string]map[string]string
}

// newGuises serves the clusters before an API server, for whoever has credentials of
// that.
func newGuises(target *rest.Config) (*guises, error) {
	at, err := url.Parse(target.Host)
	if err != nil {
		return nil, fmt.Errorf("cannot use the address of the API server: %w", err)
	}
	anonymous := rest.AnonymousClientConfig(target)
	// This program does not bound who asks, and how often.
	anonymous.QPS = -1
	transport, err := rest.TransportFor(anonymous)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the API server: %w", err)
	}
	g := &guises{annotations: map[string]map[string]string{}}
	g.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }, Transport: transport, FlushInterval: -1,
	}
	g.server = httptest.NewUnstartedServer(g)
	g.server.EnableHTTP2 = true
	g.server.StartTLS()
	return g, nil
}

// of returns the address of a cluster, and the certificate of who answers there.
func (g *guises) of(cluster string) (server string, authority []byte) {
	return g.server.URL + "/" + cluster, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.server.Certificate().Raw})
}

func (g *guises) close() error {
	g.server.CloseClientConnections()
	g.server.Close()
	return nil
}

// ServeHTTP answers as the cluster that the path begins with.
func (g *guises) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	cluster, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	r.URL.Path, r.URL.RawPath = "/"+path, ""
	if r.URL.Path == systemPath {
		g.system(w, r, cluster)
		return
	}
	g.proxy.ServeHTTP(w, r)
}

// system answers for the namespace by which a cluster is known.
func (g *guises) system(w http.ResponseWriter, r *http.Request, cluster string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.Method == http.MethodPatch {
		var patch struct {
			Metadata struct {
				Annotations map[string]*string `json:"annotations"`
			} `json:"metadata"`
		}
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if g.annotations[cluster] == nil {
			g.annotations[cluster] = map[string]string{}
		}
		for key, value := range patch.Metadata.Annotations {
			delete(g.annotations[cluster], key)
			if value != nil {
				g.annotations[cluster][key] = *value
			}
		}
	}
	found := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}}
	found.Name, found.UID, found.ResourceVersion = "kube-system", types.UID("stand-in-"+cluster), "1"
	found.Annotations = maps.Clone(g.annotations[cluster])
	w.Header().Set("Content-Type", jsonType)
	_ = json.NewEncoder(w).Encode(found) // who asked has gone otherwise
}
