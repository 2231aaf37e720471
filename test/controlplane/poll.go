// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// What is waited for is looked at often for a second, and then less so: most of it
// comes at once, and what does not costs the servers a request for each look.
const (
	pollInterval = 50 * time.Millisecond
	slowInterval = 100 * time.Millisecond
	pollOften    = time.Second
)

// fatalError ends a poll at once.
type fatalError struct{ error }

func (e fatalError) Unwrap() error { return e.error }

// fatal marks an error that waiting does not mend.
func fatal(err error) error { return fatalError{err} }

// poll calls check until it returns nil, a fatal error, or ctx is done; then
// the error names the last thing that check was waiting for.
func poll(ctx context.Context, check func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	begun, slow := time.Now(), false
	seen := errors.New("nothing yet")
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			seen = err // not the interruption of the check itself
		}
		var stop fatalError
		if errors.As(err, &stop) {
			return stop.error
		}
		if !slow && time.Since(begun) > pollOften {
			slow = true
			ticker.Reset(slowInterval)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last seen: %w", context.Cause(ctx), seen)
		case <-ticker.C:
		}
	}
}

// WaitFor calls check every 50ms, and after a second every 100ms, until it returns
// nil. When timeout has passed it returns the last error of check.
func WaitFor(ctx context.Context, timeout time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return poll(ctx, check)
}
