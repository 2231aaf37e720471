// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/pprof"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/strata"
)

// profiles is the path of the index of Go's profiles.
const profiles = pprof.HTTPPrefixPProf + "/"

// meter is a metric that every controller has.
const meter = "strata_artifact_fetches_total"

// metricsBed is an API server with the chart, and the controller's account there.
type metricsBed struct {
	*testing.T
	plane    *controlplane.ControlPlane
	client   client.Client
	identity controlplane.Identity
	binary   string
}

// newMetricsBed installs the chart with metrics.secure. What the controller may do
// there is what the chart gives it.
func newMetricsBed(t *testing.T) *metricsBed {
	t.Helper()
	b := &metricsBed{T: t, binary: build(t)}
	var err error
	b.plane, err = controlplane.Start(t.Context(), controlplane.Options{With: controlplane.APIOnly(), FluxCRDs: true})
	b.must(err)
	t.Cleanup(func() { b.must(b.plane.Stop()) })
	b.client, err = client.New(b.plane.Config(), client.Options{Scheme: clientgoscheme.Scheme})
	b.must(err)
	b.identity, err = strata.Install(t.Context(), b.plane, map[string]any{"metrics": map[string]any{"secure": true}})
	b.must(err)
	return b
}

func (b *metricsBed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// run runs a controller until the test ends, and returns where it serves metrics, as
// host and port.
func (b *metricsBed) run(t *testing.T, args ...string) string {
	t.Helper()
	controller, err := strata.Prepare(strata.Options{Binary: b.binary, Kubeconfig: b.identity.Kubeconfig, Dir: t.TempDir(), Args: args})
	b.must(err)
	t.Cleanup(controller.Close)
	b.must(controller.Start(t.Context()))
	t.Cleanup(func() { b.must(controller.Stop(patience)) })
	return strings.TrimSuffix(strings.TrimPrefix(controller.MetricsURL, "http://"), "/metrics")
}

// patience bounds what must happen.
const patience = time.Minute

// account makes a ServiceAccount, has a ClusterRole bound to it where one is named,
// and returns a token of it once the API server knows of the right.
func (b *metricsBed) account(name, role, path string) string {
	b.Helper()
	meta := metav1.ObjectMeta{Namespace: "default", Name: name}
	b.must(b.client.Create(b.Context(), &corev1.ServiceAccount{ObjectMeta: meta}))
	identity, err := b.plane.ServiceAccount(b.Context(), meta.Namespace, name)
	b.must(err)
	if role == "" {
		return identity.Config.BearerToken
	}
	b.must(b.client.Create(b.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: name}},
	}))
	b.must(wait.PollUntilContextTimeout(b.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + meta.Namespace + ":" + name, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
		}}
		err := b.client.Create(ctx, review)
		return review.Status.Allowed, err
	}))
	return identity.Config.BearerToken
}

// ask is try where an answer must come.
func ask(t *testing.T, transport http.RoundTripper, method, url, token string) (code int, body string) {
	t.Helper()
	code, body, err := try(t, transport, method, url, token)
	if err != nil {
		t.Fatal(err)
	}
	return code, body
}

// try sends a request, with a token where there is one, and returns the answer's code
// and body.
func try(t *testing.T, transport http.RoundTripper, method, url, token string) (code int, body string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// unchecked takes every certificate, as whoever attacks does.
func unchecked() *http.Transport {
	return &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
}

// Metrics and profiles are for those whom the API server knows and lets get them.
// The controller has no rights but those of the chart, so these are enough to ask.
func TestMetricsAreForThoseWhoMay(t *testing.T) {
	b := newMetricsBed(t)
	b.must(b.client.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "profiles"},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{profiles + "*"}, Verbs: []string{"get"}}},
	}))
	tokens := map[string]string{
		"nobody": "", "forger": strings.Repeat("x", 40),
		"stranger": b.account("stranger", "", ""),
		"reader":   b.account("reader", "strata-metrics-reader", "/metrics"),
		"profiler": b.account("profiler", "profiles", profiles),
	}
	t.Run("secured", func(t *testing.T) { b.attackSecured(t, tokens) })
	t.Run("checked", b.checkCertificate)
	// Without the flag the same questions are answered: what the attack finds closed
	// above is not closed by itself.
	t.Run("open", func(t *testing.T) {
		address := b.run(t, "--pprof")
		for path, want := range map[string]string{"/metrics": meter, profiles: "goroutine"} {
			if code, body := ask(t, unchecked(), http.MethodGet, "http://"+address+path, ""); code != http.StatusOK || !strings.Contains(body, want) {
				t.Errorf("%s answers %d without --metrics-secure:\n%.200s", path, code, body)
			}
		}
	})
}

