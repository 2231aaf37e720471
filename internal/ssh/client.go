// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	// dialTime is how long a connection may take, from the first packet to the login.
	dialTime = 10 * time.Second
	// aliveEvery is how often a machine is asked whether it is still there; it is given up
	// when it has not answered to one question until the next two.
	aliveEvery = 10 * time.Second
)

// Target is a machine.
type Target struct {
	// Name by which errors call it.
	Name string
	// Address with its port, such as 192.0.2.7:22 or [2001:db8::7]:22.
	Address string
	User    string
	// Auth are the ways to log in, in the order in which they are tried.
	Auth []ssh.AuthMethod
	// HostKeys are those that it may have, as in a line of authorized_keys. Without any,
	// Pins decides.
	HostKeys []string
	// Pins keep what was seen first. A target needs them or HostKeys.
	Pins *Pins
}

// AuthError says that a machine did not accept who logs in.
type AuthError struct{ Name, User string }

// Error names the machine and the user.
func (e *AuthError) Error() string {
	return fmt.Sprintf("%s does not let %s in: none of the keys is accepted", e.Name, e.User)
}

// Client is a connection to a machine. It is safe for concurrent use.
type Client struct {
	target Target
	conn   *ssh.Client
	// gone ends when the machine does.
	gone   context.Context
	giveUp context.CancelCauseFunc
}

// Dial logs in. An error is a *KeyError, an *AuthError, or says that the machine cannot
// be reached.
func Dial(ctx context.Context, target Target) (*Client, error) {
	return DialOver(ctx, target, (&net.Dialer{}).DialContext)
}

// DialOver is Dial over a connection that somebody else makes.
func DialOver(ctx context.Context, target Target, reach func(context.Context, string, string) (net.Conn, error)) (*Client, error) {
	return dial(ctx, target, reach)
}

// Through logs in to a machine that is reached from this one, with its own keys.
func (c *Client) Through(ctx context.Context, target Target) (*Client, error) {
	next, err := dial(ctx, target, c.DialContext)
	if err != nil {
		return nil, fmt.Errorf("through %s: %w", c.target.Name, err)
	}
	return next, nil
}

// dial logs in over a connection that is made so.
func dial(ctx context.Context, target Target, reach func(context.Context, string, string) (net.Conn, error)) (*Client, error) {
	config, err := target.config()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", target.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := reach(ctx, "tcp", target.Address)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be reached: %w", target.Name, withoutTimeout(ctx, err))
	}
	// A machine that says nothing, or never stops, is given up.
	ended := context.AfterFunc(ctx, func() { _ = conn.Close() })
	var refused error
	verify := config.HostKeyCallback
	config.HostKeyCallback = func(host string, address net.Addr, key ssh.PublicKey) error {
		refused = verify(host, address, key)
		return refused
	}
	made, channels, requests, err := ssh.NewClientConn(conn, target.Address, config)
	if !ended() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, target.explain(ctx, err, refused)
	}
	c := &Client{target: target, conn: ssh.NewClient(made, channels, requests)}
	c.gone, c.giveUp = context.WithCancelCause(context.Background())
	go c.watch(aliveEvery)
	return c, nil
}

// config says how to log in.
func (t Target) config() (*ssh.ClientConfig, error) {
	config := &ssh.ClientConfig{User: t.User, Auth: t.Auth, ClientVersion: "SSH-2.0-strata"}
	switch {
	case len(t.HostKeys) > 0:
		var err error
		config.HostKeyCallback, config.HostKeyAlgorithms, err = named(t.HostKeys)
		return config, err
	case t.Pins != nil:
		config.HostKeyCallback, config.HostKeyAlgorithms = t.Pins.check, t.Pins.algorithms(t.Address)
		return config, nil
	}
	return nil, errors.New("neither a host key nor a place for one is given")
}

// explain says why a login failed, without what the machine said.
func (t Target) explain(ctx context.Context, err, refused error) error {
	var differs *KeyError
	switch {
	case errors.As(refused, &differs):
		return differs
	case refused != nil:
		return fmt.Errorf("%s: its host key is not taken: %w", t.Name, refused)
	case strings.Contains(err.Error(), "unable to authenticate"): // it has no type of its own
		return &AuthError{Name: t.Name, User: t.User}
	case ctx.Err() != nil:
		return fmt.Errorf("%s did not answer as SSH within %s: %w", t.Name, dialTime, ctx.Err())
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s closes the connection", t.Name)
	}
	return fmt.Errorf("%s does not answer as SSH: look whether the address and its port are right", t.Name)
}

// withoutTimeout prefers why a context ended over what came of that.
func withoutTimeout(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Close ends the connection.
func (c *Client) Close() error {
	c.giveUp(net.ErrClosed)
	return c.conn.Close()
}

// DialContext reaches an address from the machine.
func (c *Client) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.conn.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("%s does not reach %s", c.target.Name, address)
	}
	return conn, nil
}

// watch gives a machine up that no longer answers when it is asked in each period.
func (c *Client) watch(period time.Duration) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	answered := make(chan struct{}, 1)
	answered <- struct{}{}
	missed := 0
	for {
		select {
		case <-c.gone.Done():
			return
		case <-ticker.C:
		}
		select {
		case <-answered:
			missed = 0
			go func() {
				// Whatever the answer is, it is one.
				if _, _, err := c.conn.SendRequest("keepalive@openssh.com", true, nil); err == nil {
					answered <- struct{}{}
				}
			}()
		default:
			missed++
			if missed == 2 {
				c.giveUp(errors.New("it no longer answers"))
				_ = c.conn.Close()
				return
			}
		}
	}
}
