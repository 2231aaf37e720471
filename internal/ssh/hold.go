// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/crypto/ssh"
)

// maxLine is how long the first line of a held command may be, in bytes.
const maxLine = 4096

// Held is a command that runs for as long as somebody says that he is there.
type Held struct {
	client  *Client
	session *ssh.Session
	input   io.WriteCloser
	ended   chan struct{}
}

// Hold runs a command that reads from its input until that ends, and returns the first
// line of what it writes. It must end by itself when its input ends, or when it hears
// nothing for a while: nothing else ends it. The line is fixed text, as in Command.
func (c *Client) Hold(ctx context.Context, line, input string, limit time.Duration) (*Held, string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it takes longer than %s", limit))
	defer cancel()
	session, err := c.session(ctx)
	if err != nil {
		return nil, "", c.failed(ctx, err)
	}
	h := &Held{client: c, session: session, ended: make(chan struct{})}
	output, err := session.StdoutPipe()
	if err == nil {
		h.input, err = session.StdinPipe()
	}
	if err == nil {
		err = session.Start(line)
	}
	if err == nil {
		_, err = io.WriteString(h.input, input)
	}
	if err != nil {
		_ = session.Close()
		return nil, "", c.failed(ctx, err)
	}
	first := make(chan string, 1)
	go func() {
		reader := bufio.NewReaderSize(io.LimitReader(output, maxLine), maxLine)
		said, _ := reader.ReadString('\n')
		first <- said
		_ = session.Wait() // it has no result
		close(h.ended)
	}()
	select {
	case said := <-first:
		return h, said, nil
	case <-ctx.Done():
		_ = session.Close()
		return nil, "", c.failed(ctx, errors.New("it says nothing"))
	}
}

// Say sends something, by which the command knows that somebody is there.
func (h *Held) Say(text string) error {
	if _, err := io.WriteString(h.input, text); err != nil {
		return fmt.Errorf("%s no longer listens", h.client.target.Name)
	}
	return nil
}

// Release sends a last text, ends the input, and waits until the command has ended, or for
// a while.
func (h *Held) Release(last string, limit time.Duration) {
	_, _ = io.WriteString(h.input, last) // whoever does not listen any more has ended
	_ = h.input.Close()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-h.ended: // with whatever status
	case <-timer.C:
	}
	_ = h.session.Close()
}
