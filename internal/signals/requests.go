// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"errors"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/repos"
)

// Results of requests: the values of the label result.
const (
	resultSuccess  = "success"
	resultConflict = "conflict"
	resultError    = "error"
	resultNotFound = "not_found"
	resultRefused  = "refused"
)

// FetchMeter counts what artifacts are fetched.
type FetchMeter struct {
	*prometheus.CounterVec
	bytes prometheus.Counter
}

// NewFetchMeter returns a meter that stands at zero.
func NewFetchMeter() *FetchMeter {
	m := &FetchMeter{
		CounterVec: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "strata_artifact_fetches_total", Help: "How many artifacts of sources were fetched, by result.",
		}, []string{"result"}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "strata_artifact_fetched_bytes_total", Help: "How many bytes the artifacts had that were fetched.",
		}),
	}
	for _, result := range []string{resultSuccess, resultNotFound, resultRefused, resultError} {
		m.WithLabelValues(result)
	}
	return m
}

// Fetched counts one download, for repos.Options.
func (m *FetchMeter) Fetched(bytes int64, err error) {
	m.bytes.Add(float64(bytes))
	result := resultSuccess
	var content *directories.ContentError
	switch {
	case err == nil:
	case errors.Is(err, repos.ErrNotFound):
		result = resultNotFound
	case errors.As(err, &content):
		result = resultRefused
	default:
		result = resultError
	}
	m.WithLabelValues(result).Inc()
}

// Describe names the metrics.
func (m *FetchMeter) Describe(descriptions chan<- *prometheus.Desc) {
	m.CounterVec.Describe(descriptions)
	m.bytes.Describe(descriptions)
}

// Collect reads the metrics.
func (m *FetchMeter) Collect(metrics chan<- prometheus.Metric) {
	m.CounterVec.Collect(metrics)
	m.bytes.Collect(metrics)
}

// WriteMeter counts the writes that reach the API server.
type WriteMeter struct{ *prometheus.CounterVec }

// NewWriteMeter returns a meter that stands at zero.
func NewWriteMeter() *WriteMeter {
	return &WriteMeter{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "strata_api_writes_total", Help: "How many writes were sent to the API server, by verb, resource and result.",
	}, []string{"verb", "resource", "result"})}
}

// Wrap counts what goes through a transport to the API server.
func (m *WriteMeter) Wrap(next http.RoundTripper) http.RoundTripper {
	return writeTransport{meter: m, next: next}
}

type writeTransport struct {
	meter *WriteMeter
	next  http.RoundTripper
}

// RoundTrip sends a request and counts it where it is a write.
func (t writeTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	verb, resource := writeOf(request)
	if verb == "" {
		return response, err
	}
	result := resultSuccess
	switch {
	case err != nil:
		result = resultError
	case response.StatusCode == http.StatusConflict:
		result = resultConflict
	case response.StatusCode >= http.StatusBadRequest:
		result = resultError
	}
	t.meter.WithLabelValues(verb, resource, result).Inc()
	return response, err
}

// writeOf returns the verb and the resource of a write, such as patch and
// helmreleases.helm.toolkit.fluxcd.io; both are "" for what changes nothing.
// Namespaces and names are left out: there is no end of them.
func writeOf(request *http.Request) (verb, resource string) {
	switch request.Method {
	case http.MethodPost:
		verb = "create"
	case http.MethodPut:
		verb = "update"
	case http.MethodPatch:
		verb = "patch"
		if strings.HasPrefix(request.Header.Get("Content-Type"), "application/apply-patch") {
			verb = "apply"
		}
	case http.MethodDelete:
		verb = "delete"
	default:
		return "", ""
	}
	resource = resourceOf(request.URL.Path)
	if resource == "" || request.URL.Query().Has("dryRun") {
		return "", ""
	}
	return verb, resource
}

// resourceOf returns the resource, its group and its subresource of a path of
// the Kubernetes API; "" where it names none that is stored.
func resourceOf(path string) string {
	_, path, _ = strings.Cut(path, "/api")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group := ""
	if strings.HasPrefix(path, "s/") { // of /apis/GROUP/VERSION
		if len(parts) < 2 {
			return ""
		}
		group, parts = "."+parts[1], parts[2:]
	}
	if len(parts) < 2 || strings.HasSuffix(group, ".authorization.k8s.io") || strings.HasSuffix(group, ".authentication.k8s.io") {
		return ""
	}
	parts = parts[1:] // after the version
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	resource := parts[0] + group
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	return resource
}
