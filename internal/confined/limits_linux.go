// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package confined

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// limitMemory limits what this process may have of memory, above what it began with.
// RLIMIT_AS would count what Go only reserves.
func limitMemory(size uint64) error {
	// Where the machine or the container has no more, this process is to go first. It
	// is no mistake where that cannot be said.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	began, err := dataSize()
	if err != nil {
		return fmt.Errorf("cannot limit memory: %w", err)
	}
	// Go takes memory from the system in pieces of 64 MiB.
	limit := began + size + 64<<20
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		return fmt.Errorf("cannot limit memory: %w", err)
	}
	return nil
}

// dataSize returns what RLIMIT_DATA counts of this process.
func dataSize() (uint64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(status) {
		if size, ok := bytes.CutPrefix(line, []byte("VmData:")); ok {
			kilobytes, err := strconv.ParseUint(string(bytes.TrimSuffix(bytes.TrimSpace(size), []byte(" kB"))), 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("the system does not say how much there is")
}
