// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrNotWanted ends a command to whose question somebody has said no. Nothing was done.
var ErrNotWanted = errors.New("nothing was done, as it was not confirmed")

// longestAnswer is how many bytes an answer may have.
const longestAnswer = 4096

// Ask returns what somebody at the terminal answers; empty where nobody can be asked, or
// where they say nothing.
func (c *Console) Ask(question string) (string, error) {
	if c.Answers == nil {
		return "", nil
	}
	fmt.Fprint(c.ErrOut, question+" ")
	var line []byte
	one := make([]byte, 1)
	// Byte by byte: what comes after the line is for whoever reads next.
	for len(line) < longestAnswer {
		n, err := c.Answers.Read(one)
		if n == 1 && one[0] == '\n' {
			return strings.TrimSpace(string(line)), nil
		}
		line = append(line, one[:n]...)
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(c.ErrOut)
			return strings.TrimSpace(string(line)), nil
		}
		if err != nil {
			return "", fmt.Errorf("cannot read the answer: %w", err)
		}
	}
	return "", fmt.Errorf("the answer is longer than %d bytes", longestAnswer)
}

// Confirm asks for a yes. Where nobody can be asked, the answer is what unasked says.
func (c *Console) Confirm(question string, unasked bool) error {
	if c.Answers == nil {
		if !unasked {
			return errors.New("nothing was done, for there is no terminal to ask at: give --yes")
		}
		return nil
	}
	answer, err := c.Ask(question + " [y/N]")
	if err != nil {
		return err
	}
	if answer = strings.ToLower(answer); answer != "y" && answer != "yes" {
		return ErrNotWanted
	}
	return nil
}
