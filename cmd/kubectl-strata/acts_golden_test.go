// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/terminal"
)

// What the commands that act say, and what they write, one after the other.
func TestActsAreGolden(t *testing.T) {
	server := apitest.New(t, apitest.Parse(t, `
apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: base, generation: 1, resourceVersion: "5", labels: {team: platform}}
spec: {version: 1.1.0, source: {name: addons, namespace: flux-system, path: ./base}}
status:
  state: Deployed
  version: 1.1.0
  revision: main@sha1:89abcdef
  observedGeneration: 1
  conditions: [{type: Ready, status: "True", reason: Deployed, message: "", lastTransitionTime: "2026-12-01T11:00:00Z"}]
  history:
  - {id: "2", version: 1.1.0, revision: "main@sha1:89abcdef", started: "2026-12-01T10:59:00Z", duration: 1m0s, result: Deployed}
  - {id: "1", version: 1.0.0, revision: "main@sha1:01234567", started: "2026-11-28T11:00:00Z", duration: 1m30s, result: Deployed, kept: true}
`)...)
	var text strings.Builder
	for _, args := range []string{
		"hold base --reason freeze --until 2036-12-01T08:00:00Z --releases", "resume -l team=platform", "resume base", "wait base --for deployed",
		"rollback base --to 1", "rollback base --to 3", "hold bse --reason x", "wait base --for nothing", "reconcile base", "version --client",
	} {
		code, out, errOut := commandLine(t, server, terminal.Screen{}, args)
		fmt.Fprintf(&text, "$ kubectl strata %s\n%s%sexit code %d\n\n", args, out, errOut, code)
	}
	for _, write := range server.Writes() {
		// What is asked for by the time is another one each time.
		if before, after, found := strings.Cut(write, "requestedAt\":\""); found {
			_, after, _ = strings.Cut(after, `"`)
			write = before + `requestedAt":"NOW"` + after
		}
		fmt.Fprintln(&text, write)
	}
	golden(t, "acts.txt", strings.ReplaceAll(text.String(), server.URL, "https://cluster.example"))
}
