// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package providers_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
	"github.com/strata-project/strata/hack/controlplane/cache"
	"github.com/strata-project/strata/internal/providers"
)

// modules returns a folder with the example in JavaScript, the contract, and what npm has fetched
// for it, which is kept.
func modules(ctx context.Context, node, npm string) (string, error) {
	root, err := cache.Dir()
	if err != nil {
		return "", err
	}
	parent := filepath.Join(filepath.Dir(root), "javascript")
	if err := os.MkdirAll(parent, 0o750); err != nil {
		return "", err
	}
	const example = "../../examples/plugins/javascript"
	for _, source := range []string{example + "/package.json", example + "/package-lock.json", example + "/plugin.js", "../../api/plugin/v1/plugin.proto"} {
		content, err := os.ReadFile(source)
		if err != nil {
			return "", err
		}
		into := filepath.Join(parent, filepath.Base(source))
		if was, err := os.ReadFile(into); err == nil && bytes.Equal(was, content) {
			continue
		}
		if filepath.Base(source) == "package-lock.json" { // it has to be fetched anew
			_ = os.RemoveAll(filepath.Join(parent, "node_modules"))
		}
		if filepath.Base(source) == "plugin.js" {
			content = bytes.Replace(content, []byte("#!/usr/bin/node"), []byte("#!"+node), 1)
		}
		if err := os.WriteFile(into, content, 0o700); err != nil {
			return "", err
		}
	}
	if _, err := os.Stat(filepath.Join(parent, "node_modules")); err == nil {
		return parent, nil
	}
	fetch := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	fetch.Dir = parent
	if out, err := fetch.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w: %s", err, out)
	}
	return parent, nil
}

// The contract is for any language: a plug-in of a few lines of JavaScript keeps it, as a Deployment
// would have it run.
func TestPluginInAnotherLanguage(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs Node.js")
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("needs npm")
	}
	folder, err := modules(t.Context(), node, npm)
	if err != nil {
		t.Fatal(err)
	}
	host := providers.NewHost(providers.Options{Listens: filepath.Join(folder, "plugin.js"), Log: logr.Discard()})
	t.Cleanup(host.End)
	of := process("sha256:" + fmt.Sprintf("%064d", 1))
	checks := providers.Conformance{Host: host, Plugin: of}.Run(t.Context())
	for _, check := range checks {
		if !check.Passed {
			t.Errorf("%s: %s", check.Name, check.Message)
		}
	}
	if len(checks) < 10 {
		t.Errorf("only %v was asked", checks)
	}
	strangers := filepath.Join(folder, "strangers.js") // is asked by all
	source, err := os.ReadFile(filepath.Join(folder, "plugin.js"))
	if err != nil {
		t.Fatal(err)
	}
	source = bytes.Replace(source, []byte("}], true)"), []byte("}], false)"), 1)
	if err := os.WriteFile(strangers, source, 0o700); err != nil {
		t.Fatal(err)
	}
	open := providers.NewHost(providers.Options{Listens: strangers, Log: logr.Discard()})
	t.Cleanup(open.End)
	if checks := (providers.Conformance{Host: open, Plugin: of}).Run(t.Context()); checks[0].Passed || !strings.Contains(checks[0].Message, "answers those who have no certificate") {
		t.Errorf("one that answers everybody passes: %v", checks)
	}

	plan, err := host.Plan(t.Context(), of, &pluginv1.PlanRequest{Claim: &pluginv1.Claim{Name: "shop"}, Parameters: []byte(`{"greeting": "good morning"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(plan.GetObjects()[0].GetTemplate()); got != `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shop-greeting"},"data":{"greeting":"good morning"}}` {
		t.Errorf("it plans %s", got)
	}
}
