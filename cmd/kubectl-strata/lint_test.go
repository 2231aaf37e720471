// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/terminal"
)

func TestLint(t *testing.T) {
	const broken = "lint ../../internal/answers/lint/testdata/broken --root ../../internal/answers/lint/testdata/broken --k8s 1.34 --charts=false"
	for _, test := range []struct {
		golden, args string
		screen       terminal.Screen
		code         int
	}{
		{"lint.txt", broken, terminal.Screen{}, exitBlocked},
		{"lint-narrow.txt", broken + " --disable duplicate-object,duplicate-release,schema,helmrelease", terminal.Screen{Width: 40}, exitBlocked},
		{"lint.json", broken + " -o json", terminal.Screen{}, exitBlocked},
		{"lint.sarif", broken + " -o sarif", terminal.Screen{}, exitBlocked},
		{"lint.xml", broken + " -o junit", terminal.Screen{}, exitBlocked},
		{"lint-clean.txt", "lint ../../examples/platform --root ../../examples/platform", terminal.Screen{}, exitFine},
		{"lint-clean.json", "lint ../../examples/platform --root ../../examples/platform -o json", terminal.Screen{}, exitFine},
		{"lint-clean.xml", "lint ../../examples/platform --root ../../examples/platform -o junit", terminal.Screen{}, exitFine},
		{"lint-rules.txt", "lint --rules", terminal.Screen{}, exitFine},
	} {
		t.Run(test.golden, func(t *testing.T) {
			code, out, errOut := commandLine(t, nil, test.screen, test.args)
			if code != test.code || errOut != "" {
				t.Errorf("exit code %d, want %d; %s", code, test.code, errOut)
			}
			golden(t, test.golden, out)
			for line := range strings.Lines(out) {
				if width := test.screen.Width; width > 0 && len(strings.TrimRight(line, "\n")) > width && strings.Contains(strings.TrimSpace(line), " ") {
					t.Errorf("wider than %d columns: %s", width, line)
				}
			}
		})
	}
}

func TestLintSaysWhatItNeeds(t *testing.T) {
	for args, want := range map[string]string{
		"lint":                               "name the folders to look at",
		"lint nowhere":                       "there is no folder nowhere",
		"lint . --disable duplicate":         "there is no rule \"duplicate\": do you mean duplicate-layer or duplicate-object",
		"lint . --k8s new":                   "--k8s is \"new\": it must be a version such as 1.34",
		"lint .. --root .":                   ".. is not below .: --root names the folder",
		"lint . -o html":                     "--output is \"html\"",
		"lint --rules -o sarif":              "--rules are listed as text, json or yaml",
		"lint testdata --root /none/of/this": "there is no folder /none/of/this",
	} {
		code, _, errOut := commandLine(t, nil, terminal.Screen{}, args)
		if code != exitError || !strings.Contains(errOut, want) {
			t.Errorf("%s: exit code %d, says %q, want %q", args, code, errOut, want)
		}
	}
}

// A command that is mistyped, or that lacks what it is about, says how it is written.
func TestCommandsSayWhatIsMeant(t *testing.T) {
	for args, want := range map[string]string{
		"lnit":          "there is no command lnit; did you mean lint, or wait?",
		"import fluxx":  "there is no command fluxx; did you mean flux?",
		"app nonsense":  "there is no command nonsense: kubectl strata app --help lists those that there are",
		"why":           "it is not said what is meant: write kubectl strata why LAYER",
		"why a b":       "write kubectl strata why LAYER",
		"hold":          "it is not said which layers, and why: write kubectl strata hold LAYER --reason REASON",
		"hold --reason": "flag needs an argument: --reason",
		"plan --offline --from-dir imports nosuch": "no file of the folder has an AddonsLayer nosuch",
	} {
		code, _, errOut := commandLine(t, nil, terminal.Screen{}, args)
		if code != exitError || !strings.Contains(errOut, want) {
			t.Errorf("%s: exit code %d, says %q, want %q", args, code, errOut, want)
		}
	}
	code, out, errOut := commandLine(t, nil, terminal.Screen{}, "install --dry-run")
	if code != exitFine || !strings.Contains(out, "kind: Deployment") || !strings.Contains(errOut, "no cluster was asked") {
		t.Errorf("install --dry-run: exit code %d: %s", code, errOut)
	}
	if _, _, errOut := commandLine(t, nil, terminal.Screen{}, "lint --k8s 99.1 "+t.TempDir()); !strings.Contains(errOut, "Kubernetes 99.1 is newer than v1.36.0") {
		t.Errorf("a version of the future: %s", errOut)
	}
	if _, _, errOut := commandLine(t, nil, terminal.Screen{}, "lint --k8s 1.36 "+t.TempDir()); errOut != "" {
		t.Errorf("a version of today: %s", errOut)
	}
	folder := checkedOut(t, map[string]string{"release.yaml": gitRelease("web", "1.2.3", "")})
	for args, want := range map[string]string{
		t.TempDir(): "There is no manifest to look at.", folder: "but no layer was looked at", filepath.Join(folder, "release.yaml"): "Nothing is wrong in 1 file",
	} {
		if code, out, errOut := commandLine(t, nil, terminal.Screen{}, "lint "+args); code != exitFine || !strings.Contains(out, want) {
			t.Errorf("lint %s: exit code %d: %s %s, want %q", args, code, out, errOut, want)
		}
	}
}

