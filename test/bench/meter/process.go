// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"errors"
	"time"

	"github.com/strata-project/strata/test/bench/report"
)

// ErrNotLinux is returned for what only Linux tells.
var ErrNotLinux = errors.New("processes and the machine can be measured on Linux only")

// Usage is what a process has used since it was started.
type Usage struct {
	// CPU is the time in user and kernel mode of all its threads, and of the processes
	// that it has started and that have ended, in steps of 10 ms.
	CPU time.Duration
	// PeakRSS is the most memory in bytes that was resident at a time, since
	// its start or the last ResetPeak.
	PeakRSS int64
	// RSS is how much memory in bytes is resident now.
	RSS int64
}

// Since returns the cost between an earlier moment and this one. The peak is
// that of the window only where ResetPeak was called at its begin.
func (u Usage) Since(earlier Usage) *report.Cost {
	return &report.Cost{CPUSeconds: (u.CPU - earlier.CPU).Seconds(), PeakRSSBytes: u.PeakRSS}
}
