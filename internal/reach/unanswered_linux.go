// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"os"
	"syscall"
	"time"
)

// tcpUserTimeout is the option TCP_USER_TIMEOUT of Linux, which package syscall does
// not name.
const tcpUserTimeout = 0x12

// boundUnanswered has a connection end when what was sent is not acknowledged for so
// long. Probes are not sent meanwhile, and Linux would try for a quarter of an hour.
func boundUnanswered(fd uintptr, limit time.Duration) error {
	err := syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(limit.Milliseconds()))
	return os.NewSyscallError("setsockopt TCP_USER_TIMEOUT", err)
}
