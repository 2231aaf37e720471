// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/test/controlplane"
)

// world holds what a release refers to.
type world map[objects.ID]*unstructured.Unstructured

func (w world) add(t *testing.T, text string) world {
	t.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := parse(t, document)
		w[objects.IDOf(object)] = object
	}
	return w
}

func (w world) find(_ context.Context, id objects.ID) (*unstructured.Unstructured, error) {
	return w[id], nil
}

func trustAll(*unstructured.Unstructured) Trust { return TrustAll }

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return object
}

// chartServer starts a Helm repository, and ends it with the test.
func chartServer(t *testing.T) *controlplane.ChartServer {
	t.Helper()
	server, err := controlplane.NewChartServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// renderer returns a Renderer that keeps charts in a folder of the test.
func renderer(t *testing.T, options Options) *Renderer {
	t.Helper()
	if options.Dir == "" {
		options.Dir = t.TempDir()
	}
	r, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func repository(address string) string {
	return `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: flux-system}
spec:
  url: ` + address
}

// release returns a HelmRelease of a chart in the HelmRepository, with more of its
// spec, indented by two.
func release(t *testing.T, chart, version, more string) *unstructured.Unstructured {
	t.Helper()
	return parse(t, `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: apps}
spec:
  interval: 1m
  chart:
    spec:
      chart: `+chart+`
      version: "`+version+`"
      sourceRef: {kind: HelmRepository, name: charts, namespace: flux-system}
`+more)
}

// chartFiles returns a chart with one template and other files.
func chartFiles(name, version, template string, more map[string]string) map[string]string {
	files := map[string]string{
		"Chart.yaml":          "apiVersion: v2\nname: " + name + "\nversion: " + version + "\nappVersion: " + version + "-app\n",
		"templates/all.yaml":  template,
		"templates/NOTES.txt": "not an object: [",
	}
	for name, content := range more {
		files[name] = content
	}
	return files
}

// served is a transport that counts and may answer itself.
type served struct {
	mu       sync.Mutex
	requests []string
	headers  []http.Header
	answer   func(*http.Request) *http.Response
}

func (s *served) RoundTrip(request *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.requests = append(s.requests, request.URL.Path)
	s.headers = append(s.headers, request.Header.Clone())
	s.mu.Unlock()
	if s.answer != nil {
		if response := s.answer(request); response != nil {
			return response, nil
		}
	}
	return http.DefaultTransport.RoundTrip(request)
}

func (s *served) count(suffix string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, path := range s.requests {
		if strings.HasSuffix(path, suffix) {
			n++
		}
	}
	return n
}

func answer(code int, body string) *http.Response {
	return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}}
}

// text returns objects as YAML, one after the other.
func text(t *testing.T, objs []*unstructured.Unstructured) string {
	t.Helper()
	var all []string
	for _, object := range objs {
		data, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(data))
	}
	return strings.Join(all, "---\n")
}

// wantProblem fails unless an error is a Problem of a reason, with parts of its message.
func wantProblem(t *testing.T, err error, reason string, parts ...string) {
	t.Helper()
	var p *Problem
	if !errors.As(err, &p) {
		t.Fatalf("got %v, want a Problem %s", err, reason)
	}
	if p.Reason != reason {
		t.Errorf("reason %s, want %s: %s", p.Reason, reason, p.Message)
	}
	for _, part := range parts {
		if !strings.Contains(p.Message, part) {
			t.Errorf("message %q lacks %q", p.Message, part)
		}
	}
}
