// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// newTogether writes a module that requires two programs, and another one beside it
// that has them. Nothing is downloaded.
func newTogether(t *testing.T) (together, *bytes.Buffer) {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{
		"modules/demo/go.mod": "module strata.invalid/demo\n\ngo 1.26.0\n\n" +
			"require k8s.io/kubernetes v1.2.3\n\nreplace k8s.io/kubernetes => ../../kubernetes\n",
		"modules/demo/go.sum":          "",
		"modules/tests/go.mod":         "module strata.invalid/tests\n\nrequire k8s.io/kubernetes v1.2.3\n",
		"modules/tests/go.sum":         "",
		"kubernetes/go.mod":            "module k8s.io/kubernetes\n\ngo 1.26.0\n",
		"kubernetes/cmd/one/main.go":   "package main\n\nfunc main() { print(`one`) }\n",
		"kubernetes/cmd/two/v2/two.go": "package main\n\nfunc main() { print(`two`) }\n",
		"found/one":                    "#!/bin/sh\necho found\n",
		"old/kube-apiserver":           "#!/bin/sh\necho Kubernetes v1.1.9\n",
		"new/kube-apiserver":           "#!/bin/sh\necho Kubernetes v1.2.9\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out := &bytes.Buffer{}
	return together{
		builder:  builder{modules: filepath.Join(root, "modules"), dir: filepath.Join(root, "cache", "controlplane"), out: out},
		programs: []target{program("one", "tests", kubernetes, "/cmd/one"), program("two", "tests", kubernetes, "/cmd/two/v2")},
	}, out
}

func printed(t *testing.T, dir, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, name)).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// What the machine has is used, the rest is built, and all of it once.
func TestTogetherBuildsWhatIsMissing(t *testing.T) {
	g, out := newTogether(t)
	g.places = []string{filepath.Join(filepath.Dir(g.modules), "nowhere"), filepath.Join(filepath.Dir(g.modules), "found")}
	dir, err := g.ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if one, two := printed(t, dir, "one"), printed(t, dir, "two"); one != "found" || two != "two" {
		t.Errorf("the programs print %q and %q", one, two)
	}
	if text := out.String(); !strings.Contains(text, "using ") || !strings.Contains(text, "building two, once") {
		t.Errorf("it says:\n%s", text)
	}
	out.Reset()
	if again, err := g.ensure(t.Context()); err != nil || again != dir || out.Len() > 0 {
		t.Errorf("the second time: %s, %v, %q", again, err, out)
	}
	g.places = nil
	if _, err := g.ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if one := printed(t, dir, "one"); one != "one" {
		t.Errorf("where it is not found any more, it prints %q", one)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".new-*")); err != nil || len(left) != 0 {
		t.Errorf("temporary folders are left: %v, %v", left, err)
	}
}

// What the tests run is used where it is current.
func TestTogetherUsesWhatTheTestsHave(t *testing.T) {
	g, out := newTogether(t)
	for _, program := range g.programs {
		key, err := g.key(program)
		if err == nil {
			err = os.MkdirAll(g.dir, 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(g.dir, program.name), nil, 0o755)
		}
		if err == nil {
			err = g.stamp(staleTarget{target: program, key: key})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if dir, err := g.ensure(t.Context()); err != nil || dir != g.dir || out.Len() > 0 {
		t.Errorf("it is %s, %v, want %s: %s", dir, err, g.dir, out)
	}
}

// Servers of Kubernetes of another minor version are not used beside those of this one.
func TestTogetherTakesServersOfItsVersion(t *testing.T) {
	g, out := newTogether(t)
	root := filepath.Dir(g.modules)
	g.programs = []target{program("kube-apiserver", "tests", kubernetes, "/cmd/kube-apiserver")}
	for place, want := range map[string]string{"old": "", "new": filepath.Join(root, "new", "kube-apiserver")} {
		g.places = []string{filepath.Join(root, place)}
		found, err := g.found(t.Context())
		if err != nil || found["kube-apiserver"] != want {
			t.Errorf("%s: found %v, %v, want %q", place, found, err, want)
		}
	}
	if !strings.Contains(out.String(), "old/kube-apiserver is not used: it is not of Kubernetes v1.2") {
		t.Errorf("it says %q", out)
	}
}

// A build that fails says why, and leaves nothing that counts as built.
func TestTogetherSaysWhatFails(t *testing.T) {
	g, _ := newTogether(t)
	broken := filepath.Join(filepath.Dir(g.modules), "kubernetes", "cmd", "one", "main.go")
	if err := os.WriteFile(broken, []byte("package main\n\nfunc main() { undefined() }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := g.ensure(t.Context()); err == nil || !strings.Contains(err.Error(), "undefined: undefined") {
			t.Errorf("the error is %v", err)
		}
	}
}

// The demo runs the versions that the tests run: only what these programs are built
// from differs, because they are built together. kwok is a newer one in the demo: the one
// that the tests have does not compile with what Kubernetes is made of.
func TestDemoHasTheVersionsOfTheTests(t *testing.T) {
	modules, err := findModules()
	if err != nil {
		t.Fatal(err)
	}
	b := builder{modules: modules}
	g, err := forDemo(b, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range g.programs {
		if program.name == "kwok" {
			continue
		}
		tested, err := b.version(program)
		if err != nil {
			t.Fatal(err)
		}
		program.modules = []string{demoModule}
		if shown, err := b.version(program); err != nil || shown != tested {
			t.Errorf("the demo builds %s %s, the tests %s: %v", program.name, shown, tested, err)
		}
	}
}

// Where a package does not compile, what the compiler says is kept, however many packages
// are named after it.
func TestProgressKeepsWhatFailed(t *testing.T) {
	p := progress{out: io.Discard, begin: time.Now(), total: 100}
	p.follow(strings.NewReader("a.example/x\n# a.example/x\nx.go:1:2: undefined: y\n" + strings.Repeat("a.example/z\n", 60)))
	if want := []string{"# a.example/x", "x.go:1:2: undefined: y"}; !slices.Equal(p.last, want) || p.done != 61 {
		t.Errorf("%d are done, and kept is %q, want %q", p.done, p.last, want)
	}
}

func TestProgress(t *testing.T) {
	begin := time.Now()
	for _, test := range []struct {
		done, total int
		after       time.Duration
		want        string
	}{
		{0, 400, 20 * time.Second, "  0 of 400 packages after 20s"},
		{100, 400, time.Minute, "  100 of 400 packages after 1m0s, about 3m0s more"},
		{390, 400, time.Minute, "  390 of 400 packages after 1m0s, about 1m0s more"},
		{400, 400, time.Minute, "  linking, after 1m0s"},
	} {
		p := progress{begin: begin, done: test.done, total: test.total}
		if got := p.line(begin.Add(test.after)); got != test.want {
			t.Errorf("it says %q, want %q", got, test.want)
		}
	}
}
