// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/strata-project/strata/test/reads"
)

// What hosts have in place of the programs themselves, which they run.
var (
	//go:embed realkubelet.sh
	realKubelet string
	//go:embed realrunc.sh
	realRunc string
)

// controlGroups is where the machine has them.
const controlGroups = "/sys/fs/cgroup"

// MissingForReal says why this machine can make no host with the real kubelet; empty where
// it can.
func MissingForReal() string {
	if why := Missing(); why != "" {
		return why
	}
	// With the second version the kubelet is told to have systemd make control groups, which
	// is not to be had in a namespace.
	if _, err := os.Stat(filepath.Join(controlGroups, "memory", "cgroup.procs")); err != nil {
		return "it needs control groups of version 1 in " + controlGroups + ", because there is no systemd in a network namespace"
	}
	return ""
}

// NewReal makes one host with the real kubelet and containerd, Debian's runc, and its
// network plug-ins in /opt/cni/bin. Its containers are in control groups of its own.
func NewReal(t testing.TB) *Lab {
	t.Helper()
	if why := MissingForReal(); why != "" {
		t.Skip(why)
	}
	return newLab(t, 1, slices.Concat(released, []string{"systemctl"}), true)
}

// addReal fills the folder of programs with those of a real host, and returns where the
// network plug-ins are.
func addReal(ctx context.Context, dir string) (plugins string, err error) {
	debian, err := Debian(ctx, "containers", "runc", "containernetworking-plugins")
	if err != nil {
		return "", err
	}
	links := map[string]string{"real-runc": filepath.Join(debian, "usr", "sbin", "runc")}
	for name, program := range map[string]string{"real-kubelet": "kubelet", "containerd": "containerd", "containerd-shim-runc-v2": "containerd-shim-runc-v2"} {
		if links[name], err = RealProgram(program); err != nil {
			return "", err
		}
	}
	for name, path := range links {
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	for name, script := range map[string]string{"kubelet": realKubelet, "runc": realRunc} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			return "", err
		}
	}
	return filepath.Join(debian, "usr", "lib", "cni"), nil
}

// makeGroups makes control groups for a host, one in each hierarchy, and returns the files
// that a process is written to that is to be in them.
func (h *Host) makeGroups() []string {
	t := h.lab.t
	t.Helper()
	all, err := filepath.Glob(filepath.Join(controlGroups, "*", "cgroup.procs"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, each := range all {
		group := filepath.Join(filepath.Dir(each), h.namespace())
		if err := os.Mkdir(group, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.removeGroups(group) })
		// A group of this kind takes no process before it is told which processors are its.
		for _, setting := range []string{"cpuset.mems", "cpuset.cpus"} {
			value, err := os.ReadFile(filepath.Join(filepath.Dir(each), setting))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(group, setting), value, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		files = append(files, filepath.Join(group, "cgroup.procs"))
	}
	return files
}

// removeGroups removes a control group and those in it, whose processes have ended.
func (h *Host) removeGroups(group string) {
	var groups []string
	err := filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			groups = append(groups, path)
		}
		return err
	})
	if err != nil {
		h.lab.t.Error(err)
	}
	slices.Reverse(groups)
	for _, each := range groups {
		// The kernel takes a moment to count what has ended.
		for tries := 0; ; tries++ {
			if err = os.Remove(each); err == nil || tries == 100 {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if err != nil {
			h.lab.t.Error(err)
		}
	}
}

// enterGroups is a command that enters control groups, and then is another command.
func enterGroups(files []string, command ...string) []string {
	script := &strings.Builder{}
	for _, file := range files {
		fmt.Fprintf(script, "echo $$ >%s\n", file)
	}
	return append([]string{"-c", script.String() + `exec "$@"`, "enter"}, command...)
}

// buildPod builds command pod of this package, into a folder.
func buildPod(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "pod")
	reads.AddPrograms(".", "github.com/strata-project/strata/test/lab/pod")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "github.com/strata-project/strata/test/lab/pod")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build what runs in containers: %w: %s", err, out)
	}
	return program, nil
}
