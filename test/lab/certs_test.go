// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/lab"
)

// certificate returns one of a host's.
func (u *user) certificate(host *lab.Host, file string) *x509.Certificate {
	u.Helper()
	block, _ := pem.Decode([]byte(host.File("/etc/kubernetes/pki/" + file)))
	if block == nil {
		u.Fatalf("%s has no %s", host.Name, file)
	}
	found, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		u.Fatal(err)
	}
	return found
}

// served returns the certificate with which a host's API server answers.
func (u *user) served(host *lab.Host) (*x509.Certificate, error) {
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(u.Context(), "tcp", net.JoinHostPort(host.IP(), "6443"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// lasting has kubeadm renew certificates of a host for a time.
func (u *user) lasting(host *lab.Host, which, period string) {
	u.Helper()
	u.run(host, fmt.Sprintf(`cat >/var/lib/short.yaml <<EOF
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
certificateValidityPeriod: %s
EOF
kubeadm certs renew %s --config /var/lib/short.yaml >/dev/null`, period, which))
}

// Certificates that end tomorrow are renewed by apply, whenever it is killed; all of them are
// when somebody wants it; and so are those that have ended, when no API server answers any
// more.
func TestCertificatesAreRenewed(t *testing.T) {
	t.Parallel()
	u := newUser(t, 2)
	cp := u.lab.Hosts()
	u.must(0, []string{"apply", "--yes"}, "Done: ")
	u.lasting(cp[1], "apiserver", "24h")
	u.must(2, []string{"status"}, "apiserver.crt of cp-1 ends ")
	u.want(hosts.Renew, "", "renews certificates", "Renew cp-1")
	u.eachStep(0, "apply", "--yes")
	year := time.Now().Add(300 * 24 * time.Hour)
	if ends := u.certificate(cp[1], "apiserver.crt").NotAfter; ends.Before(year) {
		t.Errorf("the certificate ends %s", ends)
	}
	if served, err := u.served(cp[1]); err != nil || served.NotAfter.Before(year) {
		t.Errorf("the API server has the old certificate: %v", err)
	}
	was := map[string]string{}
	for _, host := range cp {
		was[host.Name] = u.certificate(host, "etcd/server.crt").SerialNumber.String()
	}
	u.must(0, []string{"certs", "renew", "--yes"}, "1. Renew cp-0", "2. Renew cp-1", "cp-1 has new certificates", "Done: ")
	for _, host := range cp {
		if is := u.certificate(host, "etcd/server.crt").SerialNumber.String(); is == was[host.Name] {
			t.Errorf("%s has its old certificates", host.Name)
		}
	}

	// They end while nobody looks.
	for _, host := range cp {
		u.lasting(host, "all", "30s")
		u.run(host, "mkdir /var/lib/away; mv /etc/kubernetes/manifests/*.yaml /var/lib/away")
	}
	ends := u.certificate(cp[1], "apiserver.crt").NotAfter
	err := controlplane.WaitFor(t.Context(), 2*time.Minute, func(context.Context) error {
		if time.Now().Before(ends.Add(time.Second)) {
			return errors.New("the certificate has not ended yet")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range cp {
		u.run(host, "mv /var/lib/away/*.yaml /etc/kubernetes/manifests")
	}
	u.want(hosts.Renew, "", "no API server is healthy, and certificates have ended or end soon", "Renew cp-0", "Renew cp-1")
	u.must(0, []string{"apply", "--yes"}, "cp-1 has new certificates", "Done: ")
	u.must(0, []string{"plan"}, "Done: ")
}
