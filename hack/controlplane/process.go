// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// isolate gives a command a process group of its own, which interruptGroup
// reaches as a whole.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// interruptGroup interrupts a command and all its children; the go command
// then removes its temporary files.
func interruptGroup(cmd *exec.Cmd) error {
	return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
}

// lock takes an exclusive lock on a file, which it creates, and returns what
// releases it. It calls waiting once when another process holds the lock. The
// kernel releases the lock when its holder dies.
func lock(ctx context.Context, path string, waiting func()) (func(), error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	fd := int(file.Fd())
	release := func() { _ = file.Close() }
	err = syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return release, nil
	}
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		release()
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	waiting()
	locked := make(chan error, 1)
	go func() { locked <- flock(fd) }()
	select {
	case <-ctx.Done():
		// The program is about to exit, which closes the file.
		return nil, errors.New("interrupted")
	case err := <-locked:
		if err != nil {
			release()
			return nil, fmt.Errorf("cannot lock %s: %w", path, err)
		}
		return release, nil
	}
}

// flock waits for the lock, also through the signals of the Go runtime.
func flock(fd int) error {
	for {
		if err := syscall.Flock(fd, syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
