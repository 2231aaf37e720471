// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
)

// What a program reads that runs in a Deployment of Strata's.
const (
	// ListenVariable is the environment variable with the address to listen at, such as :8443.
	ListenVariable = "STRATA_PLUGIN_LISTEN"
	// CertificatesVariable is the one with the folder of CertificateFile, KeyFile and
	// AuthorityFile, whose content is renewed while the program runs.
	CertificatesVariable = "STRATA_PLUGIN_CERTIFICATES"

	// CredentialsVariable is the one with the folder that Credentials returns.
	CredentialsVariable = "STRATA_PLUGIN_CREDENTIALS" //nolint:gosec // it is a name

	// CertificateFile and KeyFile are the program's own, and AuthorityFile has who signs the
	// certificates of those that may ask, all in PEM.
	CertificateFile = "tls.crt"
	KeyFile         = "tls.key"
	AuthorityFile   = "ca.crt"
)

// Credentials returns the folder of the program's own credentials, which has a file for each key
// of the Secret that the provider names; empty where it names none.
func Credentials() string {
	return os.Getenv(CredentialsVariable) //nolint:forbidigo // it is main's place that this has
}

// endTimeout bounds how long questions are answered that are open when the program ends.
const endTimeout = 5 * time.Second

// listen serves a plug-in at an address until the process is told to end. Whoever asks must
// have a certificate of the authority.
func listen(plugin Plugin, address, certificates string) error {
	if certificates == "" {
		return errors.New(CertificatesVariable + " is empty: it must be the folder of the certificates")
	}
	if _, err := serverTLS(certificates); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS13,
		// For each connection, as they are renewed.
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return serverTLS(certificates) },
	}
	server := grpc.NewServer(append(serverOptions(), grpc.Creds(credentials.NewTLS(config)))...)
	pluginv1.RegisterCapabilityPluginServer(server, &service{plugin: plugin})
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	go func() {
		<-ctx.Done()
		timer := time.AfterFunc(endTimeout, server.Stop)
		defer timer.Stop()
		server.GracefulStop()
	}()
	return server.Serve(listener)
}

// serverTLS reads the certificates.
func serverTLS(folder string) (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(filepath.Join(folder, CertificateFile), filepath.Join(folder, KeyFile))
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate: %w", err)
	}
	authority, err := os.ReadFile(filepath.Join(folder, AuthorityFile)) //nolint:gosec // who starts the program names it
	if err != nil {
		return nil, fmt.Errorf("cannot read who may ask: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s has no certificate", AuthorityFile)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
		NextProtos: []string{"h2"},
	}, nil
}
