// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/strata-project/strata/internal/address"
)

// maxRedirects is how many redirects of an artifact server are followed.
const maxRedirects = 10

// anyHost allows every host.
const anyHost = "*"

// Hosts are the servers that artifacts are fetched from. Where an artifact is stands
// in the status of its source, which more may write than may write sources.
type Hosts struct {
	any  bool
	list []string
}

// ParseHosts reads a list of hosts: names of Services such as
// source-controller.flux-system.svc, which mean any port and the cluster's domain,
// too; other names and addresses, with a port or without; or * alone for every host.
func ParseHosts(list []string) (*Hosts, error) {
	hosts := &Hosts{}
	for _, text := range list {
		text = strings.TrimSuffix(strings.ToLower(strings.TrimSpace(text)), ".")
		if text == anyHost {
			hosts.any = true
			continue
		}
		name, port, err := net.SplitHostPort(text)
		if err != nil {
			name, port = strings.Trim(text, "[]"), ""
		}
		if strings.Contains(text, "/") || net.ParseIP(name) == nil && len(validation.IsDNS1123Subdomain(name)) > 0 {
			return nil, fmt.Errorf("%q is no host such as source-controller.flux-system.svc, with or without a port", text)
		}
		if number, bad := strconv.Atoi(port); port != "" && (bad != nil || number < 1 || number > 65535) {
			return nil, fmt.Errorf("%q has a port that is none", text)
		}
		if port != "" {
			name = net.JoinHostPort(name, port)
		}
		hosts.list = append(hosts.list, name)
	}
	if len(hosts.list) == 0 && !hosts.any {
		return nil, fmt.Errorf("it is empty: without a host no artifact can be fetched")
	}
	if len(hosts.list) > 0 && hosts.any {
		return nil, fmt.Errorf("%s stands for every host, and is given beside others", anyHost)
	}
	return hosts, nil
}

// checkText is check for an address as it is written.
func (h *Hosts) checkText(text string) error {
	parsed, err := url.Parse(text)
	if err != nil {
		return fmt.Errorf("cannot fetch artifact: %w", address.Error(err))
	}
	return h.check(parsed)
}

// check refuses an address at another host. Without hosts every one is allowed.
func (h *Hosts) check(place *url.URL) error {
	if h == nil || h.any {
		return nil
	}
	if place.Scheme != "http" && place.Scheme != "https" {
		return unverified("the address of the artifact is none of HTTP: its source's status says where it is")
	}
	name := strings.TrimSuffix(strings.ToLower(place.Hostname()), ".")
	if service, is := strings.CutSuffix(name, ".svc.cluster.local"); is {
		name = service + ".svc"
	}
	if slices.Contains(h.list, name) {
		return nil
	}
	port := place.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[place.Scheme]
	}
	if slices.Contains(h.list, net.JoinHostPort(name, port)) {
		return nil
	}
	return unverified("the artifact is at the host %q, and artifacts are fetched from %s alone: "+
		"where that host is to be trusted, name it in --artifact-hosts of the controller", place.Host, strings.Join(h.list, ", "))
}

// follow allows a redirect to hosts that artifacts are fetched from.
func (h *Hosts) follow(request *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	return h.check(request.URL)
}

func unverified(format string, args ...any) error {
	return unverifiedError{refuse("", format, args...)}
}