func (b *metricsBed) attackSecured(t *testing.T, tokens map[string]string) {
	address := b.run(t, "--metrics-secure", "--pprof")
	transport := unchecked()
	for _, tc := range []struct {
		who, method, path string
		code              int
		reason            string
	}{
		{"nobody", http.MethodGet, "/metrics", http.StatusUnauthorized, "who says nothing of themselves is refused"},
		// The server says 500 here, because the API server's answer is an error to it.
		{"forger", http.MethodGet, "/metrics", http.StatusInternalServerError, "a token must be one of this cluster"},
		{"stranger", http.MethodGet, "/metrics", http.StatusForbidden, "an account alone gives no right"},
		{"reader", http.MethodGet, "/metrics", http.StatusOK, "the chart's role lets read"},
		{"reader", http.MethodPost, "/metrics", http.StatusForbidden, "and lets do nothing else"},
		{"profiler", http.MethodGet, "/metrics", http.StatusForbidden, "the right to a path is no right to another"},
		{"nobody", http.MethodGet, profiles, http.StatusUnauthorized, "profiles are behind the same filter"},
		{"reader", http.MethodGet, profiles, http.StatusForbidden, "who reads metrics takes no profiles"},
		{"reader", http.MethodGet, profiles + "cmdline", http.StatusForbidden, "nor any of them"},
		{"profiler", http.MethodGet, profiles, http.StatusOK, "profiles have a right of their own"},
		{"profiler", http.MethodGet, profiles + "cmdline", http.StatusOK, "with all below it"},
	} {
		code, body := ask(t, transport, tc.method, "https://"+address+tc.path, tokens[tc.who])
		if code != tc.code {
			t.Errorf("%s: %s %s by %s answers %d, want %d", tc.reason, tc.method, tc.path, tc.who, code, tc.code)
		}
		if code != http.StatusOK && (strings.Contains(body, meter) || strings.Contains(body, "goroutine") || strings.Contains(body, "--metrics-secure")) {
			t.Errorf("%s %s by %s is refused and answered:\n%.200s", tc.method, tc.path, tc.who, body)
		}
		if code == http.StatusOK && tc.path == "/metrics" && !strings.Contains(body, meter) {
			t.Errorf("what the reader gets are no metrics:\n%.200s", body)
		}
	}
	for path := range pprof.Endpoints {
		for who, want := range map[string]int{"nobody": http.StatusUnauthorized, "stranger": http.StatusForbidden} {
			if code, _ := ask(t, transport, http.MethodGet, "https://"+address+path, tokens[who]); code != want {
				t.Errorf("%s by %s answers %d, want %d", path, who, code, want)
			}
		}
	}
	// The server may end the connection before its answer is read.
	if code, body, err := try(t, transport, http.MethodGet, "http://"+address+"/metrics", tokens["reader"]); err == nil && code != http.StatusBadRequest {
		t.Errorf("without TLS it answers %d:\n%.200s", code, body)
	}
	connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	b.must(err)
	defer connection.Close()
	if got := connection.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("strangers are offered %q", got)
	}
}

// checkCertificate wants the certificate of --metrics-cert-dir to be shown, so that
// who reads the metrics can tell the controller from somebody else before they say
// their token.
func (b *metricsBed) checkCertificate(t *testing.T) {
	dir := t.TempDir()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("strata-metrics.strata-system.svc", nil, nil)
	b.must(err)
	b.must(os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600))
	b.must(os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
	address := b.run(t, "--metrics-secure", "--metrics-cert-dir="+dir)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	for name, want := range map[string]string{"strata-metrics.strata-system.svc": "", "strata-metrics.elsewhere.svc": "not strata-metrics.elsewhere.svc"} {
		dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: patience}, Config: &tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS12}}
		connection, err := dialer.DialContext(t.Context(), "tcp", address)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("as %s the certificate gives %v, want %q", name, err, want)
		}
		if err == nil {
			b.must(connection.Close())
		}
	}
}

// A folder that is to hold the certificate, and does not, ends the controller: it
// shows no other certificate instead.
func TestCertificateOfMetricsIsThere(t *testing.T) {
	whole, empty, half, wrong := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("strata-metrics", nil, nil)
	_, other, otherErr := certutil.GenerateSelfSignedCertKey("strata-metrics", nil, nil)
	if err := errors.Join(err, otherErr); err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{
		filepath.Join(whole, "tls.crt"): certificate, filepath.Join(whole, "tls.key"): key,
		filepath.Join(half, "tls.crt"):  certificate,
		filepath.Join(wrong, "tls.crt"): certificate, filepath.Join(wrong, "tls.key"): other,
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]string{
		whole: "", "": "",
		empty: "no such file", half: "no such file", filepath.Join(empty, "missing"): "no such file", wrong: "does not match",
	} {
		o := &options{served: served{metricsAddr: ":8080", metricsSecure: true, metricsCertDir: dir}}
		serving, err := o.metricsOptions()
		if got := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(got, want) {
			t.Errorf("folder %q gives %v, want %q", dir, err, want)
		}
		if err == nil && (!serving.SecureServing || serving.FilterProvider == nil) {
			t.Errorf("folder %q gives metrics to everybody", dir)
		}
	}
}
