// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
)

// sourceController is the name of the Service that has the artifacts of Flux's own
// sources.
const sourceController = "source-controller"

// throughServer carries requests for what only the cluster's own network reaches
// through the API server, to those who may: artifacts lie behind a Service. What is
// asked there is asked with all the rights of whoever runs the plug-in, while the
// address is one that others have written: only some Services are asked, for paths
// that stay there.
type throughServer struct {
	direct, api http.RoundTripper
	server      *url.URL
	// services may be asked.
	services []service
}

// service is a Service of the cluster.
type service struct{ namespace, name string }

// String returns it as the cluster's DNS names it.
func (s service) String() string { return s.name + "." + s.namespace + ".svc" }

func newThroughServer(config *rest.Config) (*throughServer, error) {
	api, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	direct := http.DefaultTransport.(*http.Transport).Clone()
	direct.DisableCompression = true
	return &throughServer{direct: direct, api: api, server: server}, nil
}

// allow has Services be asked that hosts, with or without a port, stand for. Other
// hosts are asked directly, and need no leave.
func (t *throughServer) allow(hosts ...string) {
	for _, host := range hosts {
		name := (&url.URL{Host: strings.TrimSpace(host)}).Hostname()
		if found, is, err := serviceOf(name); is && err == nil {
			t.services = append(t.services, found)
		}
	}
}

// RoundTrip sends a request to where its URL points, or to the API server's proxy
// where that is a Service. Redirects lead to no Service, and from none.
func (t *throughServer) RoundTrip(request *http.Request) (*http.Response, error) {
	to, is, err := serviceOf(request.URL.Hostname())
	if err != nil {
		return nil, err
	}
	if !is {
		return t.direct.RoundTrip(request)
	}
	if request.Response != nil {
		return nil, fmt.Errorf("it is redirected to the Service %s: redirects to what only the cluster reaches are not followed", to)
	}
	if !slices.Contains(t.services, to) {
		return nil, fmt.Errorf(
			"it is at the Service %s, which is not known to hold artifacts: name it with --artifact-hosts where it may be asked with your rights",
			to,
		)
	}
	address, err := t.proxied(to, request)
	if err != nil {
		return nil, err
	}
	proxied := request.Clone(request.Context())
	proxied.URL, proxied.Host = address, address.Host
	// Archives are verified as they are stored.
	proxied.Header.Set("Accept-Encoding", "identity")
	response, err := t.api.RoundTrip(proxied)
	if err == nil && response.StatusCode >= 300 && response.StatusCode < 400 {
		_ = response.Body.Close() // nobody reads it
		return nil, fmt.Errorf("the Service %s redirects, which is not followed", to)
	}
	return response, err
}

// proxied returns the address of what a Service has, at the API server.
func (t *throughServer) proxied(to service, request *http.Request) (*url.URL, error) {
	from := request.URL
	port := cmp.Or(from.Port(), map[string]string{"http": "80", "https": "443"}[from.Scheme])
	name := to.name + ":" + port
	switch {
	case request.Method != http.MethodGet:
		return nil, errors.New("artifacts are only got")
	case port == "" || from.User != nil || from.RawQuery != "" || from.ForceQuery || from.Opaque != "":
		return nil, fmt.Errorf("the address of what the Service %s has must be http:// or https://, a host and a path", to)
	case !staysThere(from):
		return nil, fmt.Errorf("the path of what the Service %s has is none of an artifact", to)
	case from.Scheme == "https":
		name = "https:" + name
	}
	address := *t.server
	address.Path = strings.TrimSuffix(t.server.Path, "/") + "/api/v1/namespaces/" + to.namespace + "/services/" + name + "/proxy" + from.Path
	address.RawPath, address.RawQuery = "", ""
	return &address, nil
}

// plainSegment is a part of a path that means the same to everybody who reads it.
var plainSegment = regexp.MustCompile(`^[A-Za-z0-9_~@+=,-][A-Za-z0-9._~@+=,-]*$`)

// staysThere tells whether a path leads below where it begins, whoever resolves it,
// and how often.
func staysThere(address *url.URL) bool {
	below, is := strings.CutPrefix(address.EscapedPath(), "/")
	return is && !slices.ContainsFunc(strings.Split(below, "/"), func(segment string) bool { return !plainSegment.MatchString(segment) })
}

// clusterNames are how the names of Services end in the cluster's DNS.
var clusterNames = []string{".svc.cluster.local", ".svc"}

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// serviceOf returns the Service that a name in the cluster's DNS stands for. A name
// that ends like one, and is none, is an error.
func serviceOf(host string) (found service, is bool, err error) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, end := range clusterNames {
		full, ends := strings.CutSuffix(host, end)
		if !ends {
			continue
		}
		name, namespace, _ := strings.Cut(full, ".")
		if !dnsLabel.MatchString(name) || !dnsLabel.MatchString(namespace) {
			return service{}, false, fmt.Errorf("%q is no name of a Service: it must be NAME.NAMESPACE%s", host, end)
		}
		return service{namespace: namespace, name: name}, true, nil
	}
	return service{}, false, nil
}
