// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package meter

import "github.com/strata-project/strata/test/bench/report"

// ReadUsage returns ErrNotLinux.
func ReadUsage(int) (Usage, error) { return Usage{}, ErrNotLinux }

// ResetPeak returns ErrNotLinux.
func ResetPeak(int) error { return ErrNotLinux }

// Machine returns ErrNotLinux.
func Machine() (report.Machine, error) { return report.Machine{}, ErrNotLinux }
