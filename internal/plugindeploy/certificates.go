// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package plugindeploy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/pkg/plugin"
)

const (
	// authorityValid is for how long an authority signs, valid how long what it signs is, and
	// renewBefore how long before its end that is made anew.
	authorityValid = 10 * 365 * 24 * time.Hour
	valid          = 90 * 24 * time.Hour
	renewBefore    = 30 * 24 * time.Hour
	// early is how long before now certificates begin, for clocks that differ.
	early = 5 * time.Minute
)

// The keys of the Secret beside those that the program reads.
const (
	authorityKey  = "ca.key"
	clientCert    = "client.crt"
	clientKey     = "client.key"
	clientName    = "strata"
	authorityName = "plug-in of Strata"
)

// Secret returns the Secret with the certificates of both sides, and whether it must be written:
// where something of it is missing, is for another host, or ends soon. data is what it holds now;
// nil for nothing. The authority stays for as long as it can, so that neither side must wait for
// the other one to read what was renewed.
func (p Plugin) Secret(data map[string][]byte, now time.Time) (secret *corev1.Secret, changed bool, err error) {
	made := map[string][]byte{}
	for _, key := range []string{plugin.AuthorityFile, authorityKey, plugin.CertificateFile, plugin.KeyFile, clientCert, clientKey} {
		made[key] = data[key]
	}
	authority, err := signer(made[plugin.AuthorityFile], made[authorityKey], now)
	if err != nil {
		if authority, err = newAuthority(now); err != nil {
			return nil, false, err
		}
		changed, made = true, map[string][]byte{plugin.AuthorityFile: authority.certificate, authorityKey: authority.key}
	}
	for _, of := range []struct {
		certificate, key, name string
		usage                  x509.ExtKeyUsage
	}{
		{plugin.CertificateFile, plugin.KeyFile, p.Host(), x509.ExtKeyUsageServerAuth},
		{clientCert, clientKey, clientName, x509.ExtKeyUsageClientAuth},
	} {
		if authority.fits(made[of.certificate], made[of.key], of.name, of.usage, now) {
			continue
		}
		if made[of.certificate], made[of.key], err = authority.sign(of.name, of.usage, now); err != nil {
			return nil, false, err
		}
		changed = true
	}
	return &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: p.meta(), Data: made}, changed, nil
}

// ClientTLS returns how the plug-in is asked, by the Secret.
func (p Plugin) ClientTLS(data map[string][]byte) (*tls.Config, error) {
	own, err := tls.X509KeyPair(data[clientCert], data[clientKey])
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data[plugin.AuthorityFile]) {
		return nil, errors.New("there is no authority")
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, RootCAs: pool, ServerName: p.Host()}, nil
}

// authority signs certificates.
type authority struct {
	certificate, key []byte
	parsed           *x509.Certificate
	private          *ecdsa.PrivateKey
}

// signer reads an authority that may sign for long enough.
func signer(certificate, key []byte, now time.Time) (*authority, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	private, is := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !is || pair.Leaf == nil || !pair.Leaf.IsCA || now.Add(valid).After(pair.Leaf.NotAfter) {
		return nil, errors.New("it cannot sign")
	}
	return &authority{certificate: certificate, key: key, parsed: pair.Leaf, private: private}, nil
}

func newAuthority(now time.Time) (*authority, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: authorityName}, NotBefore: now.Add(-early), NotAfter: now.Add(authorityValid),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	made := &authority{}
	var err error
	if made.certificate, made.key, err = create(template, nil); err != nil {
		return nil, err
	}
	return signer(made.certificate, made.key, now)
}

// sign makes a certificate.
func (a *authority) sign(name string, usage x509.ExtKeyUsage, now time.Time) (certificate, key []byte, err error) {
	return create(&x509.Certificate{
		Subject: pkix.Name{CommonName: name[:min(len(name), 64)]}, DNSNames: []string{name}, NotBefore: now.Add(-early), NotAfter: now.Add(valid),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}, a)
}

// fits tells whether a certificate can be used for a while yet.
func (a *authority) fits(certificate, key []byte, name string, usage x509.ExtKeyUsage, now time.Time) bool {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil || pair.Leaf == nil || now.Add(renewBefore).After(pair.Leaf.NotAfter) {
		return false
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.parsed)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}})
	return err == nil
}

// create makes a key and its certificate, signed by an authority; nil signs by itself.
func create(template *x509.Certificate, by *authority) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, nil, fmt.Errorf("cannot make a serial number: %w", err)
	}
	parent, signs := template, private
	if by != nil {
		parent, signs = by.parsed, by.private
	}
	data, err := x509.CreateCertificate(rand.Reader, template, parent, &private.PublicKey, signs)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a certificate: %w", err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot write a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: data}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), nil
}