func TestLintBeginsAtTheTopOfTheWorkingTree(t *testing.T) {
	top := t.TempDir()
	for name, text := range map[string]string{
		".git":                   "gitdir: elsewhere\n",
		"clusters/prod/all.yaml": "apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: base}\nspec:\n  version: 1.0.0\n  source: {name: platform, path: ./addons}\n",
		"addons/settings.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: platform}\n",
	} {
		name = filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	prod := filepath.Join(top, "clusters", "prod")
	if code, out, errOut := commandLine(t, nil, terminal.Screen{}, "lint "+prod); code != exitFine || errOut != "" {
		t.Errorf("exit code %d, says %q and %q", code, out, errOut)
	}
	code, out, _ := commandLine(t, nil, terminal.Screen{}, "lint "+prod+" --root "+prod)
	if code != exitBlocked || !strings.Contains(out, "all.yaml:6: error path: ") {
		t.Errorf("exit code %d, says %q, want that the directory is not there", code, out)
	}
}

func TestLintStrict(t *testing.T) {
	root := t.TempDir()
	if err := os.Symlink("/etc", filepath.Join(root, "etc")); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := commandLine(t, nil, terminal.Screen{}, "lint "+root); code != exitFine || !strings.Contains(out, "0 errors and 1 warning") {
		t.Errorf("exit code %d, says %q", code, out)
	}
	if code, out, _ := commandLine(t, nil, terminal.Screen{}, "lint "+root+" --strict -o junit"); code != exitBlocked || !strings.Contains(out, `failures="1"`) {
		t.Errorf("exit code %d with --strict, says %q", code, out)
	}
}

// A layer holds what source-controller puts into the artifact, and nothing else of its
// directory.
func TestLintReadsWhatReachesTheCluster(t *testing.T) {
	r := newPlannedRepository(t)
	r.files["base/mesh.yaml"] = r.files["base/gateway.yaml"]
	folder := r.folder()
	code, out, _ := commandLine(t, nil, terminal.Screen{}, "lint "+folder)
	if code != exitBlocked || !strings.Contains(out, "base/mesh.yaml") {
		t.Errorf("exit code %d, and a release that is there twice is not named: %s", code, out)
	}
	ignore := filepath.Join(folder, ".sourceignore")
	if err := os.WriteFile(ignore, []byte("mesh.yaml\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := commandLine(t, nil, terminal.Screen{}, "lint "+folder); code != exitFine {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	if err := os.WriteFile(ignore, []byte("mesh.yaml\n/apps\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := commandLine(t, nil, terminal.Screen{}, "lint "+folder); code != exitBlocked || !strings.Contains(out, "no artifact has the directory ./apps: a .sourceignore file leaves it out") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if err := os.Remove(ignore); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(ignore, 0o700); err != nil {
		t.Fatal(err)
	}
	if code, _, errOut := commandLine(t, nil, terminal.Screen{}, "lint "+folder); code != exitError || !strings.Contains(errOut, ".sourceignore is no file") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}
