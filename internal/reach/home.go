// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"errors"
	"net"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// silence is how long a connection to the controller's own API server may be silent
// where an answer is due until it counts as lost. HTTP/2 would need as long: 30 s until
// it asks, and 15 s for the answer.
const silence = 45 * time.Second

// Home has a configuration reach the controller's own cluster over HTTP/1.1, one
// connection for each request that is under way and for each watch. Over HTTP/2 all of
// them share one connection: a burst of writes then holds up the watches, until the API
// server ends those as too slow and the caches list everything anew.
func Home(config *rest.Config) {
	config.NextProtos = []string{"http/1.1"}
	config.Dial = homeDialer().DialContext
}

// homeDialer makes connections that notice within silence when the other side is gone.
// Nothing else would: HTTP/1.1 has no pings, and a watch sends nothing.
func homeDialer() *net.Dialer {
	const probes = 3
	return &net.Dialer{
		Timeout:         dialTime,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence / 3, Interval: silence * 2 / 3 / probes, Count: probes},
		Control: func(_, _ string, raw syscall.RawConn) error {
			var err error
			return errors.Join(raw.Control(func(fd uintptr) { err = boundUnanswered(fd, silence) }), err)
		},
	}
}
