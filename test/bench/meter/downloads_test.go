// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDownloads(t *testing.T) {
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone.tar.gz" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, "bytes of "+r.URL.Path)
	}))
	defer storage.Close()
	address := strings.TrimPrefix(storage.URL, "http://")
	downloads, err := CountDownloads(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range []struct {
		method, path string
		status       int
		body         string
	}{
		{http.MethodGet, "/a.tar.gz", http.StatusOK, "bytes of /a.tar.gz"},
		{http.MethodGet, "/a.tar.gz", http.StatusOK, "bytes of /a.tar.gz"},
		{http.MethodGet, "/b.tar.gz", http.StatusOK, "bytes of /b.tar.gz"},
		{http.MethodGet, "/gone.tar.gz", http.StatusNotFound, "404 page not found\n"},
		{http.MethodHead, "/a.tar.gz", http.StatusOK, ""},
	} {
		status, body := ask(t, request.method, "http://"+downloads.Addr()+request.path)
		if status != request.status || body != request.body {
			t.Errorf("%s %s: got %d %q, want %d %q", request.method, request.path, status, body, request.status, request.body)
		}
	}
	if diff := cmp.Diff(map[string]int{"/a.tar.gz": 2, "/b.tar.gz": 1}, downloads.ByPath()); diff != "" {
		t.Error(diff)
	}
	if got := downloads.Total(); got != 3 {
		t.Errorf("%d downloads in all, want 3", got)
	}
	want := []string{"--storage-addr=" + address, "--storage-adv-addr=" + downloads.Addr()}
	if diff := cmp.Diff(want, downloads.Args()); diff != "" {
		t.Error(diff)
	}

	storage.Close()
	if status, _ := ask(t, http.MethodGet, "http://"+downloads.Addr()+"/a.tar.gz"); status != http.StatusBadGateway || downloads.Total() != 3 {
		t.Errorf("without a storage: status %d, %d downloads, want 502 and 3", status, downloads.Total())
	}
	if err := downloads.Close(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get("http://" + downloads.Addr() + "/a.tar.gz"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("it answers after its end: %v", err)
	}
}

func ask(t *testing.T, method, url string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}
