// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// envParent makes TestParent the process that the death tests end.
const envParent = "STRATA_TEST_PARENT"

// TestParent is not a test: it starts a control plane, prints its process ids
// on one line and waits to be ended.
func TestParent(t *testing.T) {
	if os.Getenv(envParent) == "" {
		t.Skip("runs as a child of TestNothingOutlivesTheParent")
	}
	c, err := Start(t.Context(), Options{Dir: os.Getenv(envParent), With: APIOnly(), ExitOnSignal: true})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Print("pids")
	for _, pid := range c.PIDs() {
		fmt.Print(" ", pid)
	}
	fmt.Println()
	<-t.Context().Done()
}

// However the process that started a control plane ends, its components end.
func TestNothingOutlivesTheParent(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			parent := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestParent$")
			parent.Env = append(os.Environ(), envParent+"="+t.TempDir())
			stdout, err := parent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			pids := readPIDs(bufio.NewScanner(stdout))
			if err := parent.Process.Signal(signal); err != nil {
				t.Error(err)
			}
			_ = parent.Wait() // it was told to end, so it reports a failure
			if len(pids) != 2 {
				t.Fatalf("process ids of the control plane: got %v, want 2", pids)
			}
			if code := parent.ProcessState.ExitCode(); signal != syscall.SIGKILL && code != 130 {
				t.Errorf("exit code of the parent: got %d, want 130", code)
			}
			for _, pid := range pids {
				if err := WaitFor(t.Context(), 10*time.Second, func(context.Context) error { return gone(pid) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// readPIDs reads lines up to the one with the process ids.
func readPIDs(lines *bufio.Scanner) []int {
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || fields[0] != "pids" {
			continue
		}
		var pids []int
		for _, field := range fields[1:] {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
		return pids
	}
	return nil
}

// gone returns nil when the process has ended; one that nobody has waited for
// yet counts as ended.
func gone(pid int) error {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, state, found := strings.Cut(string(stat), ") "); found && strings.HasPrefix(state, "Z") {
		return nil
	}
	return fmt.Errorf("process %d still runs", pid)
}
