// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package confined

import (
	"fmt"
	"syscall"
	"time"
)

// set has the system limit what this process may take: processor time, the size of each file
// that it writes, and the memory where the system counts that.
func (b Bounds) set() error {
	seconds := uint64(b.CPU / time.Second) //nolint:gosec // a limit is no negative number
	for _, limit := range []struct {
		of         int
		soft, hard uint64
		what       string
	}{
		// At the first the runtime says so and ends, at the second the system ends it.
		{syscall.RLIMIT_CPU, seconds, seconds + 2, "processor time"},
		{syscall.RLIMIT_FSIZE, b.FileSize, b.FileSize, "the size of files"},
		{syscall.RLIMIT_CORE, 0, 0, "core dumps"},
	} {
		if err := syscall.Setrlimit(limit.of, &syscall.Rlimit{Cur: limit.soft, Max: limit.hard}); err != nil {
			return fmt.Errorf("cannot limit %s: %w", limit.what, err)
		}
	}
	return limitMemory(b.Memory)
}

// CloseFiles takes away that anything can be opened from here on: a file, a socket, or
// the pipe that starting a program takes. What is open stays.
func CloseFiles() error {
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{}); err != nil {
		return fmt.Errorf("cannot limit what is opened: %w", err)
	}
	return nil
}
