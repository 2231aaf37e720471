// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// One server stands in for many clusters, each of which has an identity and a claim
// of its own; all else is asked of the server.
func TestGuises(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) }))
	defer server.Close()
	clusters, err := newGuises(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = clusters.close() }()
	ask := func(method, cluster, path, body string) string {
		t.Helper()
		at, _ := clusters.of(cluster)
		request, err := http.NewRequestWithContext(t.Context(), method, at+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := clusters.server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := ask(http.MethodGet, "a", "/version", ""); got != "/version" {
		t.Errorf("it answers %s", got)
	}
	ask(http.MethodPatch, "a", systemPath, `{"metadata":{"annotations":{"hub":"h"}}}`)
	if got := ask(http.MethodGet, "a", systemPath, ""); !strings.Contains(got, `"uid":"stand-in-a"`) || !strings.Contains(got, `"hub":"h"`) {
		t.Errorf("a is %s", got)
	}
	if got := ask(http.MethodGet, "b", systemPath, ""); !strings.Contains(got, `"uid":"stand-in-b"`) || strings.Contains(got, "hub") {
		t.Errorf("b is %s", got)
	}
}
