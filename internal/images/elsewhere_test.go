// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package images_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/strata-project/strata/internal/images"
)

// A registry leads to nothing that trusts this machine, neither by a redirect nor by where tokens
// are: whatever listens there is not asked.
func TestRegistryLeadsToNoSpecialAddress(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var asked atomic.Int32
	beside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(beside.Close)
	port := beside.URL[strings.LastIndex(beside.URL, ":"):]
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusTemporaryRedirect) }
	}
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string
		reason string
	}{
		"another port": {redirect(beside.URL + "/a"), "which is a loopback address", "what listens beside the registry is not the registry"},
		"a name":       {redirect("http://localhost" + port), "which is a loopback address", "names are judged by where they lead"},
		"the metadata": {redirect("http://169.254.169.254/latest/"), "which is a link-local address", "a cloud tells its machines secrets there"},
		"in IPv6":      {redirect("http://[::ffff:127.0.0.1]" + port), "which is a loopback address", "it is the same address"},
		"without http": {redirect("file:///etc/passwd"), "unsupported protocol", "files are no answers of a registry"},
		"for the token": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+beside.URL+`/token",service="a"`)
			w.WriteHeader(http.StatusUnauthorized)
		}, "which is a loopback address", "a login would be sent there"},
	} {
		t.Run(name, func(t *testing.T) {
			registry := httptest.NewServer(test.answer)
			defer registry.Close()
			_, err := f.store.Program(t.Context(), images.Image{
				Address: "oci://" + strings.TrimPrefix(registry.URL, "http://") + "/plugins/database", Digest: "sha256:" + strings.Repeat("a", 64),
			})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: error %v, want %q", test.reason, err, test.want)
			}
		})
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("%d requests came to what a registry has led to", n)
	}
}
