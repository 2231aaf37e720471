// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// dialTime bounds the wait for a connection, lookupTime that for addresses.
	dialTime, lookupTime = 30 * time.Second, 5 * time.Second
)

// Connection is how one cluster is reached. There is no other way to make a client
// of another cluster.
type Connection struct {
	// Config for clients that are given Web.
	Config *rest.Config
	// Web sends every request to the cluster.
	Web *http.Client

	allowed Allowed
	server  *url.URL
	// proxy is the one that the kubeconfig names; nil for none. byProxy is true
	// where that or the process's own one is used.
	proxy   *url.URL
	byProxy bool
}

// Dial makes a network connection.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Connect returns the connection that a configuration says. It asks nobody. Network
// connections are made by what over returns of the way that judges addresses, or in
// that way where it is nil. The error wraps a *RefusedError where the configuration leads to an address that is
// not allowed.
func Connect(config *rest.Config, allowed Allowed, over func(Dial) Dial) (*Connection, error) {
	return connectHolding(config, allowed, over, maxHeld)
}

// ConnectHolding is Connect for a cluster of which less is kept: its lists and watches may bring
// so many bytes.
func ConnectHolding(config *rest.Config, allowed Allowed, over func(Dial) Dial, most int64) (*Connection, error) {
	return connectHolding(config, allowed, over, most)
}

// connectHolding returns a connection whose lists and watches may bring so much.
func connectHolding(config *rest.Config, allowed Allowed, over func(Dial) Dial, most int64) (*Connection, error) {
	c, own, err := judge(config, allowed)
	if err != nil {
		return nil, err
	}
	made := rest.CopyConfig(config)
	made.UserAgent = cmp.Or(config.UserAgent, rest.DefaultKubernetesUserAgent())
	made.QPS, made.Burst, made.Timeout = -1, 0, 0
	through := c.proxy
	dialer := &net.Dialer{Timeout: dialTime, KeepAlive: dialTime, Control: allowed.control}
	if own != nil {
		through, dialer.Control = own, nil
	}
	made.Proxy = func(*http.Request) (*url.URL, error) { return through, nil }
	made.Dial = dialer.DialContext
	if over != nil {
		made.Dial = over(made.Dial)
	}
	counted := newLedger(time.Now, most)
	made.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &limits{next: next, base: c.server.Path, ledger: counted}
	})
	c.Config = made
	if c.Web, err = rest.HTTPClientFor(made); err != nil {
		return nil, err
	}
	return c, nil
}

// Check returns the error that Connect would.
func Check(config *rest.Config, allowed Allowed) error {
	_, _, err := judge(config, allowed)
	return err
}

// judge says where a configuration leads, as far as that is known without a look-up.
// own is the process's own proxy where that is used, which is where whoever runs it
// has put it.
func judge(config *rest.Config, allowed Allowed) (c *Connection, own *url.URL, err error) {
	server, err := url.Parse(config.Host)
	if err != nil || server.Hostname() == "" {
		return nil, nil, errors.New("cluster.server: is no URL such as https://[fd00::1]:6443")
	}
	c = &Connection{allowed: allowed, server: server}
	asking := &http.Request{URL: server}
	if config.Proxy == nil {
		if own, err = http.ProxyFromEnvironment(asking); err != nil {
			return nil, nil, errors.New("the controller's own proxy is no URL")
		}
	} else if c.proxy, err = config.Proxy(asking); err != nil {
		return nil, nil, errors.New("cluster.proxy-url: is no URL")
	}
	c.byProxy = c.proxy != nil || own != nil
	return c, own, c.check()
}

// check judges what needs no look-up: addresses, and names behind a proxy.
func (c *Connection) check() error {
	if c.byProxy {
		if err := c.allowed.Host(c.server.Hostname()); err != nil {
			return fmt.Errorf("cluster.server: %w", err)
		}
	} else if address, err := netip.ParseAddr(c.server.Hostname()); err == nil {
		if err := c.allowed.Address(address); err != nil {
			return fmt.Errorf("cluster.server: %w", err)
		}
	}
	if c.proxy == nil {
		return nil
	}
	if address, err := netip.ParseAddr(c.proxy.Hostname()); err == nil {
		if err := c.allowed.Address(address); err != nil {
			return fmt.Errorf("cluster.proxy-url: %w", err)
		}
	}
	return nil
}

// Named tells whether Locate has something to look up.
func (c *Connection) Named() bool {
	return isName(c.server) || c.proxy != nil && isName(c.proxy)
}

func isName(address *url.URL) bool {
	_, err := netip.ParseAddr(address.Hostname())
	return err != nil
}

// Locate looks up where the names in the configuration lead, as whoever else gets it
// will, and returns an error where that is not allowed or not known. What a proxy
// alone can find out need not be known.
func (c *Connection) Locate(ctx context.Context) error {
	if !c.Named() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	err := c.look(ctx, c.server.Hostname())
	var refused *RefusedError
	if err != nil && (!c.byProxy || errors.As(err, &refused)) {
		return fmt.Errorf("cluster.server: %w", err)
	}
	if c.proxy == nil {
		return nil
	}
	if err := c.look(ctx, c.proxy.Hostname()); err != nil {
		return fmt.Errorf("cluster.proxy-url: %w", err)
	}
	return nil
}

func (c *Connection) look(ctx context.Context, host string) error {
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return fmt.Errorf("cannot look up %s: %w", host, err)
	}
	for _, address := range addresses {
		if err := c.allowed.Address(address); err != nil {
			return err
		}
	}
	return nil
}

// control judges each address that a name has led to, before it is connected to.
func (a Allowed) control(network, address string, _ syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return refused("%s is no network of API servers", network)
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return refused("%s is no address", address)
	}
	return a.Address(at.Addr())
}
