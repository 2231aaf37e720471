// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// user is an identity that kube-apiserver knows by a static token.
type user struct {
	name  string
	group string
	token string
}

const masters = "system:masters"

// pki holds the keys, certificates and tokens of one control plane.
type pki struct {
	dir   string
	ca    []byte // PEM
	users map[string]user
	// authority signs the certificates of servers and of clients.
	authority    *x509.Certificate
	authorityKey *ecdsa.PrivateKey
}

func (p *pki) file(name string) string { return filepath.Join(p.dir, name) }

// newPKI writes the material that the servers read into dir.
func newPKI(dir string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	p := &pki{dir: dir, users: map[string]user{}}
	if err := p.writeServing(); err != nil {
		return nil, fmt.Errorf("cannot make the serving certificate: %w", err)
	}
	if err := p.writeServiceAccountKey(); err != nil {
		return nil, fmt.Errorf("cannot make the service account key: %w", err)
	}
	if err := p.writeTokens(); err != nil {
		return nil, fmt.Errorf("cannot make the tokens: %w", err)
	}
	return p, nil
}

// writeServing makes a certificate authority, and one certificate for
// 127.0.0.1 that all servers share.
func (p *pki) writeServing() error {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca := certificate(1, "strata-tests-ca")
	ca.IsCA = true
	ca.BasicConstraintsValid = true
	ca.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return err
	}
	p.authority, p.authorityKey, p.ca = ca, caKey, encodePEM("CERTIFICATE", caDER)
	if err := os.WriteFile(p.file("ca.crt"), p.ca, 0o600); err != nil {
		return err
	}
	serving := certificate(2, "localhost")
	serving.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	serving.DNSNames = []string{"localhost"}
	serving.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	made, key, err := p.issue(serving)
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.file("serving.crt"), made, 0o600); err != nil {
		return err
	}
	return os.WriteFile(p.file("serving.key"), key, 0o600)
}

// issue signs a certificate with a key of its own, and returns both as PEM.
func (p *pki) issue(template *x509.Certificate) (made, key []byte, err error) {
	template.KeyUsage = x509.KeyUsageDigitalSignature
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, p.authority, own.Public(), p.authorityKey)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		return nil, nil, err
	}
	return encodePEM("CERTIFICATE", der), encodePEM("PRIVATE KEY", keyDER), nil
}

// writeServiceAccountKey makes the key that signs ServiceAccount tokens.
func (p *pki) writeServiceAccountKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(p.file("service-account.key"), encodePEM("EC PRIVATE KEY", der), 0o600)
}

// writeTokens makes the static token file: one user for each component, and
// an administrator.
func (p *pki) writeTokens() error {
	users := []user{
		{name: admin, group: masters},
		{name: "system:" + string(ControllerManager)},
		{name: "system:" + string(Scheduler)},
		{name: string(Kwok), group: masters},
		{name: string(SourceController), group: masters},
		{name: string(HelmController), group: masters},
		{name: string(NotificationController), group: masters},
	}
	var lines strings.Builder
	for _, u := range users {
		random := make([]byte, 16)
		if _, err := rand.Read(random); err != nil {
			return err
		}
		u.token = hex.EncodeToString(random)
		p.users[u.name] = u
		fmt.Fprintf(&lines, "%s,%s,%s,%q\n", u.token, u.name, u.name, u.group)
	}
	return os.WriteFile(p.file("tokens.csv"), []byte(lines.String()), 0o600)
}

func certificate(serial int64, name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(30 * 24 * time.Hour),
	}
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
