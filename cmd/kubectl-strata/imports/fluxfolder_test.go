// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
)

// Where several clusters are found and none is chosen, an answer at the terminal chooses one.
// Without a terminal there is no prompt.
func TestClusterIsAskedFor(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"clusters/one/apps.yaml": "./apps/one", "clusters/two/apps.yaml": "./apps/two", "apps/one/a.yaml": "", "apps/two/a.yaml": "",
	} {
		text = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\n" +
			"spec: {interval: 1h, prune: true, sourceRef: {kind: GitRepository, name: flux-system}, path: " + text + "}\n"
		if strings.HasPrefix(name, "apps/") {
			text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
		}
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		reason  string
		answers io.Reader
		asked   bool
		says    string
		files   int
	}{
		"one is named":  {"it is written", strings.NewReader("two\n"), true, "1 layer of 1 Kustomization", 1},
		"none is named": {"nothing is written", strings.NewReader("\n"), true, console.ErrDiffers.Error(), 0},
		"another":       {"the clusters are named", strings.NewReader("three\n"), true, "the repository has no cluster three: it has one, two", 0},
		"no terminal":   {"nobody waits for an answer", nil, false, "Choose one by --cluster NAME", 0},
	} {
		t.Run(name, func(t *testing.T) {
			said, into := &bytes.Buffer{}, filepath.Join(t.TempDir(), "layers")
			c := &console.Console{Out: said, ErrOut: said, Answers: test.answers}
			command := newFlux(c)
			command.SetArgs([]string{"--from-dir", dir, "--into", into})
			command.SetContext(t.Context())
			command.SilenceUsage, command.SilenceErrors = true, true
			err := command.Execute()
			all := said.String()
			if err != nil {
				all += err.Error()
			}
			if !strings.Contains(all, test.says) || strings.Contains(all, "Which cluster?") != test.asked {
				t.Errorf("%s: %s", test.reason, all)
			}
			if files, _ := filepath.Glob(into + "/clusters/*/*.yaml"); len(files) != test.files {
				t.Errorf("%s: there are %v", test.reason, files)
			}
		})
	}
}
