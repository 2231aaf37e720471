// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// maxMemory bounds what a program has in memory of its own, in bytes, and maxFile a file that
	// it writes.
	maxMemory = 1 << 30
	maxFile   = 64 << 20
	// maxOpen bounds its open files.
	maxOpen = 256
)

// endWithParent has a process end with this one, however that ends.
func endWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// limitProcess limits what a process may use.
func limitProcess(pid int) error {
	for resource, most := range map[int]uint64{unix.RLIMIT_DATA: maxMemory, unix.RLIMIT_FSIZE: maxFile, unix.RLIMIT_NOFILE: maxOpen, unix.RLIMIT_CORE: 0} {
		if err := unix.Prlimit(pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil); err != nil {
			return err
		}
	}
	return nil
}
