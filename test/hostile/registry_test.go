// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/providers/providerstest"
	"github.com/strata-project/strata/test/hostile"
)

// registry answers for each repository what it is told to.
type registry struct {
	*httptest.Server
	// stop ends all answers that go on.
	stop context.CancelFunc
	mu   sync.Mutex
	does map[string]http.HandlerFunc
}

func newRegistry() *registry {
	r := &registry{does: map[string]http.HandlerFunc{}}
	r.Server = httptest.NewUnstartedServer(r)
	ctx, stop := context.WithCancel(context.Background())
	r.stop, r.Config.BaseContext = stop, func(net.Listener) context.Context { return ctx }
	r.Start()
	return r
}

// Close ends all answers, also those that go on for ever.
func (r *registry) Close() {
	r.stop()
	r.CloseClientConnections()
	r.Server.Close()
}

// Host is what images are named by.
func (r *registry) Host() string { return strings.TrimPrefix(r.URL, "http://") }

// Do has it answer so for a repository.
func (r *registry) Do(repository string, answer http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.does[repository] = answer
}

// ServeHTTP answers for the repository that is asked for.
func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	// A connection on which an answer to HEAD goes on is no other request's.
	w.Header().Set("Connection", "close")
	path, _ := strings.CutPrefix(req.URL.Path, "/v2/")
	repository, _, _ := strings.Cut(path, "/")
	r.mu.Lock()
	does := r.does[repository]
	r.mu.Unlock()
	if does == nil {
		does = http.NotFound
	}
	does(w, req)
}

// honestHost is the registry that says what it was given, as images are named by it.
func honestHost() string {
	return strings.TrimSuffix(strings.TrimPrefix(stack.images.URL(""), "oci://"), "/")
}

// plugged is what a provider says of the honest plug-in of an image of the honest registry.
func (m *team) plugged() string {
	m.Helper()
	digest := providerstest.Image(m, honestHost()+"/honest")
	return fmt.Sprintf("  plugin: {image: %q, digest: %q, run: Process, kinds: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: Secret}]}\n",
		"oci://"+honestHost()+"/honest:latest", digest)
}

// Whoever runs a registry answers late, without an end, something else than what was asked for,
// or sends elsewhere. Nothing of that is run, it is said which provider that is about, and plug-ins
// of another registry go on.
func TestHostileRegistry(t *testing.T) {
	t.Parallel()
	evil, good := join(t, tenant, "registry"), join(t, victim, "registry")
	author := newAuthor(evil)
	digest := "sha256:" + fmt.Sprintf("%x", sha256.Sum256([]byte("asked for")))
	manifest := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		w.Header().Set("Docker-Content-Digest", digest)
		_, _ = fmt.Fprint(w, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json"}`)
	}
	attacks := map[string]struct {
		does http.HandlerFunc
		// says is empty where it takes minutes until it is said.
		says string
	}{
		"silent":  {does: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		"slow":    {does: hostile.Slow(time.Second)},
		"endless": {does: hostile.Flood("{", " ", 1<<30), says: "cannot fetch image"},
		"refuses": {does: func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			hostile.Flood("{", " ", 1<<30)(w, r)
		}, says: "403"},
		"other":   {does: manifest, says: "cannot fetch image"},
		"junk":    {does: hostile.Junk, says: "digest mismatch"},
		"nothing": {does: http.NotFound, says: "not found"},
		"circle": {does: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}, says: "the registry has sent elsewhere more than 5 times"},
		"metadata": {does: hostile.Redirect(http.StatusTemporaryRedirect, "http://169.254.169.254/latest/"), says: "which is a link-local address"},
		"loopback": {does: hostile.Redirect(http.StatusTemporaryRedirect, stack.outside.URL()), says: "which is a loopback address"},
		"file":     {does: hostile.Redirect(http.StatusTemporaryRedirect, "file:///etc/passwd"), says: "unsupported protocol"},
	}
	for name, attack := range attacks {
		stack.registry.Do(name, attack.does)
		author.provider("registry-"+name, "registry", fmt.Sprintf("  plugin: {image: %q, digest: %q, run: Process, kinds: [{apiVersion: v1, kind: ConfigMap}]}\n",
			"oci://"+stack.registry.Host()+"/"+name+"/plugin:1.0.0", digest))
	}
	newAuthor(good).provider("registry-honest", "naughty", good.plugged())
	good.claim("beside", "naughty", "  provider: team-a-registry-honest\n")
	good.claimSays("beside", v1alpha1.ReasonBound)
	for name, attack := range attacks {
		if attack.says != "" {
			t.Run(name, func(t *testing.T) { author.within(t).providerSays("registry-"+name, attack.says) })
		}
	}
	good.claim("after", "naughty", "  provider: team-a-registry-honest\n")
	good.claimSays("after", v1alpha1.ReasonBound)
	if dials := stack.outside.dials.Load(); dials > 0 {
		t.Errorf("%d connections were opened to where a registry leads", dials)
	}
	checkMemory(t)
}
