// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package controlplane

import "syscall"

// childAttributes puts a child in a process group of its own. Only Linux can
// also tie its life to that of this process.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
