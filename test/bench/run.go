// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/strata-project/strata/test/bench/meter"
	"github.com/strata-project/strata/test/bench/report"
)

// session is one system on one bed.
type session struct {
	*bed
	o      *options
	system System
	// started is true once the system has run.
	started bool
	// results are those of the scenarios that have run.
	results []report.Result
	// rssBefore is the memory of the system in bytes before it had a fleet.
	rssBefore int64
}

// measure runs all scenarios with all systems and returns the report. Scenarios
// that do not end have an error in their result. When nothing can be measured,
// or the context ends, the error is beside what there is by then.
func measure(ctx context.Context, o *options) (report.Report, error) {
	// A scenario is long, and its profiles are written at its end.
	if err := makeProfiles(o.profiles); err != nil {
		return report.Report{}, err
	}
	run := report.Run{Date: time.Now().UTC(), Command: o.command, ReadyDelaySeconds: o.readyDelay.Seconds()}
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
	for turn := range o.repeat {
		if o.repeat > 1 {
			o.logf("turn %d of %d", turn+1, o.repeat)
		}
		results = append(results, measureInTurn(ctx, o, &run)...)
		if ctx.Err() != nil {
			break
		}
	}
	return report.New(run, results), context.Cause(ctx)
}

// measureInTurn runs all scenarios with one system after the other and returns
// the results. What it is the first time to know of the systems is noted.
func measureInTurn(ctx context.Context, o *options, run *report.Run) []report.Result {
	var results []report.Result
	for _, chosen := range o.systems {
		found, last := measureSystem(ctx, o, chosen)
		results = append(results, found...)
		known := slices.ContainsFunc(run.Systems, func(s report.System) bool { return s.Name == chosen.name })
		if last != nil && !known { // otherwise nothing was to be done with it
			run.Systems = append(run.Systems, last.Report())
			if of, ok := last.(built); ok {
				run.Programs = append(run.Programs, of.Program())
			}
		}
		if ctx.Err() != nil {
			break
		}
	}
	return results
}

// measureSystem runs all scenarios with one system, until the context ends. It
// returns the results, and the system as it was on the last bed on which it ran.
func measureSystem(ctx context.Context, o *options, chosen choice) (results []report.Result, last System) {
	for _, plan := range o.plans(chosen.name) {
		if ctx.Err() != nil {
			break
		}
		s := &session{o: o, system: chosen.make(o)}
		if err := s.run(ctx, plan); err != nil {
			o.logf("%s: %v", chosen.name, err)
		}
		results = append(results, s.results...)
		if last == nil || s.started {
			last = s.system
		}
	}
	return results, last
}

// plan is what happens on one bed: scenarios, each of which begins with what
// the one before it has left.
type plan struct {
	size
	chain     bool
	built     bool
	bundled   bool
	scenarios []scenario
}

// scenario is something that is measured. It fills in the figures of a result.
type scenario struct {
	name string
	run  func(ctx context.Context, s *session, r *report.Result) error
	// standing says that it needs something that goes on running.
	standing bool
	// changing says that it changes releases that exist.
	changing bool
}

// suits tells whether a system can do what the scenario asks of it.
func (of scenario) suits(system System) bool {
	if _, is := system.(*idleManager); is {
		return of.name == report.FanOut || of.name == report.Curve || of.name == report.Idle
	}
	if pusher, ok := system.(Pusher); ok {
		return !of.standing && (!of.changing || pusher.Changes())
	}
	return true
}

// sizes returns those of the scenario's result.
func (of scenario) sizes(o *options, p plan) report.Sizes {
	sizes := report.Sizes{Clusters: p.clusters, Layers: p.layers, Releases: p.releases}
	if of.name == report.Commit || of.name == report.BuildsCommit {
		sizes.Commits = o.commits
	}
	return sizes
}

// settledScenarios are those that begin with a fan-out that has settled.
var settledScenarios = []scenario{
	{name: report.Idle, run: runIdle, standing: true},
	{name: report.Commit, run: runCommit, changing: true},
	{name: report.Restart, run: runRestart, standing: true},
	{name: report.Storm, run: runStorm, changing: true},
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
	if o.runs(report.Fleet) && slices.Contains(fleetSystems, system) {
		plans = append(plans, plan{size: o.fleet, scenarios: fleetScenarios})
	}
	if o.runs(report.Rollout) && slices.Contains(fleetSystems, system) {
		plans = append(plans, plan{size: o.rollout, bundled: true, scenarios: rolloutScenarios})
	}
	if o.runs(report.Builds) {
		plans = append(plans, plan{size: o.builds, built: true, scenarios: buildScenarios})
	}
	return plans
}

// buildScenarios need a controller, which builds directories.
var buildScenarios = []scenario{
	{name: report.Builds, run: runFanOut, standing: true},
	{name: report.BuildsCommit, run: runCommit, standing: true},
}

// curvePlans returns a fan-out of each size of the curve. What is settled is
// looked at with the largest, where it costs most.
func (o *options) curvePlans() []plan {
	var plans []plan
	for _, layers := range o.curve {
		of := plan{size: size{layers: layers, releases: o.curveReleases}, scenarios: []scenario{{name: report.Curve, run: runFanOut}}}
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

// run makes a bed, starts the system on it and runs the scenarios of a plan. It
// leaves a result of every scenario, but for those that the end of the context
// has cut short.
func (s *session) run(ctx context.Context, p plan) error {
	name := s.system.Report().Name
	s.o.logf("%s: starts for %s", name, report.Sizes{Clusters: p.clusters, Layers: p.layers, Releases: p.releases})
	work, failed := p.workload(s.o)
	if failed == nil {
		s.bed, failed = makeBed(ctx, s.o, work, s.system.User())
	}
	if failed == nil {
		s.onClose(s.system.Stop)
		failed = s.begin(ctx)
		s.started = failed == nil
	}
	for _, of := range p.scenarios {
		if !of.suits(s.system) {
			continue
		}
		result := report.Result{Scenario: of.name, System: name, Sizes: of.sizes(s.o, p)}
		err := failed
		if err == nil {
			err = s.within(ctx, func(ctx context.Context) error { return s.play(ctx, of, &result) })
		}
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			result.Error = err.Error()
			// The next scenario needs the state that this one should have left.
			failed = cmp.Or(failed, fmt.Errorf("not run, because %s did not end", of.name))
		}
		s.results = append(s.results, result)
		s.o.logf("%s: %s: %s", name, of.name, describe(result))
	}
	if s.bed == nil {
		return nil
	}
	return s.close()
}

// workload returns what the scenarios of a plan are about.
func (p plan) workload(o *options) (*workload, error) {
	if p.bundled {
		return newRollout(p.size)
	}
	if p.clusters > 0 {
		return newFleet(p.size)
	}
	work := newWorkload(p.layers, p.releases, p.chain, o.ownSources)
	if p.built {
		return work, work.build()
	}
	return work, nil
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
		if err := s.watchLayers(controller); err != nil {
			return err
		}
		if s.remote != nil {
			return nil // their clusters come first
		}
		return s.declare(ctx, controller)
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
		return text + strings.TrimSpace(r.Error)
	}
	return text + fmt.Sprintf("wall %s", time.Duration(r.WallSeconds*float64(time.Second)).Round(time.Millisecond))
}
