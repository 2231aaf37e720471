// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/clusters"
	"github.com/strata-project/strata/test/authority"
)

// reachTests lets clusters be where those of the tests are.
var reachTests = authority.Reach

// guise is the tests' API server in the guise of another cluster: it says another
// identity, has a claim of its own, and notes what is written through it.
type guise struct {
	*authority.Authority
	endpoint string

	mu       sync.Mutex
	uid, hub string
	writes   []string

	dead atomic.Bool
}

// newGuise serves a cluster of a UID, which a hub has claimed or nobody.
func (f *fixture) newGuise(uid, hub string) *guise {
	f.Helper()
	g := &guise{Authority: authority.New(f.T), uid: uid, hub: hub}
	proxy := f.proxyTo(plane.Config())
	g.endpoint = g.Serve("127.0.0.1:0", nil, func(w http.ResponseWriter, r *http.Request) {
		if g.dead.Load() {
			panic(http.ErrAbortHandler)
		}
		if r.URL.Path == "/api/v1/namespaces/"+clusters.SystemNamespace {
			g.system(w, r)
			return
		}
		if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "authorization.k8s.io") {
			g.mu.Lock()
			g.writes = append(g.writes, r.Method+" "+r.URL.Path)
			g.mu.Unlock()
		}
		proxy.ServeHTTP(w, r)
	}, net.IPv4(127, 0, 0, 1))
	return g
}

// proxyTo passes requests on to an API server, by the rights of a configuration.
func (f *fixture) proxyTo(config *rest.Config) http.Handler {
	f.Helper()
	transport, err := rest.TransportFor(config)
	f.must(err)
	target, err := url.Parse(config.Host)
	f.must(err)
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Header.Del("Authorization") },
		Transport: transport, FlushInterval: -1,
	}
}

// system answers for the namespace kube-system.
func (g *guise) system(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.Method == http.MethodPatch {
		var patch struct {
			Metadata struct {
				UID         string
				Annotations map[string]*string
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil || patch.Metadata.UID != g.uid {
			http.Error(w, "conflict", http.StatusConflict)
			return
		}
		g.hub = ""
		if hub := patch.Metadata.Annotations[v1alpha1.HubAnnotation]; hub != nil {
			g.hub = *hub
		}
		g.writes = append(g.writes, "claims for "+g.hub)
	}
	found := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}}
	found.Name, found.UID, found.ResourceVersion = clusters.SystemNamespace, types.UID(g.uid), "1"
	if g.hub != "" {
		found.Annotations = map[string]string{v1alpha1.HubAnnotation: g.hub}
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(found); err != nil {
		g.Error(err)
	}
}

// written returns what was written through it.
func (g *guise) written() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.writes...)
}

func (g *guise) claimedFor() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hub
}

func (g *guise) kubeconfig() []byte {
	g.Helper()
	return g.KubeConfigFor(g.endpoint)
}
