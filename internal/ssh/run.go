// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Command is what is run on a machine.
type Command struct {
	// Line is what the login shell is given; it is fixed text, since it may be seen by
	// everybody on the machine. It begins with the name of a program.
	Line string
	// Prefix is run before Line and what limits its time, such as sudo -n: nobody but the
	// user that a command runs as could end it.
	Prefix string
	// Input is what the command reads: a script, and what must not be seen.
	Input []byte
	// Stream is read in the place of Input where it is given.
	Stream io.Reader
	// Timeout of the command; 0 means a minute.
	Timeout time.Duration
	// MaxOutput is how many bytes it may write to each of its outputs; 0 means 1 MiB.
	MaxOutput int
	// Follow receives what it writes to its output while it runs; nil for nobody.
	Follow io.Writer
}

// Result is what came of a command.
type Result struct {
	Output, Errors []byte
	// Status it ended with.
	Status int
}

// ErrTooMuch says that a command has written more than it may.
var ErrTooMuch = errors.New("it writes more than it may")

// Run runs a command and waits for its end. The error says that it did not come to its
// own end: the machine has gone, its time is over, or it has written too much. The machine
// ends it at the latest a second after its time, by its program timeout: OpenSSH passes no
// signal on to a command of root. A command that ends with another status than 0 is no
// error.
func (c *Client) Run(ctx context.Context, command Command) (Result, error) {
	limit, most := command.Timeout, command.MaxOutput
	if limit == 0 {
		limit = time.Minute
	}
	if most == 0 {
		most = 1 << 20
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it takes longer than %s", limit))
	defer cancel()
	ended := context.AfterFunc(c.gone, cancel)
	defer ended()
	session, err := c.session(ctx)
	if err != nil {
		return Result{}, c.failed(ctx, err)
	}
	defer func() { _ = session.Close() }()
	output, errs := &bounded{most: most, follow: command.Follow}, &bounded{most: most}
	output.over, errs.over = cancel, cancel
	session.Stdin, session.Stdout, session.Stderr = bytes.NewReader(command.Input), output, errs
	if command.Stream != nil {
		session.Stdin = command.Stream
	}
	done := make(chan error, 1)
	line := fmt.Sprintf("%s timeout -s KILL %d %s", command.Prefix, int64((limit+2*time.Second-1)/time.Second), command.Line)
	go func() { done <- session.Run(strings.TrimSpace(line)) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		_ = session.Signal(ssh.SIGKILL)
		_ = session.Close()
		err = context.Cause(ctx)
	}
	if output.isOver() || errs.isOver() {
		return Result{}, c.failed(ctx, ErrTooMuch)
	}
	result := Result{Output: output.bytes(), Errors: errs.bytes()}
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return result, nil
	case errors.As(err, &exit) && exit.Signal() == "":
		result.Status = exit.ExitStatus()
		return result, nil
	}
	return result, c.failed(ctx, err)
}

// session opens a session, which the machine may leave without an answer.
func (c *Client) session(ctx context.Context) (*ssh.Session, error) {
	type opened struct {
		session *ssh.Session
		err     error
	}
	made := make(chan opened, 1)
	go func() {
		session, err := c.conn.NewSession()
		made <- opened{session, err}
	}()
	select {
	case got := <-made:
		return got.session, got.err
	case <-ctx.Done():
		go func() {
			if late := <-made; late.session != nil {
				_ = late.session.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// failed says why a command did not come to its end, without what the machine said.
func (c *Client) failed(ctx context.Context, err error) error {
	var missing *ssh.ExitMissingError
	var exit *ssh.ExitError
	switch {
	case c.gone.Err() != nil:
		return fmt.Errorf("%s: %w", c.target.Name, context.Cause(c.gone))
	case errors.Is(err, ErrTooMuch):
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.As(err, &exit):
		err = errors.New("the command was killed")
	case errors.As(err, &missing), errors.Is(err, io.EOF):
		err = errors.New("the connection ends before the command does")
	default:
		err = errors.New("it opens no session")
	}
	return fmt.Errorf("%s: %w", c.target.Name, err)
}
