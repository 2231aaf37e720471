// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/providers"
	"github.com/strata-project/strata/internal/providers/providerstest"
)

// A plug-in that keeps its contract is told from one that does not, and from what is none.
func TestCapabilityTest(t *testing.T) {
	folder := t.TempDir()
	program := filepath.Join(folder, providers.FileOf(providerstest.Naughty(t, folder)))
	none := filepath.Join(t.TempDir(), "none")
	if err := os.WriteFile(none, []byte("#!/bin/sh\nexit 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"it keeps it":     {[]string{program}, 0, "says the same after a restart"},
		"it does not":     {[]string{program, "--parameters", `{"do": "fail"}`}, 2, "says: it cannot be planned"},
		"it is none":      {[]string{none}, 2, "cannot be started"},
		"it is not there": {[]string{none + "s"}, 1, ""},
		"no JSON":         {[]string{program, "--parameters", "{"}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			code := run(t.Context(), append([]string{"capability", "test"}, test.args...), &said, io.Discard)
			out := said.String()
			if code != test.code || !strings.Contains(out, test.want) {
				t.Errorf("exit code %d: %s", code, out)
			}
		})
	}
	var out bytes.Buffer
	code := run(t.Context(), []string{"capability", "test", program, "-o", "json"}, &out, io.Discard)
	said := struct {
		Digest string
		Checks []struct{ Passed bool }
	}{}
	if err := json.Unmarshal(out.Bytes(), &said); err != nil || code != 0 || len(said.Checks) < 5 || !strings.HasPrefix(said.Digest, "sha256:") {
		t.Errorf("exit code %d, %v: %s", code, err, out.String())
	}
}
