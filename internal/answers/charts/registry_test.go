// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"
	"encoding/base64"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	oras "oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/registry/remote"
)

// password is what registries and repositories of these tests want.
const password = "correct-horse"

// ociServer starts a registry, which wants the user strata with the password where
// that is asked for, and returns its host.
func ociServer(t *testing.T, guarded bool) string {
	t.Helper()
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		user, given, _ := request.BasicAuth()
		if guarded && request.Method == http.MethodGet && (user != "strata" || given != password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// packedChart returns a chart of files as helm package makes it.
func packedChart(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var loaded []*archive.BufferedFile
	for name, text := range files {
		loaded = append(loaded, &archive.BufferedFile{Name: name, Data: []byte(text)})
	}
	c, err := loader.LoadFiles(loaded)
	if err != nil {
		t.Fatal(err)
	}
	path, err := chartutil.Save(c, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// push makes content the layer of an artifact, as helm push does, and returns the
// digest of the artifact.
func push(t *testing.T, repository, tag, mediaType string, content []byte) string {
	t.Helper()
	ctx, store := context.Background(), memory.New()
	layer, err := oras.PushBytes(ctx, store, mediaType, content)
	if err != nil {
		t.Fatal(err)
	}
	config, err := oras.PushBytes(ctx, store, "application/vnd.cncf.helm.config.v1+json", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	options := oras.PackManifestOptions{ConfigDescriptor: &config}
	options.Layers = append(options.Layers, layer)
	manifest, err := oras.PackManifest(ctx, store, oras.PackManifestVersion1_1, "", options)
	if err == nil {
		err = store.Tag(ctx, manifest, tag)
	}
	if err != nil {
		t.Fatal(err)
	}
	to, err := remote.NewRepository(repository)
	if err != nil {
		t.Fatal(err)
	}
	to.PlainHTTP = true
	if _, err := oras.Copy(ctx, store, tag, to, tag, oras.DefaultCopyOptions); err != nil {
		t.Fatal(err)
	}
	return manifest.Digest.String()
}

func TestRenderFromARegistry(t *testing.T) {
	t.Parallel()
	host := ociServer(t, false)
	for tag, version := range map[string]string{"1.0.0": "1.0.0", "1.2.0_build": "1.2.0+build", "2.0.0": "2.0.0", "latest": "9.0.0"} {
		push(t, host+"/charts/settings", tag, chartMediaType, packedChart(t, chartFiles("settings", version, settings, nil)))
	}
	push(t, host+"/charts/other", "1.0.0", "application/octet-stream", []byte("no chart"))
	w := world{}.add(t, repository("oci://"+host+"/charts")+"\n  type: oci")
	seen, dir := &served{}, t.TempDir()
	r := renderer(t, Options{Dir: dir, Transport: seen})
	for _, c := range []struct{ reason, version, want string }{
		{"a version that is named", "1.0.0", "1.0.0"},
		{"the newest of a range, with a build", "1.x", "1.2.0+build"},
		{"a version with a build", "1.2.0+build", "1.2.0+build"},
		{"the newest of all", "", "2.0.0"},
	} {
		got, err := r.Render(t.Context(), Request{Release: release(t, "settings", c.version, ""), Find: w.find, Trust: trustAll})
		if err != nil {
			t.Fatalf("%s: %v", c.reason, err)
		}
		if got.Version != c.want {
			t.Errorf("%s: got %s, want %s", c.reason, got.Version, c.want)
		}
	}
	blobs := 0
	for _, path := range seen.requests {
		if strings.Contains(path, "/blobs/") {
			blobs++
		}
	}
	if blobs != 3 {
		t.Errorf("%d charts were fetched for 3", blobs)
	}
	_, err := r.Render(t.Context(), Request{Release: release(t, "settings", "3.x", ""), Find: w.find, Trust: trustAll})
	wantProblem(t, err, ChartNotFound, host, `"3.x"`)
	_, err = r.Render(t.Context(), Request{Release: release(t, "settings", "3.0.0", ""), Find: w.find, Trust: trustAll})
	wantProblem(t, err, ChartNotFound, host, "3.0.0")
	_, err = r.Render(t.Context(), Request{Release: release(t, "none", "1.x", ""), Find: w.find, Trust: trustAll})
	wantProblem(t, err, ChartNotFound, "charts/none")
	_, err = r.Render(t.Context(), Request{Release: release(t, "other", "1.0.0", ""), Find: w.find, Trust: trustAll})
	wantProblem(t, err, ChartNotFound, "is no chart")
	away := world{}.add(t, repository("oci://127.0.0.1:1/charts")+"\n  type: oci")
	_, err = r.Render(t.Context(), Request{Release: release(t, "settings", "1.x", ""), Find: away.find})
	wantProblem(t, err, ChartUnavailable, "oci://127.0.0.1:1/charts/settings", "refused")
}

const byRef = `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: apps}
spec:
  interval: 1m
  chartRef: {kind: OCIRepository, name: settings}
`

func TestRenderFromAnOCIRepository(t *testing.T) {
	t.Parallel()
	host := ociServer(t, false)
	digests := map[string]string{}
	for tag, version := range map[string]string{"1.0.0": "1.0.0", "1.2.0": "1.2.0", "latest": "1.0.0", "wrong-1.0.0": "1.0.0", "7.0.0": "1.0.0", "1.9.0-rc": "1.9.0-rc"} {
		digests[tag] = push(t, host+"/settings", tag, chartMediaType, packedChart(t, chartFiles("settings", version, settings, nil)))
	}
	for _, c := range []struct{ reason, ref, tag, want string }{
		{"a tag", "{tag: 1.0.0}", "1.0.0", "1.0.0"},
		{"the newest of a range", "{semver: <2}", "1.2.0", "1.2.0"},
		{"a filter of tags", `{semver: ">=0.0.0-0", semverFilter: ".*-rc$"}`, "1.9.0-rc", "1.9.0-rc"},
		{"a digest", "{tag: 1.2.0, digest: '" + digests["1.0.0"] + "'}", "1.0.0", "1.0.0"},
		{"latest", "null", "latest", "1.0.0"},
	} {
		w := world{}.add(t, `apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: settings, namespace: apps}
spec:
  url: oci://`+host+`/settings
  layerSelector: {mediaType: `+chartMediaType+`, operation: copy}
  ref: `+c.ref)
		got, err := renderer(t, Options{}).Render(t.Context(), Request{Release: parse(t, byRef), Find: w.find, Trust: trustAll})
		if err != nil {
			t.Fatalf("%s: %v", c.reason, err)
		}
		want := c.want + "+" + strings.TrimPrefix(digests[c.tag], "sha256:")[:12]
		if got.Version != want {
			t.Errorf("%s: got %s, want %s", c.reason, got.Version, want)
		}
		if label, _, _ := strings.Cut(text(t, got.Objects), "\n  colour"); !strings.HasSuffix(label, "settings-"+want) {
			t.Errorf("%s: templates see another version: %s", c.reason, label)
		}
	}
	w := world{}.add(t, `apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: settings, namespace: apps}
spec: {url: "oci://`+host+`/settings", ref: {tag: 7.0.0}}`)
	_, err := renderer(t, Options{}).Render(t.Context(), Request{Release: parse(t, byRef), Find: w.find, Trust: trustAll})
	wantProblem(t, err, ChartUnavailable, "7.0.0", "1.0.0")
	_, err = renderer(t, Options{}).Render(t.Context(), Request{Release: parse(t, byRef), Find: world{}.find})
	wantProblem(t, err, ChartUnavailable, "there is no OCIRepository apps/settings")
}

func secret(name, kind string, data map[string]string) string {
	text := "apiVersion: v1\nkind: Secret\ntype: " + kind + "\nmetadata: {name: " + name + ", namespace: flux-system}\ndata:\n"
	for key, value := range data {
		text += "  " + key + ": " + base64.StdEncoding.EncodeToString([]byte(value)) + "\n"
	}
	return text
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	oci, server := ociServer(t, true), chartServer(t)
	push(t, oci+"/charts/settings", "1.0.0", chartMediaType, packedChart(t, chartFiles("settings", "1.0.0", settings, nil)))
	if err := server.AddFiles(chartFiles("settings", "1.0.0", settings, nil)); err != nil {
		t.Fatal(err)
	}
	guarded := &served{answer: func(request *http.Request) *http.Response {
		user, given, _ := request.BasicAuth()
		if strings.HasPrefix(request.URL.Path, "/v2/") || user == "strata" && given == password {
			return nil
		}
		return answer(http.StatusUnauthorized, "")
	}}
	plain := secret("right", "Opaque", map[string]string{"username": "strata", "password": password})
	wrong := secret("wrong", "Opaque", map[string]string{"username": "strata", "password": "wrong-battery"})
	config := secret("config", "kubernetes.io/dockerconfigjson", map[string]string{".dockerconfigjson": `{"auths": {"` + oci + `": {"username": "strata", "password": "` + password + `"}}}`})
	for _, c := range []struct {
		reason, address, kind, secret string
		ok                            bool
	}{
		{"a repository, with username and password", server.URL(), "default", "right", true},
		{"a repository, with the wrong ones", server.URL(), "default", "wrong", false},
		{"a repository, with none", server.URL(), "default", "", false},
		{"a repository, with one that is not there", server.URL(), "default", "missing", false},
		{"a registry, with username and password", "oci://" + oci + "/charts", "oci", "right", true},
		{"a registry, with a configuration of Docker", "oci://" + oci + "/charts", "oci", "config", true},
		{"a registry, with the wrong ones", "oci://" + oci + "/charts", "oci", "wrong", false},
		{"a registry, with none", "oci://" + oci + "/charts", "oci", "", false},
	} {
		for _, version := range []string{"1.0.0", "1.x"} {
			text := repository(c.address) + "\n  type: " + c.kind
			if c.secret != "" {
				text += "\n  secretRef: {name: " + c.secret + "}"
			}
			w := world{}.add(t, text).add(t, plain).add(t, wrong).add(t, config)
			_, err := renderer(t, Options{Transport: guarded}).Render(t.Context(), Request{Release: release(t, "settings", version, ""), Find: w.find, Trust: trustAll})
			if c.ok != (err == nil) {
				t.Errorf("%s: got %v", c.reason, err)
			}
			if err == nil {
				continue
			}
			wantProblem(t, err, ChartUnavailable)
			if strings.Contains(err.Error(), "wrong-battery") || !strings.Contains(err.Error(), "redentials") && !strings.Contains(err.Error(), "missing") {
				t.Errorf("%s: got %v", c.reason, err)
			}
		}
	}
}

// An index may name charts on other hosts: these get no password.
func TestCredentialsStayWithTheRepository(t *testing.T) {
	t.Parallel()
	data := packedChart(t, chartFiles("settings", "1.0.0", settings, nil))
	for _, pass := range []string{"false", "true"} {
		seen := &served{answer: func(request *http.Request) *http.Response {
			if strings.HasSuffix(request.URL.Path, "index.yaml") {
				return answer(200, "apiVersion: v1\nentries: {settings: [{name: settings, version: 1.0.0, urls: ['http://elsewhere.test/settings.tgz']}]}")
			}
			return answer(200, string(data))
		}}
		w := world{}.add(t, repository("http://charts.test")+"\n  secretRef: {name: right}\n  passCredentials: "+pass).
			add(t, secret("right", "Opaque", map[string]string{"username": "strata", "password": password}))
		if _, err := renderer(t, Options{Transport: seen}).Render(t.Context(), Request{Release: release(t, "settings", "1.x", ""), Find: w.find, Trust: trustAll}); err != nil {
			t.Fatal(err)
		}
		if got := seen.headers[0].Get("Authorization"); got == "" {
			t.Error("the repository was asked without credentials")
		}
		if got := seen.headers[1].Get("Authorization"); (got != "") != (pass == "true") {
			t.Errorf("passCredentials %s: another host was sent %q", pass, got)
		}
	}
}
