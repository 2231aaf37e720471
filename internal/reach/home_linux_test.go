// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"net"
	"syscall"
	"testing"
)

// What was sent and is never acknowledged ends a connection in less than a minute, and
// so does silence.
func TestConnectionsHomeNoticeThatTheyAreLost(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	connection, err := homeDialer().DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	raw, err := connection.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	option := func(name int) (value int) {
		t.Helper()
		if err := raw.Control(func(fd uintptr) { value, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, name) }); err != nil {
			t.Fatal(err)
		}
		return value
	}
	if found := option(tcpUserTimeout); found != 45_000 {
		t.Errorf("what is not acknowledged is waited for %d ms", found)
	}
	idle, interval, count := option(syscall.TCP_KEEPIDLE), option(syscall.TCP_KEEPINTVL), option(syscall.TCP_KEEPCNT)
	if found := idle + interval*count; found != 45 {
		t.Errorf("silence is noticed after %d s (%d s, and %d probes each %d s)", found, idle, count, interval)
	}
}
