// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostclusters_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hostclusters"
)

// spec has two hosts, one of them with addresses of both families.
func servingSpec() v1alpha1.HostClusterSpec {
	return v1alpha1.HostClusterSpec{
		Kubelets:     v1alpha1.HostKubelets{ServerTLSBootstrap: true},
		ControlPlane: []v1alpha1.ClusterHost{{Name: "cp-0", Address: "10.0.0.10", SecondAddress: "fd00::10"}},
		Workers:      []v1alpha1.ClusterHost{{Name: "w-0", Address: "10.0.0.20"}},
	}
}

// request is one of the kubelet of cp-0, changed by a test.
func request(t *testing.T, change func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequestSpec)) certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "system:node:cp-0", Organization: []string{"system:nodes"}},
		DNSNames: []string{"cp-0"}, IPAddresses: []net.IP{net.ParseIP("10.0.0.10"), net.ParseIP("fd00::10")},
	}
	made := certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "csr-1"}, Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: certificatesv1.KubeletServingSignerName, Username: "system:node:cp-0", Groups: []string{"system:nodes", "system:authenticated"},
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
	}}
	change(&template, &made.Spec)
	data, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	if err != nil {
		t.Fatal(err)
	}
	if made.Spec.Request == nil {
		made.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: data})
	}
	return made
}

// A kubelet gets a certificate for its own host, and for nothing else that it claims.
func TestWhatKubeletsClaim(t *testing.T) {
	type claim = func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequestSpec)
	for name, test := range map[string]struct {
		change claim
		want   string
	}{
		"its own":     {func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequestSpec) {}, ""},
		"its name":    {func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) { r.IPAddresses = nil }, ""},
		"its address": {func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) { r.DNSNames = nil }, ""},
		"nothing": {func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
			r.DNSNames, r.IPAddresses = nil, nil
		}, "it names no address"},
		"another name": {func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
			r.DNSNames = append(r.DNSNames, "kubernetes.default.svc")
		}, "it names kubernetes.default.svc"},
		"of another host": {func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
			r.IPAddresses = append(r.IPAddresses, net.ParseIP("10.0.0.20"))
		}, "it names 10.0.0.20, and the host has 10.0.0.10"},
		"loopback": {func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
			r.IPAddresses = append(r.IPAddresses, net.ParseIP("127.0.0.1"))
		}, "it names 127.0.0.1"},
		"a URI": {func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
			r.URIs = []*url.URL{{Scheme: "spiffe", Host: "a"}}
		}, "more than names and addresses"},
		"a mail": {func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
			r.EmailAddresses = []string{"a@b"}
		}, "more than names and addresses"},
		"a master": {func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
			r.Subject.Organization = []string{"system:nodes", "system:masters"}
		}, "its subject is not"},
		"the subject of another": {func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
			r.Subject.CommonName = "system:node:w-0"
		}, "its subject is not"},
		"as a client": {func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
			s.Usages = append(s.Usages, certificatesv1.UsageClientAuth)
		}, "more than to be a server's"},
		"no server": {func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
			s.Usages = s.Usages[:1]
		}, "more than to be a server's"},
		"of somebody": {func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
			s.Username = "alice"
		}, "it comes from no kubelet"},
		"of no node": {func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
			s.Groups = []string{"system:authenticated"}
		}, "it comes from no kubelet"},
		"of a stranger": {func(r *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
			s.Username, r.Subject.CommonName = "system:node:cp-9", "system:node:cp-9"
		}, "whose host is not in the manifest"},
		"garbage": {func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
			s.Request = []byte("garbage")
		}, "it cannot be read"},
		"rubbish": {func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
			s.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("garbage")})
		}, "it cannot be read"},
	} {
		made := request(t, test.change)
		host, err := hostclusters.ServingHost(&made, servingSpec())
		if test.want == "" && (err != nil || host != "cp-0") || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %q, %v", name, host, err)
		}
	}
}

// A host whose kubelet has no certificate of the cluster, or asks for one, is not as the
// manifest says.
func TestServingCertificatesThatLack(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	good := request(t, func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequestSpec) {})
	bad := request(t, func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
		r.DNSNames = []string{"a"}
	})
	year := map[string]time.Time{"cp-0": now.AddDate(1, 0, 0), "w-0": now.AddDate(0, 0, -1)}
	for _, test := range []struct {
		spec v1alpha1.HostClusterSpec
		ends map[string]time.Time
		open []certificatesv1.CertificateSigningRequest
		want string
	}{
		{v1alpha1.HostClusterSpec{}, nil, []certificatesv1.CertificateSigningRequest{good}, "[] []"},
		{servingSpec(), nil, nil, "[] []"},
		{servingSpec(), map[string]time.Time{"cp-0": {}}, nil, "[cp-0 serving certificate: - -> signed] []"},
		{servingSpec(), year, nil, "[w-0 serving certificate: ended 2026-02-28 -> signed] []"},
		{servingSpec(), year, []certificatesv1.CertificateSigningRequest{good, bad}, "[cp-0 serving certificate: asked for -> signed w-0 serving certificate: ended 2026-02-28 -> signed] " +
			"[the request csr-1 for a kubelet's serving certificate is not approved: it names a]"},
	} {
		changes, refused := hostclusters.Serving(test.spec, test.ends, test.open, now)
		if got := fmt.Sprint(changes, refused); got != test.want {
			t.Errorf("it is %s, and not %s", got, test.want)
		}
	}
	many := make([]certificatesv1.CertificateSigningRequest, 20)
	if _, refused := hostclusters.Serving(servingSpec(), nil, many, now); len(refused) != 6 || refused[5] != "15 more requests are not approved" {
		t.Errorf("%q", refused)
	}
}
