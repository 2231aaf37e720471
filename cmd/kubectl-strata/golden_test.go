// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/terminal"
)

var update = flag.Bool("update", false, "write the golden files again")

// noon is when golden files were written.
var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// golden compares an output with testdata/golden/NAME.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (go test -update writes it again), -want +got:\n%s", path, diff)
	}
}

// commandLine runs a command line at noon against a server, which may be nil, on
// a screen.
func commandLine(t *testing.T, server *apitest.Server, screen terminal.Screen, args string) (code int, out, errOut string) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	var stdout, stderr bytes.Buffer
	with := newTool(&stdout, &stderr)
	with.Screen, with.Now = screen, func() time.Time { return noon }
	words := strings.Fields(args)
	if server != nil {
		words = append(words, "--server", server.URL)
	}
	code = with.run(t.Context(), words)
	return code, stdout.String(), stderr.String()
}
