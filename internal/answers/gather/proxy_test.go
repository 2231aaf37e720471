// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// Addresses that others have written reach no more than a Service that is meant.
func TestOneServiceIsAskedThroughTheServer(t *testing.T) {
	var asked []string
	through := &throughServer{
		direct: roundTrip(func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("direct") }),
		api: roundTrip(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.Method+" "+r.URL.String())
			if strings.HasSuffix(r.URL.Path, "/moved") {
				return &http.Response{StatusCode: http.StatusFound, Body: io.NopCloser(strings.NewReader("")), Header: http.Header{"Location": {"/api/v1/secrets"}}}, nil
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, nil
		}),
		server: &url.URL{Scheme: "https", Host: "cluster.example", Path: "/k8s/c1"},
	}
	through.allow("source-controller.flux-system.svc", "artifacts.team.svc.cluster.local.:9090", "artifacts.example.com")
	const below = "GET https://cluster.example/k8s/c1/api/v1/namespaces/"
	for address, want := range map[string]string{
		"http://source-controller.flux-system.svc.cluster.local./gitrepository/a/b/1.tar.gz": below + "flux-system/services/source-controller:80/proxy/gitrepository/a/b/1.tar.gz",
		"http://source-controller.flux-system.svc/x":                                         below + "flux-system/services/source-controller:80/proxy/x",
		"https://artifacts.team.svc:9090/x":                                                  below + "team/services/https:artifacts:9090/proxy/x",

		"http://source-controller.flux-system.svc/../../../../../../../api/v1/secrets": "none of an artifact",
		"http://source-controller.flux-system.svc/a/%2e%2e/%2e%2e/b":                   "none of an artifact",
		"http://source-controller.flux-system.svc/a/%252e%252e/b":                      "none of an artifact",
		"http://source-controller.flux-system.svc/a/..%2f..%2fb":                       "none of an artifact",
		"http://source-controller.flux-system.svc/a/./b":                               "none of an artifact",
		"http://source-controller.flux-system.svc/a//b":                                "none of an artifact",
		`http://source-controller.flux-system.svc/a\..\b`:                              "none of an artifact",
		"http://source-controller.flux-system.svc/a/..;/b":                             "none of an artifact",
		"http://source-controller.flux-system.svc":                                     "none of an artifact",
		"http://source-controller.flux-system.svc/x?path=/api":                         "a host and a path",
		"http://source-controller.flux-system.svc/x?":                                  "a host and a path",
		"http://a:b@source-controller.flux-system.svc/x":                               "a host and a path",
		"http://source-controller.flux-system.svc/moved":                               "redirects, which is not followed",
		"http://source-controller.evil.svc/x":                                          "is not known to hold artifacts",
		"http://admin.kube-system.svc/delete-all":                                      "is not known to hold artifacts",
		"http://a.b.svc.evil.example/x":                                                "direct",
		"http://source-controller.flux-system.svc.evil.example/x":                      "direct",
		"http://source-controller.flux-system.svc.cluster.local.evil.example/x":        "direct",
		"http://x.source-controller.flux-system.svc/x":                                 "is no name of a Service",
		"http://flux-system.svc/x":                                                     "is no name of a Service",
		"http://artifacts.example.com/x":                                               "direct",
		"http://source-controller.flux-system.pod/x":                                   "direct",
	} {
		asked = nil
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		response, err := through.RoundTrip(request)
		if err == nil {
			_ = response.Body.Close()
		}
		switch {
		case strings.HasPrefix(want, "GET "):
			if err != nil || len(asked) != 1 || asked[0] != want {
				t.Errorf("%s: %q, %v, want %q", address, asked, err, want)
			}
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%s: %q, %v, want an error with %q", address, asked, err, want)
		case len(asked) > 0 && !strings.HasSuffix(asked[0], "/moved"):
			t.Errorf("%s: the API server was asked for %q", address, asked)
		}
	}
	// Neither by another method, nor because a server elsewhere says so.
	for _, change := range []func(*http.Request){
		func(r *http.Request) { r.Method = http.MethodDelete },
		func(r *http.Request) { r.Response = &http.Response{} },
	} {
		asked = nil
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://source-controller.flux-system.svc/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		change(request)
		response, err := through.RoundTrip(request)
		if err == nil {
			_ = response.Body.Close()
		}
		if err == nil || len(asked) > 0 {
			t.Errorf("%q, %v", asked, err)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
