// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/terminal"
)

// narrow and colourful are screens that golden files are written for.
var (
	narrow    = terminal.Screen{Width: 40}
	colourful = terminal.Screen{Width: 100, Colour: true}
)

// fits says that no line is wider than a narrow screen.
func fits(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if length := utf8.RuneCountInString(strings.TrimRight(line, "\n")); length > narrow.Width {
			t.Errorf("a line has %d columns: %s", length, line)
		}
	}
}

func seen(t testing.TB) *apitest.Server {
	t.Helper()
	return apitest.New(t, apitest.Load(t, "testdata/see.yaml")...)
}

func TestTreeIsGolden(t *testing.T) {
	server := seen(t)
	for _, test := range []struct {
		name, args string
		screen     terminal.Screen
		code       int
	}{
		{"tree.txt", "tree", terminal.Screen{}, exitBlocked},
		{"tree-base-objects.txt", "tree base --objects", terminal.Screen{}, exitFine},
		{"tree-40.txt", "tree apps mesh --objects --depth 3", narrow, exitBlocked},
		{"tree-colour.txt", "tree mesh edge --objects", colourful, exitBlocked},
		{"tree.json", "tree apps --depth 3 -o json", terminal.Screen{}, exitBlocked},
		{"tree-labels.yaml", "tree -l team=platform --objects -o yaml", terminal.Screen{}, exitFine},
	} {
		code, out, errOut := commandLine(t, server, test.screen, test.args)
		if code != test.code || errOut != "" {
			t.Errorf("%s: exit code %d: %s", test.args, code, errOut)
		}
		golden(t, test.name, out)
		if test.screen == narrow {
			fits(t, out)
		}
	}
}

func TestTreeSaysWhatIsMissing(t *testing.T) {
	server := seen(t)
	server.Refuse["helmreleases.helm.toolkit.fluxcd.io"], server.Refuse["gitrepositories.source.toolkit.fluxcd.io"] = http.StatusForbidden, http.StatusForbidden
	code, out, errOut := commandLine(t, server, terminal.Screen{}, "tree base --objects")
	if code != exitFine || !strings.Contains(out, "HelmRelease kube-system/metrics-server  Ready") || !strings.Contains(errOut, "you may not list gitrepositories.source.toolkit.fluxcd.io, helmreleases.helm.toolkit.fluxcd.io") {
		t.Errorf("without releases: exit code %d\n%s%s", code, out, errOut)
	}

	server = seen(t)
	server.Refuse["deployments.apps"] = http.StatusForbidden
	code, out, errOut = commandLine(t, server, terminal.Screen{}, "tree base --objects")
	if code != exitFine || !strings.Contains(out, "Deployment kube-system/metrics-server  NotRead  you may not list them") || !strings.Contains(errOut, "you may not list Deployment.apps") {
		t.Errorf("without Deployments: exit code %d\n%s%s", code, out, errOut)
	}

	code, _, errOut = commandLine(t, server, terminal.Screen{}, "tree bse")
	if code != exitError || !strings.Contains(errOut, "there is no layer bse; did you mean base?") {
		t.Errorf("a wrong name: exit code %d: %s", code, errOut)
	}
	for _, args := range []string{"tree base -l a=b", "tree --depth -1", "tree -o name", "tree -l a=("} {
		if code, _, errOut := commandLine(t, server, terminal.Screen{}, args); code != exitError || errOut == "" {
			t.Errorf("%s: exit code %d: %s", args, code, errOut)
		}
	}
	for _, request := range server.Requests() {
		if strings.Contains(request, "/secrets") {
			t.Errorf("Secrets are read: %s", request)
		}
	}
	if code, out, _ := commandLine(t, apitest.New(t), terminal.Screen{}, "tree"); code != exitFine || out != "No layers found.\n" {
		t.Errorf("no layers: exit code %d: %s", code, out)
	}
}

