// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import "syscall"

// childAttributes puts a child in a process group of its own and has the
// kernel kill it when this process dies, however that happens.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
