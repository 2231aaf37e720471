// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"sync"
	"time"
)

// maxHeld bounds what the lists and watches of one connection have brought since
// each of them was listed last: about what is kept of them. A watch that is ended
// for it is begun by a list, which counts anew.
const maxHeld = 128 << 20

// settled is how long what a list has brought counts when nobody watches any more.
// Whoever goes on to watch comes sooner.
const settled = 5 * time.Minute

// ledger counts what the lists and watches of one connection bring. It is safe for
// concurrent use.
type ledger struct {
	now  func() time.Time
	most int64

	mu    sync.Mutex
	lists map[string]*account
	sum   int64
}

// account is what one list and its watches have brought.
type account struct {
	held int64
	// open counts the answers that are being read, and idle is since when there is
	// none.
	open int
	idle time.Time
}

func newLedger(now func() time.Time, most int64) *ledger {
	return &ledger{now: now, most: most, lists: map[string]*account{}}
}

// open begins an answer for a list, which begins anew or goes on. charge counts what
// it brings, least at the first time; settle says that it has ended, and may be
// called again.
func (l *ledger) open(list string, begins bool, least int64) (charge func(int64) error, settle func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.lists[list]
	if known == nil {
		known = &account{}
		l.lists[list] = known
	}
	if begins {
		l.sum -= known.held
		known.held = 0
	}
	known.open++
	charge = func(n int64) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		n, least = max(n, least), 0
		if l.sum+n > l.most {
			l.drop()
		}
		if l.sum+n > l.most {
			return &TooLargeError{What: "lists and watches", Limit: l.most}
		}
		known.held += n
		l.sum += n
		return nil
	}
	return charge, sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		known.open--
		known.idle = l.now()
	})
}

// drop takes what nobody reads any more off the ledger.
func (l *ledger) drop() {
	for list, known := range l.lists {
		if known.open == 0 && l.now().Sub(known.idle) > settled {
			l.sum -= known.held
			delete(l.lists, list)
		}
	}
}