// chains writes layers in chains, each with releases, each with what Helm has made.
func chains(layers, releases, entries int) string {
	var text strings.Builder
	for l := range layers {
		fmt.Fprintf(&text, "apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: layer-%03d, generation: 1}\nspec:\n  version: 1.0.0\n  source: {name: addons, namespace: flux-system, path: ./layer}\n", l)
		if l > 0 {
			fmt.Fprintf(&text, "  prereqs: {dependsOn: [layer-%03d, layer-%03d]}\n", l/2, l-1)
		}
		text.WriteString("status:\n  state: ApplyPending\n  observedGeneration: 1\n  conditions: [{type: Ready, status: \"False\", reason: DependencyNotDeployed, message: waits}]\n  blockedBy:\n")
		if l == 0 {
			text.WriteString("  - {kind: HelmRelease, namespace: ns-0, name: release-0, reason: InstallFailed, message: failed}\n")
		} else {
			fmt.Fprintf(&text, "  - {kind: AddonsLayer, name: layer-%03d, reason: DependencyNotDeployed, message: waits}\n  - {depth: 1, kind: HelmRelease, namespace: ns-0, name: release-0, reason: InstallFailed, message: failed}\n", l-1)
		}
		text.WriteString("  resources:\n")
		for r := range releases {
			fmt.Fprintf(&text, "  - {namespace: ns-%d, name: release-%d, kind: helmreleases.helm.toolkit.fluxcd.io, status: InstallFailed}\n", l, r)
		}
		for r := range releases {
			fmt.Fprintf(&text, "---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: release-%d, namespace: ns-%d}\nstatus:\n  conditions: [{type: Ready, status: \"False\", reason: InstallFailed, message: failed}]\n  inventory:\n    entries:\n", r, l)
			for e := range entries {
				fmt.Fprintf(&text, "    - {id: ns-%d_object-%d-%d_apps_Deployment, v: v1}\n", l, r, e)
			}
		}
		text.WriteString("---\n")
	}
	return text.String()
}

// lists counts the requests for each list.
func lists(requests []string) map[string]int {
	counts := map[string]int{}
	for _, request := range requests {
		path, _, _ := strings.Cut(request, "?")
		counts[path]++
	}
	return counts
}

func TestTreeAsksAtMostOnceForEachKind(t *testing.T) {
	server := apitest.New(t, apitest.Parse(t, chains(20, 5, 10))...)
	for _, args := range []string{"tree", "tree --objects"} {
		before := len(server.Requests())
		if code, out, errOut := commandLine(t, server, terminal.Screen{}, args); code != exitBlocked || strings.Count(out, "HelmRelease ns-") < 100 {
			t.Errorf("%s: exit code %d: %s", args, code, errOut)
		}
		requests := server.Requests()[before:]
		for path, count := range lists(requests) {
			if count > 1 {
				t.Errorf("%s asks %d times for %s", args, count, path)
			}
		}
		if len(requests) > 12 {
			t.Errorf("%s asks %d times: %q", args, len(requests), requests)
		}
	}
}

func TestWhyIsGolden(t *testing.T) {
	server := seen(t)
	for _, test := range []struct {
		name, args string
		screen     terminal.Screen
		code       int
	}{
		{"status.txt", "status", terminal.Screen{}, exitBlocked},
		{"status-40.txt", "status", narrow, exitBlocked},
		{"status.json", "status -o json", terminal.Screen{}, exitBlocked},
		{"why.txt", "why apps", terminal.Screen{}, exitBlocked},
		{"why-base.txt", "why base", terminal.Screen{}, exitFine},
		{"why-hold.txt", "why ml", terminal.Screen{}, exitBlocked},
		{"why-remote.txt", "why edge", terminal.Screen{}, exitBlocked},
		{"why-40.txt", "why apps", narrow, exitBlocked},
		{"why-colour.txt", "why apps", colourful, exitBlocked},
		{"why.json", "why apps -o json", terminal.Screen{}, exitBlocked},
		{"why-base.yaml", "why base -o yaml", terminal.Screen{}, exitFine},
	} {
		code, out, errOut := commandLine(t, server, test.screen, test.args)
		if code != test.code || errOut != "" {
			t.Errorf("%s: exit code %d: %s", test.args, code, errOut)
		}
		golden(t, test.name, out)
		if test.screen == narrow {
			fits(t, out)
		}
	}
	if code, _, errOut := commandLine(t, server, terminal.Screen{}, "why aps"); code != exitError || !strings.Contains(errOut, "did you mean apps?") {
		t.Errorf("a wrong name: exit code %d: %s", code, errOut)
	}
}

