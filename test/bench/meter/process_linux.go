// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/strata-project/strata/test/bench/report"
)

// tick is the unit of times in /proc/PID/stat: the kernel gives them to
// programs in hundredths of a second whatever its own timer does.
const tick = 10 * time.Millisecond

// ReadUsage returns what a process that runs has used.
func ReadUsage(pid int) (Usage, error) {
	stat, err := os.ReadFile(proc(pid, "stat"))
	if err != nil {
		return Usage{}, fmt.Errorf("cannot measure process %d: %w", pid, err)
	}
	cpu, err := cpuTime(stat)
	if err != nil {
		return Usage{}, fmt.Errorf("cannot measure process %d: %w", pid, err)
	}
	status, err := os.ReadFile(proc(pid, "status"))
	if err != nil {
		return Usage{}, fmt.Errorf("cannot measure process %d: %w", pid, err)
	}
	peak, err := kilobytes(status, "VmHWM")
	if err != nil {
		return Usage{}, fmt.Errorf("cannot measure process %d: %w", pid, err)
	}
	resident, err := kilobytes(status, "VmRSS")
	if err != nil {
		return Usage{}, fmt.Errorf("cannot measure process %d: %w", pid, err)
	}
	return Usage{CPU: cpu, PeakRSS: peak, RSS: resident}, nil
}

// ResetPeak makes the present memory of a process its peak. Where that is not
// allowed the peak goes on from the start of the process.
func ResetPeak(pid int) error {
	// 5 is the kernel's number for the high-water mark of resident memory.
	if err := os.WriteFile(proc(pid, "clear_refs"), []byte("5"), 0); err != nil {
		return fmt.Errorf("cannot reset the peak memory of process %d: %w", pid, err)
	}
	return nil
}

func proc(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// cpuTime returns user and system time of /proc/PID/stat, with those of the processes
// that it has started and that have ended.
func cpuTime(stat []byte) (time.Duration, error) {
	// The second field is the program's name in brackets, which may itself
	// hold spaces and brackets: count from the last one. State is field 3.
	end := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[end+1:]))
	const user, endedSystem = 14 - 3, 17 - 3
	if end < 0 || len(fields) <= endedSystem {
		return 0, errors.New("its stat is too short")
	}
	var ticks uint64
	for _, field := range fields[user : endedSystem+1] {
		n, err := strconv.ParseUint(field, 10, 63)
		if err != nil {
			return 0, fmt.Errorf("its stat has no time: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// kilobytes returns a value of "Name:  123 kB" in bytes.
func kilobytes(content []byte, name string) (int64, error) {
	scanner := bufio.NewScanner(bytes.NewReader(content))
	for scanner.Scan() {
		key, value, _ := strings.Cut(scanner.Text(), ":")
		if key != name {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s is no size: %w", name, err)
		}
		return kb * 1024, nil
	}
	return 0, fmt.Errorf("there is no %s; has it ended?", name)
}

// Machine returns what this machine is.
func Machine() (report.Machine, error) {
	m := report.Machine{Cores: runtime.NumCPU(), Go: runtime.Version(), CPU: "unknown"}
	memory, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return m, fmt.Errorf("cannot measure the machine: %w", err)
	}
	if m.MemoryBytes, err = kilobytes(memory, "MemTotal"); err != nil {
		return m, fmt.Errorf("cannot measure the machine: %w", err)
	}
	cpus, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return m, fmt.Errorf("cannot measure the machine: %w", err)
	}
	// Not every architecture names the model.
	for line := range strings.Lines(string(cpus)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return m, fmt.Errorf("cannot measure the machine: %w", err)
	}
	m.Kernel = "Linux " + strings.TrimSpace(string(kernel))
	return m, nil
}
