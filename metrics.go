// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"

	"github.com/fluxcd/pkg/runtime/pprof"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// The files of --metrics-cert-dir have the names that Kubernetes gives the keys of
// a Secret with a certificate.
const (
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
)

// metricsOptions says where metrics and profiles are served, and to whom. It fails
// where --metrics-cert-dir holds no certificate.
func (o *options) metricsOptions() (metricsserver.Options, error) {
	serving := metricsserver.Options{BindAddress: o.metricsAddr}
	if o.pprof {
		serving.ExtraHandlers = pprof.GetHandlers()
	}
	if !o.metricsSecure {
		return serving, nil
	}
	serving.SecureServing = true
	// The filter stands before the profiles, too. It asks about the path of each
	// request, so that who may get /metrics may not get profiles because of that.
	serving.FilterProvider = filters.WithAuthenticationAndAuthorization
	serving.TLSOpts = []func(*tls.Config){withoutHTTP2}
	if o.metricsCertDir == "" {
		return serving, nil
	}
	// The server would take a certificate of its own where a file is missing, and
	// whoever checks the one that was given would see the metrics end.
	certificate, key := filepath.Join(o.metricsCertDir, certificateFile), filepath.Join(o.metricsCertDir, keyFile)
	if _, err := tls.LoadX509KeyPair(certificate, key); err != nil {
		return serving, fmt.Errorf("--metrics-cert-dir has no certificate: %w", err)
	}
	serving.CertDir, serving.CertName, serving.KeyName = o.metricsCertDir, certificateFile, keyFile
	return serving, nil
}

// withoutHTTP2 leaves HTTP/1.1 alone. Whoever reaches the port speaks to the server
// before the filter knows them, and one connection of HTTP/2 carries any number of
// requests side by side.
func withoutHTTP2(config *tls.Config) {
	config.NextProtos = []string{"http/1.1"}
}

// isLoopback tells whether an address to listen at can be reached from this machine,
// or this Pod, alone.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
