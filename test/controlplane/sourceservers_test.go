// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
)

// pulled returns the files of a tag, read as any client of the registry does.
func pulled(ctx context.Context, t *testing.T, s *OCIServer, repository, tag string) (map[string]string, error) {
	t.Helper()
	client, err := remote.NewRepository(strings.TrimPrefix(s.URL(repository), "oci://"))
	if err != nil {
		t.Fatal(err)
	}
	client.PlainHTTP = true
	manifest, err := client.Resolve(ctx, tag)
	if err != nil {
		return nil, err
	}
	found, err := content.Successors(ctx, client, manifest)
	if err != nil {
		return nil, err
	}
	for _, blob := range found {
		if blob.MediaType != fluxContent {
			continue
		}
		archive, err := content.FetchAll(ctx, client, blob)
		if err != nil {
			return nil, err
		}
		return unpacked(t, archive), nil
	}
	return nil, errors.New("there is no layer of Flux's media type")
}

func unpacked(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(data)
	}
}

func TestOCIServer(t *testing.T) {
	t.Parallel()
	s, err := NewOCIServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	seen := map[string]bool{}
	for _, step := range []struct {
		reason string
		files  map[string]string
	}{
		{"a tag", map[string]string{"a.txt": "1", "dir/b.txt": "1"}},
		{"a tag that moves", map[string]string{"a.txt": "2"}},
		{"the same again is a new revision", map[string]string{"a.txt": "2"}},
	} {
		revision, err := s.Push(t.Context(), "team/addons", "latest", step.files)
		if err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		if !strings.HasPrefix(revision, "latest@sha256:") || seen[revision] {
			t.Errorf("%s: revision %q is not new", step.reason, revision)
		}
		seen[revision] = true
		got, err := pulled(t.Context(), t, s, "team/addons", "latest")
		if err != nil || !maps.Equal(got, step.files) {
			t.Errorf("%s: got %v, %v, want %v", step.reason, got, err, step.files)
		}
	}
	if _, err := pulled(t.Context(), t, s, "team/addons", "other"); err == nil || !strings.Contains(err.Error(), "team/addons:other: not found") {
		t.Errorf("a tag that nobody pushed: %v", err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := pulled(t.Context(), t, s, "team/addons", "latest"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a registry that is stopped answers: %v", err)
	}
}

func TestS3Server(t *testing.T) {
	t.Parallel()
	s, err := NewS3Server()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	get := func(key string) (int, string) {
		response, err := http.Get("http://" + s.Endpoint() + "/addons/" + key)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := http.ParseTime(response.Header.Get("Last-Modified")); err != nil && response.StatusCode == http.StatusOK {
			t.Errorf("%s has no time that a client understands: %v", key, err)
		}
		return response.StatusCode, string(body)
	}
	if err := s.Put("addons", map[string]string{"a.txt": "1"}); err == nil || !strings.Contains(err.Error(), "cannot put a.txt into bucket addons: NoSuchBucket") {
		t.Errorf("a bucket that nobody made: %v", err)
	}
	if err := s.NewBucket("addons"); err != nil {
		t.Fatal(err)
	}
	if err := s.Put("addons", map[string]string{"a.txt": "1", "dir/b.txt": "1"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Put("addons", map[string]string{"a.txt": "2"}); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"a.txt": "2", "dir/b.txt": "1"} {
		if status, got := get(key); status != http.StatusOK || got != want {
			t.Errorf("%s is %d %q, want %q", key, status, got, want)
		}
	}
	if err := s.Delete("addons", "dir/b.txt"); err != nil {
		t.Fatal(err)
	}
	if status, _ := get("dir/b.txt"); status != http.StatusNotFound {
		t.Errorf("an object that was deleted answers %d", status)
	}
}
