// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package reach_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/strata-project/strata/internal/reach"
)

// A server that speaks both is spoken to by HTTP/1.1: requests that are under way at
// the same time have a connection each, and leave it for the next ones.
func TestRequestsHomeShareNoConnection(t *testing.T) {
	var mu sync.Mutex
	used := map[string]int{}
	const together = 4
	var met sync.WaitGroup
	met.Add(together)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		used[r.Proto+" "+r.RemoteAddr]++
		mu.Unlock()
		if r.URL.Path == "/together" {
			met.Done()
			met.Wait()
		}
		_, _ = io.WriteString(w, "ok")
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	reach.Home(config)
	web, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(web.CloseIdleConnections)
	get := func(path string) error {
		answer, err := web.Get(server.URL + path)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		return err
	}
	var group errgroup.Group
	for range together {
		group.Go(func() error { return get("/together") })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for range 2 * together {
		if err := get("/after"); err != nil {
			t.Fatal(err)
		}
	}
	if len(used) != together {
		t.Errorf("%d connections for %d requests at the same time: %v", len(used), together, used)
	}
	for connection := range used {
		if connection[:9] != "HTTP/1.1 " {
			t.Errorf("a request came by %s", connection)
		}
	}
}
