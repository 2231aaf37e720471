// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/terminal"
)

func TestHistoryIsGolden(t *testing.T) {
	server := apitest.New(t, apitest.Parse(t, `
apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: base, generation: 3}
spec: {version: 1.2.0}
status:
  state: Failed
  version: 1.1.0
  history:
  - {id: "3", version: 1.2.0, revision: "main@sha1:89abcdef", started: "2026-12-01T11:00:00Z", duration: 5m0s, result: Failed, message: "HelmRelease apps/web has failed: no such chart"}
  - {id: "2", version: 1.1.0, revision: "main@sha1:01234567", started: "2026-11-28T11:00:00Z", duration: 1m30s, result: Deployed, kept: true}
`)...)
	for name, screen := range map[string]terminal.Screen{"history.txt": {}, "history-40.txt": {Width: 40}} {
		code, out, errOut := commandLine(t, server, screen, "history base")
		if code != exitFine || errOut != "" {
			t.Errorf("exit code %d: %s", code, errOut)
		}
		golden(t, name, out)
	}
}
