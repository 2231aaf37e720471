// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/objects"
)

func TestCredentialsGoWhereTheClusterSendsThem(t *testing.T) {
	t.Parallel()
	source := func(spec string) *unstructured.Unstructured {
		return parse(t, "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts, namespace: flux-system}\nspec: {"+spec+"}")
	}
	const live = "url: 'https://charts.example/stable', secretRef: {name: right}"
	for _, c := range []struct {
		reason, live, planned string
		host, beyond          bool
		why                   string
	}{
		{"as it is", live, live, true, true, ""},
		{"another path of the host", live, "url: 'https://charts.example/edge', secretRef: {name: right}", true, false, ""},
		{"the same host, written otherwise", live, "url: 'HTTPS://Charts.Example:443/stable', secretRef: {name: right}", true, false, ""},
		{"defaults that are written", live, live + ", provider: generic, insecure: false, passCredentials: false", true, true, ""},
		{"another host", live, "url: 'https://evil.example/stable', secretRef: {name: right}", false, false, "https://charts.example:443, and not at https://evil.example:443"},
		{"the host as a user", live, "url: 'https://charts.example@evil.example/stable', secretRef: {name: right}", false, false, "evil.example"},
		{"a host below", live, "url: 'https://x.charts.example/stable', secretRef: {name: right}", false, false, "x.charts.example"},
		{"another port", live, "url: 'https://charts.example:8443/stable', secretRef: {name: right}", false, false, ":8443"},
		{"in the clear", live, "url: 'http://charts.example/stable', secretRef: {name: right}", false, false, "http://charts.example:80"},
		{"without a certificate", live, live + ", insecure: true", false, false, "spec.insecure"},
		{"another Secret", live, "url: 'https://charts.example/stable', secretRef: {name: flux-system}", false, false, "spec.secretRef"},
		{"a Secret where there was none", "url: 'https://charts.example/stable'", live, false, false, "spec.secretRef"},
		{"other certificates", live, live + ", certSecretRef: {name: other}", false, false, "spec.certSecretRef"},
		{"another proxy", live, live + ", proxySecretRef: {name: other}", false, false, "spec.proxySecretRef"},
		{"another account", live, live + ", serviceAccountName: other", false, false, "spec.serviceAccountName"},
		{"another cloud", live, live + ", provider: aws", false, false, "spec.provider"},
		{"to other hosts as of late", live, live + ", passCredentials: true", true, false, ""},
		{"no address", live, "url: ':', secretRef: {name: right}", false, false, "spec"},
		{"none at all", "", live, false, false, "the cluster has no HelmRepository flux-system/charts"},
		{"none at all, and nothing to send", "", "url: 'https://evil.example'", false, false, ""},
	} {
		var known *unstructured.Unstructured
		if c.live != "" {
			known = source(c.live)
		}
		got := TrustOf(source(c.planned), known)
		if got.Host != c.host || got.Beyond != c.beyond {
			t.Errorf("%s: %+v", c.reason, got)
		}
		if (got.Withheld != "") != (c.why != "") || c.why != "spec" && !strings.Contains(got.Withheld, c.why) {
			t.Errorf("%s: withheld because %q, want %q", c.reason, got.Withheld, c.why)
		}
	}
}

// asked is a server that notes which credentials it was sent.
type asked struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

func (a *asked) note(request *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if header := request.Header.Get("Authorization"); header != "" {
		a.seen = append(a.seen, request.URL.Path+" "+header)
	}
	if request.TLS != nil && len(request.TLS.PeerCertificates) > 0 {
		a.seen = append(a.seen, request.URL.Path+" with a certificate")
	}
}

func (a *asked) got() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string{}, a.seen...)
}

func listens(t *testing.T, guarded bool, answer http.HandlerFunc) *asked {
	t.Helper()
	a := &asked{}
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		a.note(request)
		answer(w, request)
	}))
	if guarded {
		a.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
		a.StartTLS()
	} else {
		a.Start()
	}
	t.Cleanup(a.Close)
	return a
}

