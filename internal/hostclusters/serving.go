// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostclusters

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/printable"
)

// nodeUser begins the name of a kubelet's user.
const nodeUser = "system:node:"

// servingUsages are what a kubelet may ask for besides the use as a server.
var servingUsages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageServerAuth}

// IsOpen tells whether nobody has approved or denied a request for a certificate yet.
func IsOpen(request *certificatesv1.CertificateSigningRequest) bool {
	return request.Spec.SignerName == certificatesv1.KubeletServingSignerName && !slices.ContainsFunc(request.Status.Conditions,
		func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed
		})
}

// ServingHost returns the host whose kubelet asks for the certificate of a server, by what
// the request claims: it comes from the Node of a host of the manifest, and names that Node
// and addresses of that host alone. The error says what else it claims.
func ServingHost(request *certificatesv1.CertificateSigningRequest, spec v1alpha1.HostClusterSpec) (string, error) {
	name, isNode := strings.CutPrefix(request.Spec.Username, nodeUser)
	if !isNode || !slices.Contains(request.Spec.Groups, "system:nodes") {
		return "", errors.New("it comes from no kubelet")
	}
	all := Hosts(spec)
	i := slices.IndexFunc(all, func(h v1alpha1.ClusterHost) bool { return h.Name == name })
	if i < 0 {
		return "", errors.New("it comes from a Node whose host is not in the manifest")
	}
	if !slices.Contains(request.Spec.Usages, certificatesv1.UsageServerAuth) ||
		slices.ContainsFunc(request.Spec.Usages, func(u certificatesv1.KeyUsage) bool { return !slices.Contains(servingUsages, u) }) {
		return "", errors.New("it wants more than to be a server's")
	}
	block, _ := pem.Decode(request.Spec.Request)
	if block == nil {
		return "", errors.New("it cannot be read")
	}
	claimed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || claimed.CheckSignature() != nil {
		return "", errors.New("it cannot be read, or is not signed with its own key")
	}
	return name, claims(claimed, all[i])
}

// claims returns an error unless a request names a host as its kubelet does.
func claims(claimed *x509.CertificateRequest, host v1alpha1.ClusterHost) error {
	switch {
	case claimed.Subject.CommonName != nodeUser+host.Name || !slices.Equal(claimed.Subject.Organization, []string{"system:nodes"}):
		return errors.New("its subject is not that of the kubelet which asks")
	case len(claimed.EmailAddresses)+len(claimed.URIs) > 0:
		return errors.New("it names more than names and addresses")
	case len(claimed.DNSNames)+len(claimed.IPAddresses) == 0:
		return errors.New("it names no address")
	}
	for _, each := range claimed.DNSNames {
		if each != host.Name {
			return fmt.Errorf("it names %s", printable.Line(each, 100))
		}
	}
	for _, each := range claimed.IPAddresses {
		if address, is := netip.AddrFromSlice(each); !is || !isOf(address.Unmap(), host) {
			return fmt.Errorf("it names %s, and the host has %s", each, host.Address)
		}
	}
	return nil
}

// isOf tells whether an address is one of a host.
func isOf(address netip.Addr, host v1alpha1.ClusterHost) bool {
	for _, text := range []string{host.Address, host.SecondAddress} {
		if of, err := netip.ParseAddr(text); err == nil && of.Unmap() == address {
			return true
		}
	}
	return false
}

// Serving returns what of the kubelets' serving certificates is not yet so, where the
// manifest wants them to be signed: ends has when that of each host ends, and open are the
// requests that nobody has answered. Those that are not to be approved are in refused, in
// sentences.
func Serving(spec v1alpha1.HostClusterSpec, ends map[string]time.Time, open []certificatesv1.CertificateSigningRequest, now time.Time) (
	changes []Change, refused []string,
) {
	if !spec.Kubelets.ServerTLSBootstrap {
		return nil, nil
	}
	asked := map[string]bool{}
	for i := range open {
		name, err := ServingHost(&open[i], spec)
		if err != nil {
			refused = append(refused, fmt.Sprintf("the request %s for a kubelet's serving certificate is not approved: %s", printable.Line(open[i].Name, 100), err))
			continue
		}
		asked[name] = true
	}
	for _, host := range Hosts(spec) {
		end, known := ends[host.Name]
		from := "-"
		switch {
		case asked[host.Name]:
			from = "asked for"
		case !known || end.After(now):
			continue // it is not there yet, or has one
		case !end.IsZero():
			from = "ended " + end.UTC().Format(time.DateOnly)
		}
		changes = append(changes, Change{Host: host.Name, Field: "serving certificate", From: from, To: "signed", Serving: true})
	}
	const most = 5
	if len(refused) > most {
		refused = append(refused[:most], fmt.Sprintf("%d more requests are not approved", len(refused)-most))
	}
	return changes, refused
}
