// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/lab"
)

// asNode is a client with the rights of a kubelet.
func (u *user) asNode(name string) kubernetes.Interface {
	u.Helper()
	config := u.config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + name, Groups: []string{"system:nodes", "system:authenticated"}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		u.Fatal(err)
	}
	return client
}

// asks has a kubelet ask for a serving certificate, and returns the name of the request.
func (u *user) asks(node string, template x509.CertificateRequest) string {
	u.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		u.Fatal(err)
	}
	template.Subject = pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}
	data, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	if err != nil {
		u.Fatal(err)
	}
	made, err := u.asNode(node).CertificatesV1().CertificateSigningRequests().Create(u.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: data}),
			SignerName: certificatesv1.KubeletServingSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		u.Fatal(err)
	}
	return made.Name
}

// serves gives a host the certificate of a request, as its kubelet would take it.
func (u *user) serves(host *lab.Host, request string) {
	u.Helper()
	client := u.client()
	u.eventually("the request is approved and signed", func(ctx context.Context) error {
		found, err := client.CertificatesV1().CertificateSigningRequests().Get(ctx, request, metav1.GetOptions{})
		if err != nil || len(found.Status.Certificate) == 0 {
			return fmt.Errorf("no certificate: %w", err)
		}
		u.run(host, "mkdir -p /var/lib/kubelet/pki; cat >/var/lib/kubelet/pki/kubelet-server-current.pem <<'end'\n"+string(found.Status.Certificate)+"end\n")
		return nil
	})
}

// Kubelets get the serving certificates that name their own host, and no others, when
// somebody applies the manifest.
func TestServingCertificatesAreApprovedByWhatTheyClaim(t *testing.T) {
	t.Parallel()
	u := newUser(t, 2)
	cp := u.lab.Hosts()
	u.must(0, []string{"apply", "--yes"}, "Done: ")
	u.add("  kubelets: {serverTLSBootstrap: true}\n")
	u.want(hosts.Update, "", "kubelets: {} -> {\"serverTLSBootstrap\":true}", "Update")
	address := func(hosts ...*lab.Host) (found []net.IP) {
		for _, each := range hosts {
			found = append(found, net.ParseIP(each.IP()))
		}
		return found
	}
	hostile := []string{
		u.asks("cp-0", x509.CertificateRequest{DNSNames: []string{"cp-0"}, IPAddresses: address(cp...)}),
		u.asks("cp-0", x509.CertificateRequest{DNSNames: []string{"cp-0", "kubernetes.default.svc"}, IPAddresses: address(cp[0])}),
		u.asks("cp-9", x509.CertificateRequest{DNSNames: []string{"cp-9"}, IPAddresses: address(cp[0])}),
	}
	_, said, ended := u.start("apply", "--yes")
	for _, host := range cp {
		u.serves(host, u.asks(host.Name, x509.CertificateRequest{DNSNames: []string{host.Name}, IPAddresses: address(host)}))
	}
	if err := <-ended; err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for _, host := range cp {
		if !strings.Contains(host.File("/var/lib/kubelet/config.yaml"), "serverTLSBootstrap: true") {
			t.Errorf("the kubelet of %s is not told to ask", host.Name)
		}
	}
	for _, name := range hostile {
		found, err := u.client().CertificatesV1().CertificateSigningRequests().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || len(found.Status.Conditions)+len(found.Status.Certificate) > 0 {
			t.Errorf("%v, %+v", err, found.Status)
		}
	}
	u.must(0, []string{"plan"}, "Warning: the request "+hostile[0]+" for a kubelet's serving certificate is not approved: it names "+cp[1].IP(), "it names kubernetes.default.svc",
		"it comes from a Node whose host is not in the manifest", "Done: ")

	// The next one is approved when it is asked for.
	next := u.asks("cp-1", x509.CertificateRequest{DNSNames: []string{"cp-1"}})
	u.want(hosts.Update, "", "cp-1 serving certificate: asked for -> signed", "Update")
	u.must(0, []string{"apply", "--yes"}, "cp-1 gets its serving certificate", "Done: ")
	u.serves(cp[1], next)
}

// servesSigned checks that the kubelet of a host serves with a certificate of its cluster.
func (u *user) servesSigned(host *lab.Host) {
	u.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(host.File("/etc/kubernetes/pki/ca.crt")))
	err := controlplane.WaitFor(u.Context(), time.Minute, func(ctx context.Context) error {
		dialer := &tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: host.Name}}
		connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host.IP(), "10250"))
		if err != nil {
			return err
		}
		return connection.Close()
	})
	if err != nil {
		u.Errorf("the kubelet of %s: %v", host.Name, err)
	}
}
