// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/strata-project/strata/internal/terminal"
)

// What lint and plan are given may be a stranger's pull request. Whatever its
// kustomizations say, no connection is opened, no program of the PATH runs, and nothing
// is left on the disk.
func TestHostileFolderReachesNothing(t *testing.T) {
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: remote, namespace: a}\n"))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	bin, temp := t.TempDir(), t.TempDir()
	ran := filepath.Join(bin, "ran")
	for _, program := range []string{"git", "helm", "docker"} {
		if err := os.WriteFile(filepath.Join(bin, program), []byte("#!/bin/sh\necho \"$0 $@\" >> "+ran+"\nexit 1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	address := server.URL + "/a.yaml"
	const program = "file:///nowhere?ref=--upload-pack=touch%20ran%20%23"
	binary := func(text string) string { return "!!binary " + base64.StdEncoding.EncodeToString([]byte(text)) }
	value := "apiVersion: builtin\nkind: ValueAddTransformer\nmetadata: {name: v}\nvalue: x\ntargetFilePath: " + address + "\n"
	for name, text := range map[string]string{
		"an address":             "resources: [" + address + "]\n",
		"a long s":               "re\u017fources: [" + address + "]\n",
		"a long s in JSON":       `{"re\u017fources": ["` + address + `"]}`,
		"a file of a ConfigMap":  "configMapGenerator: [{name: a, file\u017f: [\"k=" + address + "\"]}]\n",
		"an alias as a key":      "namePrefix: &k resources\n*k : [" + address + "]\n",
		"a binary key":           binary("resources") + ": [" + address + "]\n",
		"a binary value":         "resources: [" + binary(address) + "]\n",
		"a plug-in":              "transformers: [v.yaml]\n",
		"a plug-in, written out": "transformers:\n- |-\n  " + strings.ReplaceAll(value, "\n", "\n  ") + "\n",
		"a nested one":           "resources: [../nested]\n",
		"a component":            "components: [../component]\n",
		"a program":              "resources: [\"" + program + "\"]\n",
		"a program, long s":      "re\u017fources: [\"" + program + "\"]\n",
		"a program, nested":      "resources: [../program]\n",
		"a chart":                "helmCharts: [{name: a, repo: \"" + server.URL + "\"}]\n",
		"a schema":               "openapi: {path: " + binary(address) + "}\n",
		"a bomb":                 "resources: [a.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: |-\n" + strings.Repeat("    - {op: copy, from: /data, path: /data/l}\n    - {op: copy, from: /data, path: /data/m}\n", 40),
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for file, content := range map[string]string{
				"layers.yaml":                  "apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: base}\nspec:\n  version: 1.0.0\n  source: {name: addons, namespace: flux-system, path: ./base}\n",
				"base/kustomization.yaml":      text,
				"base/v.yaml":                  value,
				"base/a.yaml":                  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: a}\ndata: {k: v}\n",
				"nested/kustomization.yaml":    "re\u017fources: [" + address + "]\n",
				"component/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nre\u017fources: [" + address + "]\n",
				"program/kustomization.yaml":   "re\u017fources: [\"" + program + "\"]\n",
			} {
				at := filepath.Join(folder, file)
				if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("TMPDIR", temp)
			for _, command := range []string{"lint " + folder + " --root " + folder, "plan --offline --from-dir " + folder + " --k8s 1.34"} {
				code, out, errOut := commandLine(t, nil, terminal.Screen{}, command)
				if code == exitFine || !strings.Contains(out+errOut, "base/kustomization.yaml") && !strings.Contains(out+errOut, "not in the artifact") {
					t.Errorf("%s: exit code %d, and it says nothing of the kustomization: %s%s", strings.Fields(command)[0], code, out, errOut)
				}
			}
			if said, err := os.ReadFile(ran); err == nil || connections.Load() > 0 {
				t.Errorf("%d connections were opened; ran %s", connections.Load(), said)
			}
			if left, err := filepath.Glob(filepath.Join(temp, "kustomize-*")); err != nil || len(left) > 0 {
				t.Errorf("left %v", left)
			}
			if left, err := filepath.Glob(filepath.Join(temp, "strata-empty-*")); err != nil || len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}