// Neither what is in a Secret of the cluster nor that Secret itself is looked at for
// an address that somebody wishes for.
func TestNoCredentialsForAnAddressOfTheChange(t *testing.T) {
	t.Parallel()
	evil := listens(t, false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="give"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	host := strings.TrimPrefix(evil.URL, "http://")
	config := `{"auths": {"` + host + `": {"username": "strata", "password": "` + password + `"}}}`
	secrets := []string{
		secret("plain", "Opaque", map[string]string{"username": "strata", "password": password}),
		secret("token", "Opaque", map[string]string{"bearerToken": password}),
		secret("config", "kubernetes.io/dockerconfigjson", map[string]string{".dockerconfigjson": config}),
	}
	for _, name := range []string{"plain", "token", "config"} {
		for kind, object := range map[string]string{
			"HelmRepository": repository(evil.URL) + "\n  secretRef: {name: " + name + "}\n  passCredentials: true",
			"registry":       repository("oci://"+host+"/charts") + "\n  type: oci\n  secretRef: {name: " + name + "}",
		} {
			w := world{}.add(t, object)
			for _, each := range secrets {
				w.add(t, each)
			}
			for _, trust := range []func(*unstructured.Unstructured) Trust{nil, func(source *unstructured.Unstructured) Trust { return TrustOf(source, nil) }} {
				reads := 0
				q := Request{Release: release(t, "settings", "1.0.0", ""), Trust: trust}
				q.Find = func(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error) {
					if id.Kind == "Secret" {
						reads++
					}
					return w.find(ctx, id)
				}
				_, err := renderer(t, Options{}).Render(t.Context(), q)
				wantProblem(t, err, ChartUnavailable, "401")
				if trust != nil && !strings.Contains(err.Error(), "the credentials of the source were not sent: the cluster has no HelmRepository flux-system/charts") {
					t.Errorf("%s with %s: %v", kind, name, err)
				}
				if reads > 0 {
					t.Errorf("%s with %s: the Secret was read", kind, name)
				}
			}
		}
	}
	if got := evil.got(); len(got) > 0 {
		t.Errorf("the server was sent %q", got)
	}
}

// A server that the cluster trusts may lead to another one, which it does not.
func TestRedirectsTakeNoCredentialsAlong(t *testing.T) {
	t.Parallel()
	data := packedChart(t, chartFiles("settings", "1.0.0", settings, nil))
	for _, guarded := range []bool{false, true} {
		evil := listens(t, guarded, func(w http.ResponseWriter, request *http.Request) {
			if strings.HasSuffix(request.URL.Path, "index.yaml") {
				fmt.Fprintf(w, "apiVersion: v1\nentries: {settings: [{name: settings, version: 1.0.0, urls: [a.tgz], digest: %s}]}", sum(data))
				return
			}
			_, _ = w.Write(data)
		})
		// Another port is another server, also where its name is the same.
		good := listens(t, guarded, func(w http.ResponseWriter, request *http.Request) {
			http.Redirect(w, request, evil.URL+request.URL.Path, http.StatusFound)
		})
		w := world{}.add(t, secret("right", "Opaque", map[string]string{"username": "strata", "password": password}))
		source, sent := repository(good.URL)+"\n  secretRef: {name: right}\n  passCredentials: true", 2
		if guarded {
			// Each request has a password and a certificate.
			source, sent = source+"\n  certSecretRef: {name: pair}", 4
			w.add(t, secret("pair", "kubernetes.io/tls", pairOf(t, good.TLS.Certificates[0])))
		}
		w.add(t, source)
		if _, err := renderer(t, Options{}).Render(t.Context(), Request{Release: release(t, "settings", "1.0.0", ""), Find: w.find, Trust: trustAll}); err != nil {
			t.Fatal(err)
		}
		if got := good.got(); len(got) != sent {
			t.Errorf("the server of the source was sent %q", got)
		}
		if got := evil.got(); len(got) > 0 {
			t.Errorf("the other server was sent %q", got)
		}
	}
}

// pairOf returns a certificate with its key as a Secret holds them. It vouches for
// itself.
func pairOf(t *testing.T, pair tls.Certificate) map[string]string {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))
	return map[string]string{
		"tls.crt": certificate, "ca.crt": certificate,
		"tls.key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
	}
}

// What a registry asks for a token follows Flux, for what the cluster trusts alone.
func TestTokensAreAskedForWhereTheClusterDoes(t *testing.T) {
	t.Parallel()
	realm := listens(t, false, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"token": "t"}`) })
	good := listens(t, false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+strings.Replace(realm.URL, "127.0.0.1", "localhost", 1)+`/token",service="s"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	w := world{}.add(t, repository("oci://"+strings.TrimPrefix(good.URL, "http://")+"/charts")+"\n  type: oci\n  secretRef: {name: right}").
		add(t, secret("right", "Opaque", map[string]string{"username": "strata", "password": password}))
	for _, trust := range []func(*unstructured.Unstructured) Trust{nil, trustAll} {
		_, err := renderer(t, Options{}).Render(t.Context(), Request{Release: release(t, "settings", "1.0.0", ""), Find: w.find, Trust: trust})
		wantProblem(t, err, ChartUnavailable, "401")
		want := 0
		if trust != nil {
			want = 1
		}
		got := realm.got()
		if len(got) != want || want == 1 && got[0] != "/token Basic "+base64.StdEncoding.EncodeToString([]byte("strata:"+password)) {
			t.Errorf("the realm was sent %q", got)
		}
	}
}

// Signatures and passwords of addresses are in no message.
func TestAddressesInMessages(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"http://user:hunter2@127.0.0.1:1/charts?sig=hunter2#hunter2", "oci://127.0.0.1:1/charts?sig=hunter2",
	} {
		w := world{}.add(t, repository(`"`+address+`"`))
		_, err := renderer(t, Options{}).Render(t.Context(), Request{Release: release(t, "settings", "1.0.0", ""), Find: w.find})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", address, err)
		}
		for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(cause) {
			if strings.Contains(cause.Error(), "hunter2") {
				t.Errorf("%s: the cause is %v", address, cause)
			}
		}
	}
	index := listens(t, false, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "apiVersion: v1\nentries: {settings: [{name: settings, version: 1.0.0, urls: ['http://127.0.0.1:1/a.tgz?X-Signature=hunter2']}]}")
	})
	w := world{}.add(t, repository(index.URL))
	_, err := renderer(t, Options{}).Render(t.Context(), Request{Release: release(t, "settings", "1.0.0", ""), Find: w.find})
	wantProblem(t, err, ChartUnavailable, "http://127.0.0.1:1/a.tgz")
	if strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
	// A server may say anything where it redirects to.
	for _, location := range []string{"http://user:hunter2@127.0.0.1:hunter2/", "http://127.0.0.1:1/?sig=hunter2", "ftp://user:hunter2@127.0.0.1/?hunter2"} {
		away := listens(t, false, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusFound)
		})
		w := world{}.add(t, repository(away.URL))
		_, err := renderer(t, Options{}).Render(t.Context(), Request{Release: release(t, "settings", "1.0.0", ""), Find: w.find})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", location, err)
		}
	}
}
