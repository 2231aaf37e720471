// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// Downloads counts the artifacts that are fetched from source-controller. It
// is a proxy on loopback in front of the storage, at the address that the
// sources' statuses name. It is safe for concurrent use.
type Downloads struct {
	storage  string
	listener net.Listener
	server   *http.Server
	ended    chan error

	mu    sync.Mutex
	paths map[string]int
}

// CountDownloads starts a proxy in front of the storage at a free address of
// this machine, which source-controller takes with the arguments of Args.
// Close ends it.
func CountDownloads(storage string) (*Downloads, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for downloads: %w", err)
	}
	d := &Downloads{storage: storage, listener: listener, ended: make(chan error, 1), paths: map[string]int{}}
	target := &url.URL{Scheme: "http", Host: storage}
	d.server = &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: &httputil.ReverseProxy{
			Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
			ModifyResponse: d.count,
			// The client is told that nothing answers; that is enough.
			ErrorLog: log.New(io.Discard, "", 0),
		},
	}
	go func() { d.ended <- d.server.Serve(listener) }()
	return d, nil
}

// Addr returns the address of the proxy.
func (d *Downloads) Addr() string { return d.listener.Addr().String() }

// Args returns the arguments of source-controller that make it serve its
// storage behind the proxy.
func (d *Downloads) Args() []string {
	return []string{"--storage-addr=" + d.storage, "--storage-adv-addr=" + d.Addr()}
}

// count counts an answer that holds an artifact.
func (d *Downloads) count(response *http.Response) error {
	if response.Request.Method == http.MethodGet && response.StatusCode == http.StatusOK {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.paths[response.Request.URL.Path]++
	}
	return nil
}

// Total returns how many artifacts have been fetched.
func (d *Downloads) Total() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	total := 0
	for _, n := range d.paths {
		total += n
	}
	return total
}

// ByPath returns how often each artifact has been fetched, by its path in the
// storage.
func (d *Downloads) ByPath() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.paths)
}

// Close ends the proxy and what is fetched through it.
func (d *Downloads) Close() error {
	err := d.server.Close()
	if ended := <-d.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	if err != nil {
		return fmt.Errorf("cannot end the count of downloads: %w", err)
	}
	return nil
}