func TestWhySaysWhatItMayNotSee(t *testing.T) {
	server := seen(t)
	server.Refuse["pods"] = http.StatusForbidden
	code, out, errOut := commandLine(t, server, terminal.Screen{}, "why apps")
	if code != exitBlocked || !strings.Contains(out, "apps <- mesh <- HelmRelease mesh/istiod <- Deployment mesh/istiod  InProgress") || errOut != "" ||
		!strings.Contains(out, "note: you may not list pods, so the cause may lie deeper than is shown") {
		t.Errorf("without Pods: exit code %d\n%s%s", code, out, errOut)
	}
}

// Of what a release takes its values from why says whether Flux sees changes, by the labels
// alone; what may not be read is left out.
func TestWhyNamesValuesThatAreNotWatched(t *testing.T) {
	objects := append(apitest.Load(t, "testdata/see.yaml"), apitest.Parse(t, `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: late, namespace: base, labels: {kraan/layer: base}}
spec: {interval: 30m, valuesFrom: [{kind: ConfigMap, name: plain}, {kind: ConfigMap, name: watched}, {kind: Secret, name: secret}, {kind: ConfigMap, name: missing}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: plain, namespace: base}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: watched, namespace: base, labels: {reconcile.fluxcd.io/watch: Enabled}}
---
apiVersion: v1
kind: Secret
metadata: {name: secret, namespace: base}
`)...)
	server := apitest.New(t, objects...)
	_, out, errOut := commandLine(t, server, terminal.Screen{}, "why base")
	for words, is := range map[string]bool{"a change of ConfigMap base/plain reaches HelmRelease base/late within its interval of 30m": true, "Secret base/secret": true, "watched reaches": false, "missing": false} {
		if strings.Contains(out, words) != is {
			t.Errorf("whether it says %q is %v:\n%s%s", words, !is, out, errOut)
		}
	}
	server.Refuse["secrets"] = http.StatusForbidden
	if _, out, errOut := commandLine(t, server, terminal.Screen{}, "why base"); strings.Contains(out, "Secret") || errOut != "" {
		t.Errorf("without Secrets it says %s%s", out, errOut)
	}
}

func TestWhyAsksAtMostOnceForEachKind(t *testing.T) {
	server := apitest.New(t, apitest.Parse(t, chains(20, 5, 10))...)
	code, out, errOut := commandLine(t, server, terminal.Screen{}, "why layer-019")
	if code != exitBlocked || !strings.Contains(out, "<- HelmRelease ns-0/release-0") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	for path, count := range lists(server.Requests()) {
		if count > 1 {
			t.Errorf("it asks %d times for %s", count, path)
		}
	}
}

// Benchmark answers for 200 layers with 1000 releases, over HTTP.
func Benchmark(b *testing.B) {
	server := apitest.New(b, apitest.Parse(b, chains(200, 5, 10))...)
	b.Setenv("KUBECONFIG", filepath.Join(b.TempDir(), "none"))
	for _, args := range []string{"get", "tree", "why layer-199"} {
		b.Run(strings.Fields(args)[0], func(b *testing.B) {
			for b.Loop() {
				var out, errOut bytes.Buffer
				if code := run(b.Context(), append(strings.Fields(args), "--server", server.URL), &out, &errOut); code != exitBlocked {
					b.Fatalf("exit code %d: %s", code, errOut.String())
				}
			}
		})
	}
}
