// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package authority signs certificates for servers of tests that are taken for API
// servers, and for their users.
package authority

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/strata-project/strata/internal/reach"
)

// Reach lets clusters be where the servers of tests are.
var Reach = reach.Allowed{
	Ranges: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}, Hosts: []string{"*.cluster.invalid"},
}

// Authority signs certificates.
type Authority struct {
	*testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	// PEM is its own certificate.
	PEM []byte
}

// New makes an authority for the time of a test.
func New(t *testing.T) *Authority {
	t.Helper()
	a := &Authority{T: t}
	a.certificate = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = a.newKey()
	der, err := x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, &a.key.PublicKey, a.key)
	a.Must(err)
	a.PEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// Must ends the test with an error.
func (a *Authority) Must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

func (a *Authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.Must(err)
	return key
}

// Sign returns a certificate and its key, for a user, or for names and addresses.
func (a *Authority) Sign(name string, until time.Time, names []string, addresses ...net.IP) (certificate, key []byte) {
	a.Helper()
	private := a.newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: until, DNSNames: names, IPAddresses: addresses,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &private.PublicKey, a.key)
	a.Must(err)
	encoded, err := x509.MarshalECPrivateKey(private)
	a.Must(err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

// Serve answers as an API server on an address that it has a certificate for, and
// returns where.
func (a *Authority) Serve(listen string, names []string, answer http.HandlerFunc, addresses ...net.IP) string {
	a.Helper()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		a.Skipf("this machine has no address %s: %v", listen, err)
	}
	certificate, key := a.Sign("server", time.Now().Add(time.Hour), names, addresses...)
	pair, err := tls.X509KeyPair(certificate, key)
	a.Must(err)
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(a.PEM)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: answer, ReadHeaderTimeout: time.Minute}}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS12}
	ctx, stop := context.WithCancel(context.Background())
	server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	server.StartTLS()
	a.Cleanup(func() {
		stop() // a watch would go on for ever
		server.Close()
	})
	return "https://" + listener.Addr().String()
}

// KubeConfigFor leads to a server of the authority, with a token.
func (a *Authority) KubeConfigFor(endpoint string) []byte {
	a.Helper()
	data, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "it", Contexts: map[string]*clientcmdapi.Context{"it": {Cluster: "it", AuthInfo: "it"}},
		Clusters:  map[string]*clientcmdapi.Cluster{"it": {Server: endpoint, CertificateAuthorityData: a.PEM}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"it": {Token: "right"}},
	})
	a.Must(err)
	return data
}
