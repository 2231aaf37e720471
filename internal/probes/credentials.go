// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/strata-project/strata/internal/kubeconfig"
)

// CredentialsScript is run by sh as root on a host of the control plane, and says with
// what its cluster is asked.
//
//go:embed credentials.sh
var CredentialsScript []byte

// Credentials are what a cluster is asked with. They stay in memory.
type Credentials struct {
	// Authority of the API servers' certificates, and Certificate and Key of an
	// administrator, in PEM.
	Authority, Certificate, Key []byte
	// Etcd asks members of etcd.
	Etcd *tls.Config
}

// ReadCredentials reads an answer to CredentialsScript. Of the administrator's kubeconfig
// only certificates and key count: it comes from a machine that may be anybody's, and must
// neither name another server nor a program to run. An error repeats nothing of the answer.
func ReadCredentials(answer []byte) (*Credentials, error) {
	files, err := readFiles(answer)
	if err != nil {
		return nil, err
	}
	if len(files["admin"]) == 0 || len(files["authority"]) == 0 {
		return nil, errors.New("it has no /etc/kubernetes/admin.conf, or no pki/ca.crt beside it")
	}
	access, err := kubeconfig.Parse(files["admin"], kubeconfig.Allow{})
	if err != nil {
		return nil, errors.New("its /etc/kubernetes/admin.conf is none that kubeadm writes")
	}
	found := &Credentials{
		Authority: files["authority"], Certificate: access.Config.CertData, Key: access.Config.KeyData,
		Etcd: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()},
	}
	pair, err := tls.X509KeyPair(files["etcd.certificate"], files["etcd.key"])
	if err != nil || !found.Etcd.RootCAs.AppendCertsFromPEM(files["etcd.authority"]) {
		return nil, errors.New("its /etc/kubernetes/pki/etcd lacks a certificate or its key")
	}
	found.Etcd.Certificates = []tls.Certificate{pair}
	if _, err := tls.X509KeyPair(found.Certificate, found.Key); err != nil {
		return nil, errors.New("its /etc/kubernetes/admin.conf has no certificate and key that belong together")
	}
	return found, nil
}

// readFiles reads an answer that has files in base64, of somebody who is root there.
func readFiles(answer []byte) (map[string][]byte, error) {
	if len(answer) > MaxAnswer {
		return nil, fmt.Errorf("its answer is longer than %d bytes", MaxAnswer)
	}
	if !bytes.HasSuffix(answer, []byte("end=1\n")) {
		return nil, ErrCutOff
	}
	files := map[string][]byte{}
	for line := range strings.Lines(string(answer)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if key == "user" && value != "0" {
			return nil, ErrNotRoot
		}
		if decoded, err := base64.StdEncoding.DecodeString(value); err == nil {
			files[key] = decoded
		}
	}
	return files, nil
}
