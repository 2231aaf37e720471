// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/strata-project/strata/internal/directories"
)

// release is a manifest of a HelmRelease.
func release(name string) string {
	return fmt.Sprintf("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: %s\n  namespace: addons\nspec:\n  interval: 1m\n", name)
}

func configMap(name, data string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata: %s\n", name, data)
}

// files makes a file system of names and contents.
func files(pairs ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return m
}

// archive packs files given as names and contents.
func archive(t testing.TB, pairs ...string) []byte {
	t.Helper()
	headers := make([]tar.Header, 0, len(pairs)/2)
	contents := make([]string, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		headers = append(headers, tar.Header{Name: pairs[i], Typeflag: tar.TypeReg, Size: int64(len(pairs[i+1]))})
		contents = append(contents, pairs[i+1])
	}
	return pack(t, headers, contents)
}

func pack(t testing.TB, headers []tar.Header, contents []string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	writer := tar.NewWriter(zipped)
	for i := range headers {
		if err := writer.WriteHeader(&headers[i]); err != nil {
			t.Fatal(err)
		}
		if i < len(contents) {
			if _, err := io.WriteString(writer, contents[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(writer.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// origin serves archives and counts what it is asked for.
type origin struct {
	*httptest.Server
	gets atomic.Int64

	mu      sync.Mutex
	content map[string][]byte
}

func newOrigin(t testing.TB) *origin {
	t.Helper()
	o := &origin{content: map[string][]byte{}}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.gets.Add(1)
		o.mu.Lock()
		data, ok := o.content[r.URL.Path]
		o.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data)
	}))
	t.Cleanup(o.Close)
	return o
}

func (o *origin) serve(name string, data []byte) Artifact {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.content["/"+name] = data
	return Artifact{URL: o.URL + "/" + name, Revision: "main@" + name, Digest: digest.FromBytes(data).String(), Size: int64(len(data))}
}

// newStore returns a store that retries at once.
func newStore(t testing.TB, options Options) *Store {
	t.Helper()
	if options.Dir == "" {
		options.Dir = t.TempDir()
	}
	store, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	store.fetcher.wait = time.Millisecond
	return store
}

// names of what is in a folder.
func names(t testing.TB, dir string) []string {
	t.Helper()
	items, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, item := range items {
		all = append(all, item.Name())
	}
	return all
}

// objects of a directory, as kind and name.
func objs(directory *directories.Directory) []string {
	if directory == nil {
		return nil
	}
	var all []string
	for _, manifest := range directory.Manifests {
		all = append(all, manifest.Object.GetKind()+" "+manifest.Object.GetName())
	}
	return all
}

// mistake is what a ContentError says, or another error.
func mistake(err error) (reason, text string) {
	if err == nil {
		return "", ""
	}
	var content *directories.ContentError
	if errors.As(err, &content) {
		return content.Reason, content.Error()
	}
	return "not an author's", err.Error()
}
