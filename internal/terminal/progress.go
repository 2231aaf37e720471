// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"io"
	"sync"
)

// Progress shows in one line of a terminal what long work is at. It writes
// nothing to anything else. Its methods may be called at the same time.
type Progress struct {
	mu     sync.Mutex
	out    io.Writer
	screen Screen
	shown  bool
}

// NewProgress returns a Progress on a screen.
func NewProgress(out io.Writer, screen Screen) *Progress {
	return &Progress{out: out, screen: screen}
}

// Say replaces what is shown.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.screen.Width == 0 {
		return
	}
	fmt.Fprintf(p.out, "\r\x1b[K%s", p.screen.Paint(Dim, p.screen.Clip(Safe(fmt.Sprintf(format, args...)))))
	p.shown = true
}

// Done takes away what is shown.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}
