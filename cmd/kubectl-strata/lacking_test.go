// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/terminal"
)

// Every command that needs layers says what is missing where there is no cluster,
// no Strata in it, or no right to see them.
func TestCommandsSayWhatIsMissing(t *testing.T) {
	for _, args := range []string{
		"get", "tree", "why base", "events base", "graph", "plan", "diff", "can-upgrade --k8s 1.37", "history base", "hold base --reason x", "resume base",
		"reconcile base", "rollback base --to 1", "wait base", "deprovision base --plan", "import kraan",
	} {
		t.Run(args, func(t *testing.T) {
			if code, out, errOut := commandLine(t, nil, terminal.Screen{}, args); code != exitError || !strings.Contains(errOut, "no cluster is configured: set KUBECONFIG") || out != "" {
				t.Errorf("without a cluster: exit code %d: %s%s", code, out, errOut)
			}
			away := apitest.New(t)
			away.Close()
			if code, out, errOut := commandLine(t, away, terminal.Screen{}, args); code != exitError || !strings.Contains(errOut, "cannot reach the cluster at "+away.URL) || out != "" {
				t.Errorf("with a cluster that is away: exit code %d: %s%s", code, out, errOut)
			}
			for code, want := range map[int]string{
				http.StatusNotFound: "this cluster has no Strata", http.StatusForbidden: "addonslayers.kraan.io", http.StatusUnauthorized: "the cluster does not know who you are",
			} {
				server := apitest.New(t)
				server.Refuse["addonslayers.kraan.io"] = code
				if got, out, errOut := commandLine(t, server, terminal.Screen{}, args); got != exitError || !strings.Contains(errOut, want) || out != "" {
					t.Errorf("refused with %d: exit code %d: %s%s, want %q", code, got, out, errOut, want)
				}
			}
		})
	}
}
