// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// archiveOf is an archive as envtest's are, with programs that print a text.
func archiveOf(t *testing.T, texts map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	files := tar.NewWriter(compressed)
	for name, text := range texts {
		script := "#!/bin/sh\necho " + text + "\n"
		if err := files.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(script))}); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write([]byte(script)); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Programs of an archive are used in place of those that would be built, where its digest is
// the one that is pinned. It is downloaded once. Where it cannot be had, all is built.
func TestTogetherTakesPrebuiltPrograms(t *testing.T) {
	content := archiveOf(t, map[string]string{"controller-tools/envtest/one": "prebuilt", "../two": "elsewhere", "three": "unwanted"})
	asked, status := 0, http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(status)
		_, _ = w.Write(content)
	}))
	defer server.Close()
	sum := sha512.Sum512(content)
	line := func(digest string) string {
		return "plan9/mips " + server.URL + "/none 00\n" + runtime.GOOS + "/" + runtime.GOARCH + " " + server.URL + "/envtest.tar.gz " + digest + "\n"
	}
	for _, test := range []struct {
		name, list string
		status     int
		one, says  string
		asked      int
	}{
		{"taken", line(hex.EncodeToString(sum[:])), http.StatusOK, "prebuilt", "/one\n", 1},
		{"another digest", line(strings.Repeat("0", 128)), http.StatusOK, "one", "its SHA-512 is " + hex.EncodeToString(sum[:]), 1},
		{"gone", line(hex.EncodeToString(sum[:])), http.StatusNotFound, "one", "404 Not Found", 1},
		{"none for this platform", "plan9/mips " + server.URL + " 00\n", http.StatusOK, "one", "building one, two", 0},
		{"not asked for", "", http.StatusOK, "one", "building one, two", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, out := newTogether(t)
			asked, status, g.prebuilt = 0, test.status, test.list
			dir, err := g.ensure(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if one := printed(t, dir, "one"); one != test.one || !strings.Contains(out.String(), test.says) || asked != test.asked {
				t.Errorf("one prints %q after %d requests, want %q after %d; it says, without %q:\n%s", one, asked, test.one, test.asked, test.says, out)
			}
			if two := printed(t, dir, "two"); test.one == "prebuilt" != (two == "elsewhere") {
				t.Errorf("two prints %q", two)
			}
			if _, err := g.ensure(t.Context()); err != nil || test.one == "prebuilt" && asked != 1 {
				t.Errorf("the second time: %v, after %d requests", err, asked)
			}
			if left, err := filepath.Glob(filepath.Join(filepath.Dir(g.dir), "prebuilt", ".new-*")); err != nil || len(left) > 0 {
				t.Errorf("%v is left: %v", left, err)
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(g.dir), "two")); err == nil {
				t.Error("a file of the archive was written outside")
			}
		})
	}
}

// The archives are of the minor version of Kubernetes that is pinned, and have digests.
func TestPrebuiltIsOfTheVersionThatIsPinned(t *testing.T) {
	modules, err := findModules()
	if err != nil {
		t.Fatal(err)
	}
	version, err := together{builder: builder{modules: modules}}.kubernetes()
	if err != nil {
		t.Fatal(err)
	}
	minor := version[:strings.LastIndex(version, ".")]
	lines := 0
	for line := range strings.Lines(prebuiltArchives) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		lines++
		if !regexp.MustCompile(`^[a-z0-9]+/[a-z0-9]+ https://\S+-` + regexp.QuoteMeta(minor) + `\.[0-9]+-\S+\.tar\.gz [0-9a-f]{128}\n$`).MatchString(line) {
			t.Errorf("%q: want a platform, an archive of Kubernetes %s, and a SHA-512", line, minor)
		}
	}
	if lines < 4 {
		t.Errorf("there are %d archives", lines)
	}
}
