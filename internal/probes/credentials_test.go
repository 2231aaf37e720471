// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package probes_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/strata-project/strata/internal/probes"
)

// pair makes a certificate that signs itself, and its key, in PEM.
func pair(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}, &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a"}}, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

// admin is a kubeconfig as kubeadm writes it; user is what it says of its user.
func admin(server, user string) string {
	return "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n" +
		"clusters: [{name: a, cluster: {server: '" + server + "'}}]\nusers: [{name: a, user: {" + user + "}}]\n"
}

func in64(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

// The script reads the files of a host, and what it says is understood.
func TestCredentialsOfAHostAreRead(t *testing.T) {
	certificate, key := pair(t)
	root := t.TempDir()
	for path, content := range map[string]string{
		"admin.conf": admin("https://192.0.2.1:6443", "client-certificate-data: "+in64(certificate)+", client-key-data: "+in64(key)),
		"pki/ca.crt": string(certificate), "pki/etcd/ca.crt": string(certificate),
		"pki/etcd/healthcheck-client.crt": string(certificate), "pki/etcd/healthcheck-client.key": string(key),
	} {
		file := filepath.Join(root, "etc", "kubernetes", path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "sh", "-s")
	command.Stdin, command.Env = bytes.NewReader(probes.CredentialsScript), append(os.Environ(), "ROOT="+root)
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 {
		out = bytes.Replace(out, fmt.Appendf(nil, "user=%d", os.Getuid()), []byte("user=0"), 1)
	}
	found, err := probes.ReadCredentials(out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(found.Certificate, certificate) || !bytes.Equal(found.Key, key) || !bytes.Equal(found.Authority, certificate) || len(found.Etcd.Certificates) != 1 {
		t.Errorf("%+v", found)
	}
}

// A host that says something else gives no access, runs nothing here, and is not repeated.
func TestCredentialsThatAreNone(t *testing.T) {
	certificate, key := pair(t)
	_, other := pair(t)
	good := map[string]string{
		"user": "0", "admin": in64([]byte(admin("https://192.0.2.1:6443", "client-certificate-data: "+in64(certificate)+", client-key-data: "+in64(key)))),
		"authority": in64(certificate), "etcd.authority": in64(certificate), "etcd.certificate": in64(certificate), "etcd.key": in64(key),
	}
	mark := filepath.Join(t.TempDir(), "ran")
	for name, tc := range map[string]struct {
		key, value, want string
	}{
		"no root":          {"user", "1000", "did not run as root"},
		"no administrator": {"admin", "", "has no /etc/kubernetes/admin.conf"},
		"no authority":     {"authority", "", "has no /etc/kubernetes/admin.conf, or no pki/ca.crt"},
		"a program":        {"admin", in64([]byte(admin("https://a", "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: touch, args: ["+mark+"]}"))), "none that kubeadm writes"},
		"a file of ours":   {"admin", in64([]byte(admin("https://a", "tokenFile: /etc/passwd"))), "none that kubeadm writes"},
		"a token":          {"admin", in64([]byte(admin("https://a", "token: SECRET"))), "has no certificate and key that belong together"},
		"another key":      {"admin", in64([]byte(admin("https://a", "client-certificate-data: "+in64(certificate)+", client-key-data: "+in64(other)))), "admin.conf"},
		"garbage":          {"admin", in64([]byte("SECRET: {{")), "none that kubeadm writes"},
		"no base64":        {"admin", "%%%", "has no /etc/kubernetes/admin.conf"},
		"no key of etcd":   {"etcd.key", "", "pki/etcd lacks a certificate or its key"},
		"no CA of etcd":    {"etcd.authority", in64([]byte("SECRET")), "pki/etcd lacks"},
		"no certificate":   {"etcd.certificate", in64(key), "pki/etcd lacks"},
		"too long":         {"x", strings.Repeat("a", probes.MaxAnswer), "is longer than"},
	} {
		said := &strings.Builder{}
		for key, value := range good {
			if key == tc.key {
				value = tc.value
			}
			fmt.Fprintf(said, "%s=%s\n", key, value)
		}
		if _, has := good[tc.key]; !has {
			fmt.Fprintf(said, "%s=%s\n", tc.key, tc.value)
		}
		_, err := probes.ReadCredentials([]byte(said.String() + "end=1\n"))
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the program of a host's kubeconfig has run")
	}
	if _, err := probes.ReadCredentials([]byte("user=0\n")); !errors.Is(err, probes.ErrCutOff) {
		t.Errorf("cut off: error %v", err)
	}
}
