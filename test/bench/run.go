// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/strata-project/strata/test/bench/meter"
	"github.com/strata-project/strata/test/bench/report"
)

// session is one system on one bed.
type session struct {
	*bed
	o      *options
	system System
	// results are those of the scenarios that have run.
	results []report.Result
}

// measure runs all scenarios with all systems and returns the report. Scenarios
// that do not end have an error in their result; an error is returned when
// nothing can be measured, or the context has ended.
func measure(ctx context.Context, o *options) (report.Report, error) {
	began := time.Now()
	run := report.Run{Date: began.UTC(), Command: o.command, ReadyDelaySeconds: o.readyDelay.Seconds()}
	var err error
	if run.Programs, err = programs(); err != nil {
		return report.Report{}, err
	}
	if run.Machine, err = meter.Machine(); err != nil {
		return report.Report{}, err
	}
	if o.programs, err = os.MkdirTemp("", "strata-bench-programs-"); err != nil {
		return report.Report{}, err
	}
	defer func() { _ = os.RemoveAll(o.programs) }()
	var results []report.Result
	for _, chosen := range o.systems {
		var about System
		for _, plan := range o.plans(chosen.name) {
			s := &session{o: o, system: chosen.make(o)}
			err := s.run(ctx, plan)
			results = append(results, s.results...)
			about = s.system
			if ctx.Err() != nil {
				return report.Report{}, context.Cause(ctx)
			}
			if err != nil {
				o.logf("%s: %v", chosen.name, err)
				results = append(results, report.Result{
					Scenario: plan.scenarios[0].name, System: chosen.name, Sizes: plan.scenarios[0].sizes(o, plan), Error: err.Error(),
				})
			}
		}
		if about == nil {
			continue // nothing was to be done with it
		}
		run.Systems = append(run.Systems, about.Report())
		if of, ok := about.(built); ok {
			run.Programs = append(run.Programs, of.Program())
		}
	}
	return report.New(run, results), nil
}

// plan is what happens on one bed: scenarios, each of which begins with what
// the one before it has left.
type plan struct {
	size
	chain     bool
	scenarios []scenario
}

// scenario is something that is measured. It fills in the figures of a result.
type scenario struct {
	name string
	run  func(ctx context.Context, s *session, r *report.Result) error
	// standing says that it needs something that goes on running.
	standing bool
}

// suits tells whether a system can do what the scenario asks of it.
func (of scenario) suits(system System) bool {
	_, controlled := system.(Controller)
	return controlled || !of.standing
}

// sizes returns those of the scenario's result.
func (of scenario) sizes(o *options, p plan) report.Sizes {
	sizes := report.Sizes{Layers: p.layers, Releases: p.releases}
	if of.name == report.Commit {
		sizes.Commits = o.commits
	}
	return sizes
}

// settledScenarios are those that begin with a fan-out that has settled.
var settledScenarios = []scenario{
	{name: report.Idle, run: runIdle, standing: true},
	{name: report.Commit, run: runCommit},
	{name: report.Restart, run: runRestart, standing: true},
	{name: report.Storm, run: runStorm},
}

// plans returns what is to be done with a system.
func (o *options) plans(system string) []plan {
	var plans []plan
	if o.runs(report.Chain) {
		plans = append(plans, plan{size: o.chain, chain: true, scenarios: []scenario{{name: report.Chain, run: runChain}}})
	}
	fanOut := plan{size: o.fanOut, scenarios: []scenario{{name: report.FanOut, run: runFanOut}}}
	for _, of := range settledScenarios {
		if o.runs(of.name) {
			fanOut.scenarios = append(fanOut.scenarios, of)
		}
	}
	if o.runs(report.FanOut) || len(fanOut.scenarios) > 1 {
		plans = append(plans, fanOut)
	}
	if o.runs(report.Curve) && slices.ContainsFunc(o.curveSystems, func(name string) bool { return stands(name, system) }) {
		plans = append(plans, o.curvePlans()...)
	}
	return plans
}

// curvePlans returns a fan-out of each size of the curve. What is settled is
// looked at with the largest, where it costs most.
func (o *options) curvePlans() []plan {
	var plans []plan
	for _, layers := range o.curve {
		of := plan{size: size{layers, o.curveReleases}, scenarios: []scenario{{name: report.Curve, run: runFanOut}}}
		if layers == slices.Max(o.curve) {
			for _, settled := range settledScenarios {
				if settled.standing && o.runs(settled.name) {
					of.scenarios = append(of.scenarios, settled)
				}
			}
		}
		plans = append(plans, of)
	}
	return plans
}

// run makes a bed, starts the system on it and runs the scenarios of a plan.
func (s *session) run(ctx context.Context, p plan) (err error) {
	name := s.system.Report().Name
	s.o.logf("%s: starts for %d layers of %d releases", name, p.layers, p.releases)
	s.bed, err = makeBed(ctx, s.o, newWorkload(p.layers, p.releases, p.chain, s.o.ownSources), s.system.User())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.onClose(s.system.Stop)
	if err := s.begin(ctx); err != nil {
		return err
	}
	for _, scenario := range p.scenarios {
		if !scenario.suits(s.system) {
			continue
		}
		result := report.Result{Scenario: scenario.name, System: name, Sizes: scenario.sizes(s.o, p)}
		err := s.within(ctx, func(ctx context.Context) error { return s.play(ctx, scenario, &result) })
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			result.Error = err.Error()
		}
		s.results = append(s.results, result)
		s.logf("%s: %s: %s", name, scenario.name, describe(result))
		if err != nil {
			return nil // what comes next begins with what this one did not leave
		}
	}
	return nil
}

// play runs one scenario and says what it has cost.
func (s *session) play(ctx context.Context, of scenario, r *report.Result) error {
	if err := s.calm(ctx); err != nil {
		return err
	}
	w, err := openWindow(s.bed, s.system)
	if err != nil {
		return err
	}
	finish := s.profile(ctx, r)
	err = of.run(ctx, s, r)
	return errors.Join(err, w.close(r), finish())
}

// begin starts the system and gives it the layers, which wait for their
// sources.
func (s *session) begin(ctx context.Context) error {
	return s.within(ctx, func(ctx context.Context) error {
		if err := s.system.Start(ctx, s.bed); err != nil {
			return err
		}
		controller, ok := s.system.(Controller)
		if !ok {
			return nil
		}
		if err := s.declare(ctx, controller); err != nil {
			return err
		}
		return nil
	})
}

// within bounds a step by --timeout.
func (s *session) within(ctx context.Context, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.timeout, fmt.Errorf("not done within %s", s.o.timeout))
	defer cancel()
	return step(ctx)
}

// describe returns a line about a result.
func describe(r report.Result) string {
	text := ""
	for _, f := range r.Figures {
		text += fmt.Sprintf("%s %s, ", f.Name, report.Format(f.Value, f.Unit))
	}
	if r.Error != "" {
		return text + r.Error
	}
	return text + fmt.Sprintf("wall %s", time.Duration(r.WallSeconds*float64(time.Second)).Round(time.Millisecond))
}
