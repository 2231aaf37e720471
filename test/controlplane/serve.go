// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

// EnvHost names this machine as a cluster elsewhere reaches it. The Git and
// chart servers then listen on all interfaces; otherwise on loopback only.
const EnvHost = "STRATA_E2E_HOST"

// server is an HTTP server that can go away and come back at its address.
type server struct {
	handler http.Handler
	listen  string
	host    string
	port    port

	mu   sync.Mutex
	http *http.Server
}

func newServer(handler http.Handler) (*server, error) {
	p, err := reservePort()
	if err != nil {
		return nil, err
	}
	s := &server{handler: handler, listen: p.address(), host: p.address(), port: p}
	if host := os.Getenv(EnvHost); host != "" {
		number := strconv.Itoa(p.number)
		s.listen = net.JoinHostPort("", number)
		s.host = net.JoinHostPort(host, number)
	}
	if err := s.Start(); err != nil {
		p.release()
		return nil, err
	}
	return s, nil
}

// URL returns the server's root, without a slash at the end.
func (s *server) URL() string { return "http://" + s.host }

// Start serves again after Stop, at the same address. It does nothing to a
// server that runs.
func (s *server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http != nil {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", s.listen)
	if err != nil {
		return fmt.Errorf("cannot serve: %w", err)
	}
	s.http = &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second}
	go func(h *http.Server) { _ = h.Serve(listener) }(s.http)
	return nil
}

// Stop refuses connections, and cuts those that are open, until Start is
// called. What is served is kept.
func (s *server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http == nil {
		return nil
	}
	err := s.http.Close()
	s.http = nil
	return err
}

// close stops the server for good and removes its folder.
func (s *server) close(dir string) error {
	err := s.Stop()
	s.port.release()
	return errors.Join(err, os.RemoveAll(dir))
}
