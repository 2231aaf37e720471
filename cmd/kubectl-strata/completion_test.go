// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/answers/why"
	"github.com/strata-project/strata/internal/terminal"
)

// completed returns what a shell is told, without the directive.
func completed(t *testing.T, url string, words ...string) []string {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out, errOut bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), patience+time.Minute)
	defer cancel()
	if code := runAs(ctx, "/usr/bin/kubectl_complete-strata", append([]string{"--server", url}, words...), &out, &errOut); code != exitFine {
		t.Fatalf("exit code %d: %s", code, errOut.String())
	}
	if ctx.Err() != nil {
		t.Fatal("the cluster is waited for without an end")
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return lines[:len(lines)-1]
}

func TestShellsComplete(t *testing.T) {
	server := apitest.New(t, append(apitest.Load(t, "testdata/see.yaml"), apitest.Parse(t, `
apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: old}
status: {state: "Failed\u001b[2J", history: [{id: "3", version: 1.2.0, result: Failed, started: "2026-12-01T11:00:00Z"}, {id: "2", version: 1.1.0, result: Deployed, started: "2026-11-28T11:00:00Z"}]}
`)...)...)
	for _, test := range []struct{ args, want string }{
		{"why m", "mesh\tApplying 2.0.0|ml\tHold 0.3.0"},
		{"tree mesh ml b", "base\tDeployed 1.0.1"},
		{"tree base b", ""},
		{"why base m", ""},
		{"hold o", "old\tFailed^[[2J"},
		{"clusters fl", "fleet/prod\tReady v1.35.1"},
		{"get --output w", "wide"},
		{"tree -o ", "json|yaml"},
		{"wait --for d", "deployed"},
		{"events --types W", "Warning"},
		{"rollback old --to ", "3\t1.2.0 Failed 2026-12-01 11:00:00|2\t1.1.0 Deployed 2026-11-28 11:00:00"},
		{"rollback nobody --to ", ""},
		{"owner p", "pod/"},
		{"owner -n mesh helmrelease/i", "helmrelease/istiod\tnot ready"},
		{"owner -n mesh pod istiod-o", "istiod-old"},
		{"owner widget/x", ""},
		{"version ", ""},
		{"own", "owner\tSay which layer, file and revision an object comes from"},
	} {
		words := strings.Split(test.args, " ")
		if got := strings.Join(completed(t, server.URL, words...), "|"); got != test.want {
			t.Errorf("%s: %q, want %q", test.args, got, test.want)
		}
	}
}

// A cluster that is away is waited for as long as a shell waits, and nothing is
// said.
func TestCompletionOfAClusterThatIsAway(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if got := completed(t, "http://"+silent.Addr().String(), "why", ""); len(got) > 0 {
		t.Errorf("completes %q", got)
	}
	if got := completed(t, "http://127.0.0.1:1", "why", ""); len(got) > 0 {
		t.Errorf("completes %q", got)
	}
}

// The shell completes folders by itself.
func TestFoldersAreLeftToTheShell(t *testing.T) {
	command, _, err := newCommand(newTool(&bytes.Buffer{}, &bytes.Buffer{})).Find([]string{"lint"})
	if err != nil || command.ValidArgsFunction != nil {
		t.Errorf("lint completes its folders: %v", err)
	}
}

func TestContextsAreCompleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte("apiVersion: v1\nkind: Config\ncontexts: [{name: blue, context: {}}, {name: green, context: {}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(completed(t, "http://127.0.0.1:1", "get", "--kubeconfig", path, "--context", "b"), "|"); got != "blue" {
		t.Errorf("contexts %q", got)
	}
}

func TestScriptsForShells(t *testing.T) {
	for shell, word := range map[string]string{
		"bash": "complete -o default -F __start_kubectl-strata kubectl-strata", "zsh": "#compdef kubectl-strata", "fish": "complete -c kubectl-strata", "powershell": "-CommandName 'kubectl-strata'",
	} {
		if code, out, errOut := commandLine(t, nil, terminal.Screen{}, "completion "+shell); code != exitFine || !strings.Contains(out, word) {
			t.Errorf("%s: exit code %d: %s%.300s", shell, code, errOut, out)
		}
	}
}

// asFlux runs a command line as Flux's plug-in.
func asFlux(t *testing.T, words ...string) (code int, out, errOut string) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Cleanup(func() { program = asKubectl })
	var stdout, stderr bytes.Buffer
	code = runAs(t.Context(), "/usr/bin/flux-strata", words, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// As Flux's plug-in it calls itself so in all that it says, and leaves what it shows
// as it is.
func TestFluxStrata(t *testing.T) {
	server := seen(t)
	for _, words := range [][]string{{"--help"}, {"tree", "--help"}, {"rollback", "--help"}, {"rollback", "x"}, {"why", "nobody", "--server", server.URL}, {"completion", "bash"}, {"get", "--wrong"}} {
		_, out, errOut := asFlux(t, words...)
		if text := out + errOut; strings.Contains(text, "kubectl strata") || strings.Contains(text, "kubectl-strata completion") || !strings.Contains(text, "flux strata") && !strings.Contains(text, "flux-strata") {
			t.Errorf("%q says\n%.600s", words, text)
		}
	}
	if _, _, errOut := asFlux(t, "rollback", "x"); errOut != "flux strata: --to is missing: flux strata history x shows the deployments\n" {
		t.Errorf("an error is %q", errOut)
	}
	if code, out, _ := asFlux(t, "why", "ml", "--server", server.URL); code != exitBlocked || !strings.Contains(out, "flux strata resume ml") {
		t.Errorf("advice: exit code %d: %s", code, out)
	}
	program = asKubectl
	if _, out, _ := commandLine(t, nil, terminal.Screen{}, "--help"); !strings.Contains(out, "kubectl strata [command]") {
		t.Errorf("kubectl's help is\n%s", out)
	}
}

// What is advised exists.
func TestAdviceNamesCommands(t *testing.T) {
	root := newCommand(newTool(&bytes.Buffer{}, &bytes.Buffer{}))
	for _, verb := range why.Verbs() {
		if found, _, err := root.Find([]string{verb}); err != nil || found == root {
			t.Errorf("there is no command %s: %v", verb, err)
		}
	}
}
