// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/strata-project/strata/test/bench/report"
)

// calmAtMost is how long is waited for a cluster to be calm.
const calmAtMost = 20 * time.Second

// seldom is how often is looked for what costs a request, or much reading.
const seldom = 100 * time.Millisecond

// lookEvery is how often what is waited for is looked for. Times are those of
// the watches, and not of the look.
const lookEvery = 10 * time.Millisecond

// calm waits until nothing has been written and the system has asked nothing
// for a while. Some systems are never calm, so that this is no error.
func (s *session) calm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, calmAtMost)
	defer cancel()
	last, since := -1, time.Now()
	seen := func() string { return fmt.Sprintf("%d writes", last) }
	err := await(ctx, seldom, "nothing to happen", seen, func() bool {
		if now := s.writes(); now != last {
			last, since = now, time.Now()
		}
		if asked, err := s.lastRequest(s.system); err == nil {
			since = later(since, asked)
		}
		return time.Since(since) >= s.o.calm
	})
	if errors.Is(err, context.DeadlineExceeded) {
		s.logf("%s is not calm after %s", s.system.Report().Name, calmAtMost)
		return nil
	}
	return err
}

// writes counts everything that was seen to be written.
func (s *session) writes() int {
	writes := sum(s.layers.changes()) + sum(s.clusters.changes())
	for _, times := range s.releases.all() {
		writes += times.Writes + int(times.ReadyGeneration)
	}
	return writes
}

// seen says how far releases and layers are, for an error.
func (s *session) seen() string {
	ready := s.releases.count(func(_ string, r *releaseTimes) bool { return r.isReady() })
	settled, _ := s.layers.settled(s.revision)
	return fmt.Sprintf("%d of %d releases, %d of them ready, and %d of %d layers at the revision",
		len(s.releases.all()), s.work.releases(), ready, settled, len(s.work.layers))
}

// deployed waits until all releases are Ready with the content that they should
// have, and all layers have settled at the last commit. It returns when that
// was.
func (s *session) deployed(ctx context.Context) (time.Time, error) {
	var end time.Time
	err := await(ctx, lookEvery, "all layers to be deployed", s.seen, func() bool {
		good := s.releases.count(func(name string, r *releaseTimes) bool {
			return r.isReady() && r.Mark == s.work.marks[name]
		})
		if good < s.work.releases() {
			return false
		}
		if !s.controlled() {
			for _, times := range s.releases.all() {
				end = later(end, times.ReadyAt)
			}
			return true
		}
		settled, last := s.layers.settled(s.revision)
		end = last
		return settled == len(s.work.layers)
	})
	return end, err
}

// controlled tells whether the system is a controller.
func (s *session) controlled() bool {
	_, ok := s.system.(Controller)
	return ok
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// rollOut has the sources fetch the last commit and the system deploy it, layer
// by layer where they depend on each other. It returns when the artifact
// arrived and when all was deployed.
func (s *session) rollOut(ctx context.Context) (start, end time.Time, err error) {
	if start, err = s.fetch(ctx, ""); err != nil {
		return start, end, err
	}
	if pusher, ok := s.system.(Pusher); ok {
		if err := s.push(ctx, pusher); err != nil {
			return start, end, err
		}
	}
	end, err = s.deployed(ctx)
	return start, end, err
}

// push pushes all layers: those that depend on others when the releases of
// those are Ready.
func (s *session) push(ctx context.Context, pusher Pusher) error {
	var together []layer
	for _, l := range s.work.layers {
		if len(l.DependsOn) == 0 {
			together = append(together, l)
			continue
		}
		if err := pusher.Push(ctx, s.work.manifestsOf(together)); err != nil {
			return err
		}
		err := await(ctx, time.Millisecond, "the releases of a layer to be ready", s.seen, func() bool {
			for _, before := range together {
				for _, release := range before.Releases {
					if times := s.releases.get(release); !times.isReady() {
						return false
					}
				}
			}
			return true
		})
		if err != nil {
			return err
		}
		together = []layer{l}
	}
	return pusher.Push(ctx, s.work.manifestsOf(together))
}

// runChain deploys layers that depend on each other.
func runChain(ctx context.Context, s *session, r *report.Result) error {
	start, end, err := s.rollOut(ctx)
	if err != nil {
		return err
	}
	r.Figures = append(r.Figures, seconds(report.AllDeployed, end.Sub(start)))
	var values []float64
	for _, hop := range hops(s.work.layers, s.releases.all()) {
		values = append(values, hop.Seconds())
	}
	r.Figures = append(r.Figures, report.Percentiles(values, report.HopP50, report.HopP95, report.HopMax)...)
	return nil
}

// runFanOut deploys layers that do not depend on each other.
func runFanOut(ctx context.Context, s *session, r *report.Result) error {
	start, end, err := s.rollOut(ctx)
	if err != nil {
		return err
	}
	releases := s.releases.all()
	r.Figures = append(r.Figures, seconds(report.AllCreated, lastCreated(releases).Sub(start)),
		seconds(report.AllReady, lastReady(releases).Sub(start)), seconds(report.AllDeployed, end.Sub(start)))
	return nil
}

func seconds(name string, value time.Duration) report.Figure {
	return report.Figure{Name: name, Unit: report.Seconds, Value: value.Seconds()}
}
