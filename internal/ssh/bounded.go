// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"io"
	"slices"
	"sync"
)

// bounded keeps what is written up to a limit, and calls over beyond it. It is safe for
// concurrent use.
type bounded struct {
	most   int
	follow io.Writer
	over   func()

	mu   sync.Mutex
	kept []byte
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.full || len(b.kept)+len(p) > b.most {
		b.full = true
		b.over()
		return 0, ErrTooMuch
	}
	b.kept = append(b.kept, p...)
	if b.follow != nil {
		if _, err := b.follow.Write(p); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (b *bounded) isOver() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.full
}

// bytes returns what was kept, which a command that goes on does not change.
func (b *bounded) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.kept)
}
