// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package confined runs this program once more, in a process with limits, for what is made of
// bytes from outside by code that may take its process down: kustomize, and an etcd that is
// started from a snapshot. Such a process has an empty environment, a folder of its own and
// no network.
package confined

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"time"
)

// Exit codes of such a process. Others are those of Go's runtime, and of signals.
const (
	ExitFine   = 0
	ExitFailed = 70
	ExitMemory = 71
)

const (
	// maxStack is what a recursion may take. Without it that would be a gigabyte.
	maxStack = 64 << 20
	// maxComplaint is how much is kept of what a process says that fails.
	maxComplaint = 4 << 10
)

// Bounds are what a process may take.
type Bounds struct {
	// Memory in bytes, and processor time in whole seconds.
	Memory uint64
	CPU    time.Duration
	// FileSize is how long each file may be that it writes, in bytes; 0 lets it write none.
	FileSize uint64
}

// Enter bounds this process. It must not be called in one that does anything else. Where the
// system has no limits the memory alone is bounded, and the time by whoever waits for it.
func (b Bounds) Enter() error {
	closeNetwork()
	debug.SetMaxStack(maxStack)
	debug.SetTraceback("none")
	debug.SetMemoryLimit(int64(b.Memory / 4 * 3)) //nolint:gosec // less than a terabyte
	if err := b.set(); err != nil {
		return err
	}
	go watchMemory(b.Memory)
	return nil
}

// errNoNetwork is what code is told that wants to fetch something.
var errNoNetwork = errors.New("this process has no network")

type noNetwork struct{}

// RoundTrip refuses a request.
func (noNetwork) RoundTrip(*http.Request) (*http.Response, error) { return nil, errNoNetwork }

// closeNetwork has all clients that say nothing else refuse.
func closeNetwork() {
	http.DefaultTransport = noNetwork{}
	http.DefaultClient.Transport = noNetwork{}
}

// watchMemory ends a process that takes more than its share. Where the system limits
// the memory this comes first, and says why; where it does not, this is the limit.
func watchMemory(limit uint64) {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for range time.Tick(5 * time.Millisecond) {
		metrics.Read(samples)
		if samples[0].Value.Uint64()-samples[1].Value.Uint64() > limit {
			os.Exit(ExitMemory)
		}
	}
}

// self returns the file of this program. On Linux that is the one which runs, also
// where it has been replaced since.
func self() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// Command returns this program, to be started in a folder with arguments of which the first
// tells it what it is for. It gets nothing of the environment. What it complains of is kept
// up to a limit.
func Command(ctx context.Context, dir string, arguments []string) (*exec.Cmd, *Complaint, error) {
	program, err := self()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot find the program itself: %w", err)
	}
	complaint := &Complaint{}
	command := exec.CommandContext(ctx, program) //nolint:gosec // it is this program
	command.Args, command.Env, command.Dir, command.Stderr = arguments, []string{}, dir, complaint
	command.WaitDelay = time.Second
	return command, complaint, nil
}

// Complaint is the beginning of what a process says that fails.
type Complaint struct{ text bytes.Buffer }

// Write keeps what there is room for.
func (c *Complaint) Write(text []byte) (int, error) {
	c.text.Write(text[:min(len(text), maxComplaint-c.text.Len())])
	return len(text), nil
}

// String returns what was kept.
func (c *Complaint) String() string { return c.text.String() }

// Line returns the first line of it.
func (c *Complaint) Line() string {
	line, _, _ := strings.Cut(c.String(), "\n")
	return line
}

// Used is how much processor time a process has had.
func Used(state *os.ProcessState) time.Duration {
	if state == nil {
		return 0
	}
	return state.UserTime() + state.SystemTime()
}

// ExitCode is that of a process; -1 where it was ended by a signal, or never started.
func ExitCode(state *os.ProcessState) int {
	if state == nil {
		return -1
	}
	return state.ExitCode()
}

// IsOutOfMemory tells whether a process has ended for its limit of memory.
func IsOutOfMemory(code int, complaint string) bool {
	return code == ExitMemory || strings.Contains(complaint, "out of memory") || strings.Contains(complaint, "cannot allocate memory") ||
		strings.Contains(complaint, "ThreadSanitizer failed to allocate") // as a program with the race detector says it
}
