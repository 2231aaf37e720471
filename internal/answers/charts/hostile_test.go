// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Kustomize and its tables are not made for several at once.
func TestManyRenderAtOnce(t *testing.T) {
	t.Parallel()
	server := chartServer(t)
	if err := server.AddFiles(chartFiles("it", "1.0.0", settings, nil)); err != nil {
		t.Fatal(err)
	}
	w := world{}.add(t, repository(server.URL()))
	r := renderer(t, Options{})
	of := release(t, "it", "1.x", "  postRenderers: [{kustomize: {images: [{name: a, newTag: b}]}}]\n")
	var group sync.WaitGroup
	texts := make([]string, 8)
	for i := range texts {
		group.Go(func() {
			got, err := r.Render(t.Context(), Request{Release: of, Find: w.find, Trust: trustAll})
			if err != nil {
				t.Error(err)
				return
			}
			texts[i] = text(t, got.Objects)
		})
	}
	group.Wait()
	for _, each := range texts {
		if diff := cmp.Diff(texts[0], each); diff != "" {
			t.Error(diff)
		}
	}
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	data := packedChart(t, chartFiles("settings", "1.0.0", settings, nil))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if strings.HasSuffix(request.URL.Path, "index.yaml") {
			_, _ = w.Write([]byte("apiVersion: v1\nentries: {settings: [{name: settings, version: 1.0.0, urls: ['a/settings.tgz'], digest: '" + sum(data) + "'}]}"))
			return
		}
		_, _ = w.Write(data)
	}))
	server.Config.ErrorLog = nil
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	w := world{}.add(t, repository(server.URL)+"/charts\n  certSecretRef: {name: ca}").
		add(t, secret("ca", "Opaque", map[string]string{"ca.crt": string(ca)}))
	if _, err := renderer(t, Options{}).Render(t.Context(), Request{Release: release(t, "settings", "1.x", ""), Find: w.find, Trust: trustAll}); err != nil {
		t.Error(err)
	}
	without := world{}.add(t, repository(server.URL))
	_, err := renderer(t, Options{}).Render(t.Context(), Request{Release: release(t, "settings", "1.x", ""), Find: without.find, Trust: trustAll})
	wantProblem(t, err, ChartUnavailable, "certificate")
	wrong := world{}.add(t, repository(server.URL)+"\n  certSecretRef: {name: ca}").add(t, secret("ca", "Opaque", map[string]string{"ca.crt": "hunter2"}))
	_, err = renderer(t, Options{}).Render(t.Context(), Request{Release: release(t, "settings", "1.x", ""), Find: wrong.find, Trust: trustAll})
	wantProblem(t, err, ChartUnavailable, "Secret flux-system/ca", "ca.crt")
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a secret is in %v", err)
	}
}

func TestTheCache(t *testing.T) {
	t.Parallel()
	c := &cache{dir: t.TempDir(), limit: 10}
	a, b, large := []byte("aaaa"), []byte("bbbb"), []byte("more than ten bytes")
	c.put(sum(a), a)
	c.put(sum(b), b)
	c.put(sum(large), large)
	if c.get(sum(a)) == nil || c.get(sum(b)) == nil || c.get(sum(large)) != nil {
		t.Error("what fits is kept, and what does not is not")
	}
	// Another one takes the place of what was not used for longest.
	third := []byte("cccc")
	c.put(sum(third), third)
	if c.get(sum(third)) == nil || (c.get(sum(a)) == nil) == (c.get(sum(b)) == nil) {
		t.Error("it does not make room")
	}
	if err := os.WriteFile(filepath.Join(c.dir, sum(third)+suffix), []byte("else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c.get(sum(third)) != nil {
		t.Error("what was changed is not what it was")
	}
	for _, name := range []string{"", "../" + sum(a), strings.Repeat("g", 64)} {
		if c.get(name) != nil {
			t.Errorf("%q is found", name)
		}
	}
	var none *cache
	none.put(sum(a), a)
	if none.get(sum(a)) != nil {
		t.Error("nothing is kept without a folder")
	}
}

// What comes from outside may be anything, and is an error at most.
func FuzzUnpack(f *testing.F) {
	f.Add([]byte{}, "apiVersion: v2\nname: a\nversion: 1.0.0\n", "a: b", "kind: {{ .Values.a }}")
	f.Add([]byte("\x1f\x8b"), "dependencies: [null]\nname: a\nversion: 1\napiVersion: v1", "[]", "{{ template }}")
	f.Fuzz(func(_ *testing.T, packed []byte, meta, values, template string) {
		_, _ = unpack(packed, 1<<20)
		_, _ = loadFolder(treeOf(map[string]string{
			"Chart.yaml": meta, "values.yaml": values, "templates/a.yaml": template, "Chart.lock": meta, "requirements.yaml": meta, "charts/b/Chart.yaml": meta, ".helmignore": values,
		}), ".", 1<<20)
		_, _ = parseIndex([]byte(meta))
		_, _ = decode(nil, template)
	})
}
