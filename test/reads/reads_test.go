// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package reads_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/strata-project/strata/test/reads"
)

// suite is a package whose TestMain reads as those of the suites do.
const suite = `package suite

import (
	"os"
	"testing"

	"probe/reads"
)

func TestMain(m *testing.M) {
	reads.AddPrograms("..", ".")
	reads.AddFromRoot("chart", "crds", "examples", "pins", "hack/make.sh", "docs/page.md", "missing")
	if os.Getenv("STRATA_E2E_EXISTING") == "1" {
		reads.Other()
	}
	os.Exit(reads.Run(m))
}

func TestOne(*testing.T) {}
`

// A result is kept while all that was noted is as it was, and no longer: a change of a file
// of any sort, one more file beside them, one less, and another variable run the tests again.
func TestResultIsKept(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	own, err := os.ReadFile("reads.go")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"go.mod": "module probe\n\ngo 1.26\n", "reads/reads.go": string(own), "suite/suite_test.go": suite,
		"main.go": "package main\n\nimport _ \"probe/needed\"\n\nfunc main() {}\n", "needed/needed.go": "package needed\n\nimport _ \"embed\"\n\n//go:embed page.html\nvar page string\n",
		"needed/page.html": "<p>", "other/other.go": "package other\n",
		"chart/Chart.yaml": "name: probe\n", "chart/templates/a.yaml": "a: 1\n", "crds/a.yaml": "a: 1\n", "examples/a/a.yaml": "a: 1\n", "pins/server/go.mod": "module a\n",
		"hack/make.sh": "true\n", "docs/page.md": "# Page\n",
	} {
		write(name, text)
	}
	isKept := func(environment ...string) bool {
		t.Helper()
		test := exec.CommandContext(t.Context(), "go", "test", "./suite")
		test.Dir = root
		test.Env = append(os.Environ(), append([]string{"GOFLAGS=", "GOWORK=off"}, environment...)...)
		out, err := test.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.Contains(string(out), "(cached)")
	}
	if isKept() || !isKept() {
		t.Fatal("nothing was changed, and the tests have run twice")
	}
	write("other/other.go", "package other // changed\n")
	if !isKept() {
		t.Error("a package that the program does not need was changed, and the tests have run")
	}
	for name, text := range map[string]string{
		"a source of the program":   "main.go\npackage main\n\nimport _ \"probe/needed\"\n\nfunc main() { println() }\n",
		"a source of what it needs": "needed/needed.go\npackage needed\n\nimport _ \"embed\"\n\n//go:embed page.html\nvar html string\n",
		"a new source of it":        "needed/more.go\npackage needed\n",
		"an embedded file":          "needed/page.html\n<p>changed\n",
		"the pins of the module":    "go.mod\nmodule probe\n\ngo 1.26.0\n",
		"a template of the chart":   "chart/templates/a.yaml\na: changed\n",
		"a new template":            "chart/templates/b.yaml\na: 1\n",
		"a definition":              "crds/a.yaml\na: changed\n",
		"an example":                "examples/a/a.yaml\na: changed\n",
		"the version of a server":   "pins/server/go.mod\nmodule changed\n",
		"a script":                  "hack/make.sh\nfalse\n",
		"a document":                "docs/page.md\n# Changed\n",
		"a file that there was not": "missing\nhere\n",
		"the suite itself":          "suite/suite_test.go\n" + suite + "\nfunc TestTwo(*testing.T) {}\n",
	} {
		file, content, _ := strings.Cut(text, "\n")
		write(file, content)
		if isKept() {
			t.Errorf("%s was changed, and the tests have not run", name)
		}
	}
	if !isKept() {
		t.Error("all is as it was, and the tests have run")
	}
	if err := os.Remove(filepath.Join(root, "chart", "templates", "b.yaml")); err != nil {
		t.Fatal(err)
	}
	if isKept() {
		t.Error("a template is gone, and the tests have not run")
	}
	if isKept("STRATA_RACE=1") || !isKept("STRATA_RACE=1") {
		t.Error("a variable does not count")
	}
	for range 2 {
		if isKept("STRATA_E2E_EXISTING=1") {
			t.Error("a result that depends on what nobody can look up is kept")
		}
	}
}

// blind are the programs that read the source tree when they are started.
var blind = []string{"go", "git", "make", "npm"}

// A test or a helper of tests that starts a program that reads this tree notes what it reads.
func TestWhatProgramsReadIsNoted(t *testing.T) {
	t.Parallel()
	root, err := reads.Root()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains([]string{".git", "node_modules", "bin", "dist", "examples", "testdata", "bench", "chaos"}, entry.Name()) || name == filepath.Join("test", "reads") {
				return fs.SkipDir
			}
			return nil
		}
		ofTests := strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "test"+string(filepath.Separator)) || strings.Contains(name, "test"+string(filepath.Separator))
		if !strings.HasSuffix(name, ".go") || !ofTests {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		starts, notes := "", false
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.ImportSpec:
				notes = notes || strings.HasSuffix(node.Path.Value, `/test/reads"`)
			case *ast.CallExpr:
				if program := programOf(node); program != "" {
					starts = program
				}
			}
			return true
		})
		if starts == "" {
			return nil
		}
		found++
		if why := elsewhere[filepath.ToSlash(name)]; !notes && why == "" {
			t.Errorf("%s starts %s, and go test does not see what that reads: note it with package reads, or say here why it reads nothing of this tree", name, starts)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 10 {
		t.Errorf("no more than %d files start programs", found)
	}
}

// elsewhere has the files whose programs read nothing of this tree, and why.
var elsewhere = map[string]string{
	"links_test.go":            "the test itself reads what git lists, and looks at the folders",
	"hack/mtimes/main_test.go": "it makes repositories in folders of their own",
	"test/controlplane/git.go": "as above",
	"test/e2e/page_test.go":    "it clones what the suite's own server has",
	"test/e2e/ui_plan_test.go": "as above",
}

// programOf returns the name of a program of this tree, or of one that reads it, where a call
// starts one that is named there.
func programOf(call *ast.CallExpr) string {
	function, is := call.Fun.(*ast.SelectorExpr)
	if !is || function.Sel.Name != "Command" && function.Sel.Name != "CommandContext" {
		return ""
	}
	for _, argument := range call.Args[:min(2, len(call.Args))] {
		literal, is := argument.(*ast.BasicLit)
		if !is {
			continue
		}
		name, err := strconv.Unquote(literal.Value)
		if err == nil && (slices.Contains(blind, name) || strings.Contains(name, "hack/")) {
			return name
		}
	}
	return ""
}
