// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// spend is the name under which this test binary is a program that uses CPU
// time and memory as it is told.
const spend = "STRATA_METER_SPEND"

func TestMain(m *testing.M) {
	if os.Getenv(spend) != "" {
		spendAsTold(os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

// spendAsTold takes a line for each step and answers when it is done.
func spendAsTold(in io.Reader, out io.Writer) {
	var held []byte
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		switch lines.Text() {
		case "hold": // 64 MiB of the kernel's, which no allocator keeps, every page of them
			var err error
			if held, err = syscall.Mmap(-1, 0, 64<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE); err != nil {
				fmt.Fprintln(out, err)
				return
			}
			for i := range held {
				held[i] = byte(i)
			}
		case "free":
			if err := syscall.Munmap(held); err != nil {
				fmt.Fprintln(out, err)
				return
			}
			held = nil
		case "work": // until half a second of CPU time has been used
			for x := 1.0; ; {
				for range 1_000_000 {
					x = math.Sqrt(x + 1)
				}
				if used, err := ReadUsage(os.Getpid()); err != nil || used.CPU >= 500*time.Millisecond {
					break
				}
			}
		}
		fmt.Fprintln(out, "done", len(held))
	}
}

func TestUsageOfAProcess(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), spend+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(out)
	usageAfter := func(step string) Usage {
		t.Helper()
		if _, err := io.WriteString(in, step+"\n"); err != nil {
			t.Fatal(err)
		}
		if !answers.Scan() || !strings.HasPrefix(answers.Text(), "done") {
			t.Fatalf("the answer to %s is %q, %v", step, answers.Text(), answers.Err())
		}
		usage, err := ReadUsage(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		return usage
	}

	const held = 64 << 20
	holding, freed := usageAfter("hold"), usageAfter("free")
	// The kernel counts pages by CPU and sums them up roughly.
	if holding.PeakRSS < held || freed.PeakRSS < holding.PeakRSS-held/2 {
		t.Errorf("peak is %d with 64 MiB held and %d after", holding.PeakRSS, freed.PeakRSS)
	}
	if holding.RSS < held || freed.RSS > holding.RSS-held/2 {
		t.Errorf("%d are resident with 64 MiB held and %d after", holding.RSS, freed.RSS)
	}
	if err := ResetPeak(cmd.Process.Pid); err != nil {
		t.Logf("not allowed here: %v", err)
	} else if reset := usageAfter("nothing"); reset.PeakRSS > holding.PeakRSS-held/2 {
		t.Errorf("peak is %d after it was reset and the memory freed", reset.PeakRSS)
	}
	worked := usageAfter("work")
	if worked.CPU < 500*time.Millisecond || worked.CPU > 5*time.Second {
		t.Errorf("CPU time is %s after half a second of it", worked.CPU)
	}
	if cost := worked.Since(freed); cost.CPUSeconds != (worked.CPU-freed.CPU).Seconds() || cost.PeakRSSBytes != worked.PeakRSS {
		t.Errorf("cost is %+v, between %+v and %+v", cost, freed, worked)
	}

	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadUsage(cmd.Process.Pid); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "cannot measure process") {
		t.Errorf("a process that has ended can be measured: %v", err)
	}
	if err := ResetPeak(cmd.Process.Pid); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "cannot reset the peak memory") {
		t.Errorf("the peak of a process that has ended can be reset: %v", err)
	}
}

func TestCPUTime(t *testing.T) {
	for _, test := range []struct {
		reason, stat string
		want         time.Duration
		wrong        string
	}{
		{"a name with brackets and spaces", "7 (a) b) (c) S 1 7 7 0 -1 4194304 10 0 0 0 123 45 6 7 20 0 1 0 100", 1810 * time.Millisecond, ""},
		{"too short", "7 (a) S 1", 0, "too short"},
		{"no brackets", "7 a S 1 7 7 0 -1 4194304 10 0 0 0 123 45", 0, "too short"},
		{"no number", "7 (a) S 1 7 7 0 -1 4194304 10 0 0 0 x 45 6 7", 0, "no time"},
	} {
		got, err := cpuTime([]byte(test.stat))
		if got != test.want || (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("%s: got %s, %v, want %s, %q", test.reason, got, err, test.want, test.wrong)
		}
	}
}

func TestMachine(t *testing.T) {
	m, err := Machine()
	if err != nil {
		t.Fatal(err)
	}
	if m.Cores < 1 || m.MemoryBytes < 1<<26 || m.CPU == "" || !strings.HasPrefix(m.Kernel, "Linux ") || !strings.HasPrefix(m.Go, "go") {
		t.Errorf("this machine is %+v", m)
	}
}
