// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/strata-project/strata/internal/reach"
)

const (
	// connectTime is how long a registry may take to accept a connection.
	connectTime = 30 * time.Second
	// keepAlive is how often a connection is tried that says nothing.
	keepAlive = 30 * time.Second
)

// led sends requests to the host of an image over one transport, and those to other hosts, to
// which the registry has led by a redirect or for a token, over another one, with connections of
// its own.
type led struct {
	host       string
	own, other http.RoundTripper
}

// RoundTrip sends a request.
func (l *led) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host == l.host {
		return l.own.RoundTrip(req)
	}
	return l.other.RoundTrip(req)
}

// proxied is what the context of a request has that a proxy is asked to send.
type proxied struct{}

// elsewhere is a transport for where a registry leads. It connects to no address that means this
// machine, its neighbours or the cloud that it runs in: those trust whoever asks them.
type elsewhere struct{ *http.Transport }

func newElsewhere(transport *http.Transport) elsewhere {
	transport = transport.Clone()
	dialer := &net.Dialer{Timeout: connectTime, KeepAlive: keepAlive, ControlContext: func(ctx context.Context, _, resolved string, _ syscall.RawConn) error {
		if ctx.Value(proxied{}) != nil {
			return nil
		}
		at, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return err
		}
		return mayLead(at.Addr())
	}}
	transport.DialContext = dialer.DialContext
	return elsewhere{transport}
}

// RoundTrip sends a request. Of one that a proxy sends only an address in it is judged: where a
// name leads the proxy alone finds out.
func (e elsewhere) RoundTrip(req *http.Request) (*http.Response, error) {
	if e.Proxy != nil {
		if by, err := e.Proxy(req); err == nil && by != nil {
			if address, err := netip.ParseAddr(req.URL.Hostname()); err == nil {
				if err := mayLead(address); err != nil {
					return nil, err
				}
			}
			req = req.WithContext(context.WithValue(req.Context(), proxied{}, true))
		}
	}
	return e.Transport.RoundTrip(req)
}

func mayLead(address netip.Addr) error {
	if is := reach.Special(address); is != "" {
		return fmt.Errorf("the registry sends to %s, which is %s: it may lead to no such one", address, is)
	}
	return nil
}
