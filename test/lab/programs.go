// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"

	"github.com/strata-project/strata/hack/controlplane/cache"
	"github.com/strata-project/strata/test/reads"
)

// released are the programs of Kubernetes that hosts have, as they were released.
var released = []string{"kubeadm", "kubectl", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// played are the programs that command kubelet of this package plays.
var played = []string{"kubelet", "containerd", "systemctl", "network-plugin", "kube-proxy", "pause"}

// built has the program that plays, which is built once in a process.
var built struct {
	sync.Once
	program string
	err     error
}

// fillPrograms fills a folder with what hosts have in /usr/local/bin.
func fillPrograms(ctx context.Context, dir string, names []string) error {
	for _, name := range names {
		path, err := Program(ctx, name)
		if err != nil {
			return err
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	// The host has it where its users reach it.
	return os.Symlink("/run/programs/sudo", filepath.Join(dir, "sudo"))
}

// Add gives all hosts one program more: that at a path, or of the control plane's where
// none is given.
func (l *Lab) Add(name, path string) error {
	if path == "" {
		path, err := Program(l.t.Context(), name)
		if err != nil {
			return err
		}
		return os.Symlink(path, filepath.Join(l.programs, name))
	}
	// No symbolic link: Pods have a /tmp of their own over the one of the test.
	return os.Link(path, filepath.Join(l.programs, name))
}

// Program returns where one of the programs is that hosts have.
func Program(ctx context.Context, name string) (string, error) {
	programs, err := cache.Dir()
	if err != nil {
		return "", err
	}
	if slices.Contains(played, name) {
		built.Do(func() { built.program, built.err = buildPlayed(ctx, filepath.Join(filepath.Dir(programs), "lab")) })
		return built.program, built.err
	}
	path := filepath.Join(programs, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("make controlplane builds it: %w", err)
	}
	return path, nil
}

// OlderProgram returns where one of the programs is in the version of Kubernetes before.
func OlderProgram(name string) (string, error) {
	programs, err := cache.Dir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(programs+"-older", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("make controlplane-host builds it: %w", err)
	}
	return path, nil
}

// RealProgram returns where one of the programs is that only a real host has.
func RealProgram(name string) (string, error) {
	programs, err := cache.Dir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(programs, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("make controlplane-host builds it: %w", err)
	}
	return path, nil
}

// buildPlayed builds the program that plays. Tests of several packages may do so at the
// same time: the last one wins, and all are the same.
func buildPlayed(ctx context.Context, dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	making, err := os.MkdirTemp(dir, "making-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(making) }()
	made, program := filepath.Join(making, "kubelet"), filepath.Join(dir, "kubelet")
	reads.AddPrograms(".", "github.com/strata-project/strata/test/lab/kubelet")
	build := exec.CommandContext(ctx, "go", "build", "-o", made, "github.com/strata-project/strata/test/lab/kubelet")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build the lab's kubelet: %w: %s", err, out)
	}
	return program, os.Rename(made, program)
}
