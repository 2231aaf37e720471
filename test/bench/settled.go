// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/strata-project/strata/test/bench/report"
)

// runIdle waits while nothing happens.
func runIdle(ctx context.Context, s *session, _ *report.Result) error {
	timer := time.NewTimer(s.o.idle)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// runRestart kills the system and starts it again, and waits until it has done
// what it does then.
func runRestart(ctx context.Context, s *session, r *report.Result) error {
	before, err := s.leader(ctx)
	if err != nil {
		return err
	}
	if err := s.system.Kill(); err != nil {
		return err
	}
	start := time.Now()
	if err := s.system.Restart(ctx); err != nil {
		return err
	}
	if before != "" {
		if err := s.leads(ctx, before); err != nil {
			return err
		}
		r.Notes = append(r.Notes, fmt.Sprintf("it leads again after %s, when the lease of the one that was killed has ended",
			time.Since(start).Round(time.Second)))
	}
	led, last := time.Now(), start
	seen := func() string { return "one at " + last.Format(time.TimeOnly) }
	err = await(ctx, seldom, "no more requests", seen, func() bool {
		if now, err := s.lastRequest(s.system); err == nil {
			last = later(last, now)
		}
		return time.Since(later(led, last)) >= s.o.quiet
	})
	if err != nil {
		return err
	}
	r.Figures = append(r.Figures, seconds(report.Quiet, last.Sub(start)))
	_, err = s.deployed(ctx)
	return err
}

// leads waits until another one leads than before.
func (s *session) leads(ctx context.Context, before string) error {
	return await(ctx, seldom, "another leader", func() string { return before }, func() bool {
		now, err := s.leader(ctx)
		return err == nil && now != "" && now != before
	})
}
