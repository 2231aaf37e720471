// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/strata-project/strata/test/reads"
)

// build builds the controller for a test.
func build(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the controller")
	}
	path := filepath.Join(t.TempDir(), "strata")
	reads.AddPrograms(".", ".")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-X main.version=v1.2.3-test", "-o", path, ".")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return path
}

func TestBinary(t *testing.T) {
	binary := build(t)
	t.Run("help", func(t *testing.T) { testHelp(t, binary) })
	tests := map[string]struct {
		args           []string
		code           int
		stdout, stderr string
		// lines of stderr; a mistake needs no more than two.
		lines int
	}{
		"version":         {args: []string{"--version"}, stdout: "strata v1.2.3-test\n"},
		"unknown flag":    {args: []string{"--unknown"}, code: 2, stderr: "strata: unknown flag: --unknown\nusage: strata [flags]", lines: 2},
		"contradiction":   {args: []string{"--metrics-addr=:1", "--health-addr=:1"}, code: 2, stderr: "--metrics-addr and --health-addr are both :1\nusage: strata [flags]", lines: 2},
		"argument":        {args: []string{"serve"}, code: 2, stderr: `"serve" is no flag`, lines: 2},
		"no cluster":      {args: []string{"--kubeconfig=" + filepath.Join(t.TempDir(), "missing")}, code: 1, stderr: "missing: no such file or directory"},
		"server is away":  {args: []string{"--kubeconfig=" + unreachable(t)}, code: 1, stderr: "cannot ask for the cluster's version"},
		"no certificate":  {args: []string{"--metrics-secure", "--metrics-cert-dir=" + t.TempDir(), "--kubeconfig=" + unreachable(t)}, code: 1, stderr: "--metrics-cert-dir has no certificate"},
		"version at once": {args: []string{"--version", "--concurrent=0"}, code: 2, stderr: "--concurrent is 0", lines: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var stdout, stderr bytes.Buffer
			cmd := exec.CommandContext(ctx, binary, test.args...)
			cmd.Env = []string{"HOME=" + t.TempDir()}
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			code := 0
			if err := cmd.Run(); err != nil {
				var exit *exec.ExitError
				if !errors.As(err, &exit) {
					t.Fatal(err)
				}
				code = exit.ExitCode()
			}
			if code != test.code {
				t.Errorf("exit code is %d, want %d", code, test.code)
			}
			if stdout.String() != test.stdout {
				t.Errorf("stdout is %q, want %q", stdout.String(), test.stdout)
			}
			if !strings.Contains(stderr.String(), test.stderr) {
				t.Errorf("stderr is %q, want %q in it", stderr.String(), test.stderr)
			}
			if lines := strings.Count(stderr.String(), "\n"); test.lines > 0 && lines != test.lines {
				t.Errorf("stderr has %d lines, want %d:\n%s", lines, test.lines, stderr.String())
			}
		})
	}
}

func testHelp(t *testing.T, binary string) {
	output, err := exec.CommandContext(t.Context(), binary, "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("--help fails: %v\n%s", err, output)
	}
	for _, flag := range []string{
		"kubeconfig", "metrics-addr", "health-addr", "enable-leader-election", "sync-period", "concurrent",
		"kube-api-qps", "kube-api-burst", "watch-label-selector", "log-level", "log-encoding", "runtime-namespace",
		"artifact-cache-dir", "artifact-cache-size", "artifact-max-size", "pprof", "metrics-secure", "metrics-cert-dir", "version", "default-service-account", "no-cross-namespace-refs",
	} {
		if !strings.Contains(string(output), "--"+flag) {
			t.Errorf("--help does not list --%s", flag)
		}
	}
}

// unreachable returns a kubeconfig of a server that does not answer.
func unreachable(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := `apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test}}]
clusters: [{name: test, cluster: {server: "` + server.URL + `"}}]
users: [{name: test, user: {}}]
`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// syncedCache is a cache that is filled, or never will be.
type syncedCache struct {
	cache.Cache
	filled bool
}

func (c syncedCache) WaitForCacheSync(ctx context.Context) bool {
	if !c.filled {
		<-ctx.Done()
	}
	return c.filled
}

func TestCachesReady(t *testing.T) { synctest.Test(t, cachesAreReady) }

func cachesAreReady(t *testing.T) {
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)
	if err := cachesReady(syncedCache{filled: true})(request); err != nil {
		t.Errorf("not ready although the caches are filled: %v", err)
	}
	begun := time.Now()
	if err := cachesReady(syncedCache{})(request); err == nil || !strings.Contains(err.Error(), "the caches are not filled yet") {
		t.Errorf("the caches are not filled: %v", err)
	}
	if took := time.Since(begun); took != time.Second {
		t.Errorf("the answer took %s: a probe gives up after a second", took)
	}
}
