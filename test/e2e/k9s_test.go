// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

// k9sPlugin is a plug-in as k9s's schema has it.
type k9sPlugin struct {
	ShortCut    string   `json:"shortCut"`
	Override    bool     `json:"override"`
	Description string   `json:"description"`
	Confirm     bool     `json:"confirm"`
	Dangerous   bool     `json:"dangerous"`
	Scopes      []string `json:"scopes"`
	Command     string   `json:"command"`
	Background  bool     `json:"background"`
	Args        []string `json:"args"`
}

// k9sWord is what k9s replaces in an argument: it refuses words that it does not know.
var k9sWord = regexp.MustCompile(`\$(!?[\w|-]+)`)

// The plug-ins for k9s are as its schema wants them, and each does on a real cluster what its
// description says, with names and contexts that mean something to a shell, too.
func TestK9sPlugins(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base")
	f.deployed("base", revision)
	admin := plugin{fixture: f, path: path}.of("admin", "cluster-admin")

	data, err := os.ReadFile("../../contrib/k9s/plugins.yaml")
	f.must(err)
	var file struct {
		Plugins map[string]k9sPlugin `json:"plugins"`
	}
	f.must(yaml.UnmarshalStrict(data, &file))
	// The context has a name that a shell must not read.
	config, err := os.ReadFile(admin.kubeconfig)
	f.must(err)
	var parsed map[string]any
	f.must(yaml.Unmarshal(config, &parsed))
	context := `it's "$(touch escaped)"; here`
	first := parsed["contexts"].([]any)[0].(map[string]any)
	parsed["contexts"] = append(parsed["contexts"].([]any), map[string]any{"name": context, "context": first["context"]})
	config, err = yaml.Marshal(parsed)
	f.must(err)
	folder := t.TempDir()
	kubeconfig := filepath.Join(folder, "kubeconfig")
	f.must(os.WriteFile(kubeconfig, config, 0o600))

	kubectl, err := controlplane.Binary("kubectl")
	f.must(err)
	run := func(name, object string) string {
		t.Helper()
		p, known := file.Plugins[name]
		if !known {
			t.Fatalf("there is no plug-in %s", name)
		}
		words := map[string]string{"$NAME": object, "$CONTEXT": context}
		var args []string
		for _, arg := range p.Args {
			args = append(args, k9sWord.ReplaceAllStringFunc(arg, func(word string) string {
				value, known := words[word]
				if !known {
					t.Errorf("%s: k9s has no %s", name, word)
				}
				return value
			}))
		}
		command := exec.CommandContext(t.Context(), p.Command, args...)
		command.Dir = folder
		command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+filepath.Dir(path)+":"+filepath.Dir(kubectl)+":"+os.Getenv("PATH"))
		output, err := command.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", name, err, output)
		}
		return strings.Join(strings.Fields(string(output)), " ")
	}
	base := f.name("base")
	said := map[string]string{
		"strata-why": base + " is deployed", "strata-tree": "HelmRelease " + f.prefix + "/base", "strata-plan": "Nothing would change.",
		"strata-diff": "What could be compared is as it is wanted.", "strata-hold": "layer " + base + " is held: held in k9s", "strata-resume": "layer " + base + " is resumed",
		"strata-rollout": "there is no platform " + base, "strata-rollout-plan": "there is no platform " + base,
	}
	keys := map[string]string{}
	for name, p := range file.Plugins {
		if !regexp.MustCompile(`^Shift-[A-Z]$`).MatchString(p.ShortCut) || p.Description == "" || len(p.Scopes) == 0 {
			t.Errorf("%s: %+v", name, p)
		}
		for _, scope := range p.Scopes {
			if other := keys[scope+p.ShortCut]; other != "" {
				t.Errorf("%s and %s have the same key", name, other)
			}
			keys[scope+p.ShortCut] = name
		}
		if p.Confirm != (name == "strata-hold" || name == "strata-resume") {
			t.Errorf("%s is confirmed: %t", name, p.Confirm)
		}
		if said[name] == "" {
			t.Errorf("nothing is known of %s", name)
		}
	}
	for _, name := range []string{"strata-why", "strata-tree", "strata-plan", "strata-diff", "strata-rollout", "strata-rollout-plan", "strata-hold", "strata-resume"} {
		if got := run(name, base); !strings.Contains(strings.ToLower(got), strings.ToLower(said[name])) {
			t.Errorf("%s says %s, want %s", name, got, said[name])
		}
		if name == "strata-hold" {
			f.state("base", v1alpha1.StateHold, "held in k9s")
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "escaped")); err == nil {
		t.Error("a name was read by the shell")
	}
}
