// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// newTool writes a module that requires a program, beside it, and returns the
// builder and the target of that program. Nothing is downloaded.
func newTool(t *testing.T, body string) (builder, target, *bytes.Buffer) {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{
		"tool/go.mod": "module strata.invalid/modules/tool\n\ngo 1.26.0\n\n" +
			"require strata.invalid/tool v1.2.3\n\nreplace strata.invalid/tool => ../program\n",
		"tool/go.sum":     "",
		"program/go.mod":  "module strata.invalid/tool\n\ngo 1.26.0\n",
		"program/main.go": "package main\n\nvar version string\n\nfunc main() {\n" + body + "\n}\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tool := program("tool", "tool", "strata.invalid/tool", "")
	tool.ldflags = func(version string) string { return "-X main.version=" + version }
	out := &bytes.Buffer{}
	return builder{modules: root, dir: filepath.Join(root, "cache"), out: out}, tool, out
}

func TestBuildsOnlyWhatIsStale(t *testing.T) {
	b, tool, out := newTool(t, "print(version)")
	ensure := func(reason string, wantBuild bool) {
		t.Helper()
		out.Reset()
		if err := b.ensure(t.Context(), []target{tool}); err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		built := strings.Contains(out.String(), "[1/1] building tool v1.2.3 ... ")
		if built != wantBuild {
			t.Errorf("%s: built is %t, want %t:\n%s", reason, built, wantBuild, out)
		}
	}
	binary := filepath.Join(b.dir, "tool")
	ensure("nothing is there", true)
	if got, err := exec.CommandContext(t.Context(), binary).CombinedOutput(); err != nil || string(got) != "v1.2.3" {
		t.Errorf("the program prints %q, %v, want its version", got, err)
	}
	ensure("all is current", false)
	if err := os.WriteFile(filepath.Join(b.modules, "tool", "go.sum"), []byte("\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ensure("go.sum changed", true)
	tool.ldflags = noFlags
	ensure("the linker flags changed", true)
	if err := os.Remove(binary); err != nil {
		t.Fatal(err)
	}
	ensure("the program is missing", true)
	left, err := filepath.Glob(filepath.Join(b.dir, ".new-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

func TestFailingBuildSaysWhy(t *testing.T) {
	b, tool, _ := newTool(t, "undefined()")
	err := b.ensure(t.Context(), []target{tool})
	if err == nil || !strings.Contains(err.Error(), "cannot build tool") || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("error of a failing build: %v", err)
	}
	if stale, err := b.stale([]target{tool}); err != nil || len(stale) != 1 {
		t.Errorf("a failed target counts as built: %v, %v", stale, err)
	}
}

func TestInterrupt(t *testing.T) {
	b, tool, _ := newTool(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.ensure(ctx, []target{tool}); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("interrupted build: got %v", err)
	}
}

func TestLockWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, func() { t.Error("waits for a free lock") })
	if err != nil {
		t.Fatal(err)
	}
	waiting, second := make(chan struct{}), make(chan error, 1)
	go func() {
		release, err := lock(t.Context(), path, func() { close(waiting) })
		if err == nil {
			release()
		}
		second <- err
	}()
	select {
	case <-waiting:
	case <-time.After(10 * time.Second):
		t.Fatal("a second run does not wait")
	}
	select {
	case err := <-second:
		t.Fatalf("two runs hold the lock: %v", err)
	default:
	}
	unlock()
	if err := <-second; err != nil {
		t.Errorf("after the lock was released: %v", err)
	}

	unlock, err = lock(t.Context(), path, func() { t.Error("waits for a released lock") })
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := lock(ctx, path, cancel); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("an interrupted wait for the lock: %v", err)
	}
}

func TestSelectTargets(t *testing.T) {
	for _, tc := range []struct {
		reason string
		only   string
		want   string
	}{
		{
			reason: "nothing named is everything that tests need", only: "",
			want: "etcd,kube-apiserver,kube-controller-manager,kube-scheduler,kubectl,kubeadm,kwok," +
				"source-controller,helm-controller,notification-controller,crds,kustomize-controller,crds-kustomize,crds-cluster-api,crds-cloudnative-pg",
		},
		{reason: "the order is that of the builds", only: "kube-apiserver,etcd", want: "etcd,kube-apiserver"},
		{reason: "a typo is an error", only: "etdc", want: "error"},
	} {
		selected, err := selectTargets(targets, tc.only)
		var names []string
		for _, s := range selected {
			names = append(names, s.name)
		}
		got := strings.Join(names, ",")
		if err != nil {
			got = "error"
		}
		if got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
		}
	}
}

// Every target has its pins in the tree, and Kubernetes its version.
func TestTargetsHavePins(t *testing.T) {
	modules, err := findModules()
	if err != nil {
		t.Fatal(err)
	}
	b := builder{modules: modules}
	for _, tool := range append(slices.Clone(targets), hostTargets...) {
		if _, err := b.key(tool); err != nil {
			t.Errorf("%s: %v", tool.name, err)
		}
		if tool.require != kubernetes {
			continue
		}
		version, err := b.version(tool)
		if err != nil {
			t.Fatal(err)
		}
		if flags := linkerFlags(tool, version); !strings.Contains(flags, "gitVersion="+version) || !strings.Contains(flags, "gitMajor=1 ") {
			t.Errorf("%s: linker flags %q", tool.name, flags)
		}
	}
}
