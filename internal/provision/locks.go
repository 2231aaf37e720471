// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/strata-project/strata/internal/hostplans"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/scripts"
	"github.com/strata-project/strata/internal/ssh"
)

const (
	// beatEvery is how often hosts hear that their lock is still held. They let it fall
	// when they hear nothing for 30 seconds.
	beatEvery = 5 * time.Second
	// lockTime is how long a host may take to lock.
	lockTime = 30 * time.Second
)

// LockedError says that somebody else works on a host or on the cluster.
type LockedError struct {
	// Where is the host, or the cluster.
	Where string
	// Holder says who it is, since when.
	Holder string
}

// Error names both.
func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is being worked on: %s. Wait until that has ended", e.Where, e.Holder)
}

// hold takes the locks of all hosts that can be reached, until release is called, which gives
// the Lease of the cluster up, too. The context ends when a lock is lost.
func (w *worker) hold(ctx context.Context, plan *hostplans.Plan) (_ context.Context, cancel context.CancelCauseFunc, release func(), err error) {
	ctx, cancel = context.WithCancelCause(ctx)
	unlock, err := w.lockHosts(ctx, cancel, plan)
	if err != nil {
		cancel(nil)
		return nil, nil, nil, err
	}
	return ctx, cancel, func() {
		w.lease.release()
		unlock()
		cancel(nil)
	}, nil
}

// lockHosts takes the locks of all hosts that can be reached, and keeps them until release
// is called. When a host no longer hears that its lock is held, the run is cancelled.
func (w *worker) lockHosts(ctx context.Context, cancel context.CancelCauseFunc, plan *hostplans.Plan) (release func(), err error) {
	var mu sync.Mutex
	held := map[string]*ssh.Held{}
	var group errgroup.Group
	group.SetLimit(64)
	for _, host := range plan.Hosts {
		if host.Class == hosts.Unreachable {
			continue
		}
		group.Go(func() error {
			lock, said, err := w.Machines.Hold(ctx, host.Name, scripts.Lock, w.identity+"\n", lockTime)
			if err != nil {
				return fmt.Errorf("cannot lock %s: %w", host.Name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			held[host.Name] = lock
			left, err := asLocked(host.Name, said)
			if left != "" {
				w.fallen = append(w.fallen, left)
			}
			return err
		})
	}
	err = group.Wait()
	stop := make(chan struct{})
	var beats sync.WaitGroup
	release = func() {
		close(stop)
		beats.Wait()
		var ending sync.WaitGroup
		for _, each := range held {
			ending.Go(func() { each.Release("e", 5*time.Second) })
		}
		ending.Wait()
	}
	if err != nil {
		release()
		return nil, err
	}
	beats.Go(func() { beat(held, stop, cancel) })
	return release, nil
}

// asLocked reads what a host says of its lock: that we have it, and who has not let it go
// before; or who has it.
func asLocked(host, said string) (left string, err error) {
	word, holder, _ := strings.Cut(strings.TrimSpace(said), " ")
	holder = printable.Line(holder, 300)
	switch word {
	case "locked":
		return holder, nil
	case "held":
		if holder == "" {
			holder = "somebody who has not said who"
		}
		return "", &LockedError{Where: host, Holder: holder}
	}
	return "", fmt.Errorf("cannot lock %s: it does not answer as a host does", host)
}

// beat tells hosts that their locks are held.
func beat(held map[string]*ssh.Held, stop <-chan struct{}, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		var lost []string
		for name, each := range held {
			if each.Say(".") != nil {
				lost = append(lost, name)
			}
		}
		if len(lost) > 0 {
			slices.Sort(lost)
			cancel(errors.New("the connection to " + strings.Join(lost, ", ") + " is lost, and with it the lock there: run it again"))
			return
		}
	}
}
