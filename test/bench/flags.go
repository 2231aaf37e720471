// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/strata-project/strata/test/bench/report"
)

// options are what the flags say.
type options struct {
	systems   []choice
	scenarios []string

	chain, fanOut size
	curve         []int
	curveReleases int
	curveSystems  []string
	fleet         size
	rollout       size
	builds        size
	idle          time.Duration
	calm, quiet   time.Duration
	commits       int
	repeat        int
	readyDelay    time.Duration
	timeout       time.Duration
	ownSources    bool
	out           string
	profiles      string
	profileTime   time.Duration
	strataFlags   []string

	command  []string
	programs string // folder of programs that are built for the run
	progress io.Writer
}

// size is that of a workload; clusters is 0 where all layers belong on the one
// that the system runs in, and otherwise each cluster has the layers.
type size struct{ clusters, layers, releases int }

// scenarioNames are the scenarios in the order in which they run.
var scenarioNames = []string{
	report.Chain, report.FanOut, report.Idle, report.Commit, report.Restart, report.Storm, report.Curve,
	report.Fleet, report.Rollout, report.Builds,
}

// parseFlags reads the flags; an error says which of them is wrong.
func parseFlags(args []string, progress io.Writer) (*options, error) {
	o := &options{progress: progress}
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	flags.SortFlags = false
	var systemNames, scenarios []string
	flags.StringSliceVar(
		&systemNames,
		"systems",
		[]string{"plain", "strata", "kustomize"},
		"systems to measure; a name also stands for those that begin with it and a dash",
	)
	flags.StringSliceVar(&scenarios, "scenarios", scenarioNames, "scenarios to run")
	flags.IntVar(&o.chain.layers, "chain-layers", 10, "layers of the chain")
	flags.IntVar(&o.chain.releases, "chain-releases", 5, "releases of each layer of the chain")
	flags.IntVar(&o.fanOut.layers, "fanout-layers", 100, "layers of the fan-out")
	flags.IntVar(&o.fanOut.releases, "fanout-releases", 10, "releases of each layer of the fan-out")
	flags.IntSliceVar(&o.curve, "curve-layers", []int{100, 200, 500, 1000}, "layers of each fan-out of the curve")
	flags.IntVar(&o.curveReleases, "curve-releases", 10, "releases of each layer of the curve")
	flags.StringSliceVar(&o.curveSystems, "curve-systems", []string{report.Plain, report.Strata, report.KustomizeTuned}, "systems of which the curve is taken")
	flags.IntVar(&o.fleet.clusters, "fleet-clusters", 50, "clusters of the fleet, all of them the same API server")
	flags.IntVar(&o.fleet.layers, "fleet-layers", 10, "layers of each cluster of the fleet")
	flags.IntVar(&o.fleet.releases, "fleet-releases", 5, "releases of each layer of the fleet")
	flags.IntVar(&o.rollout.clusters, "rollout-clusters", 100, "clusters of the roll-out, all of them the same API server")
	flags.IntVar(&o.rollout.layers, "rollout-layers", 5, "layers of each cluster of the roll-out")
	flags.IntVar(&o.rollout.releases, "rollout-releases", 1, "releases of each layer of the roll-out")
	flags.IntVar(&o.builds.layers, "builds-layers", 100, "layers whose directories are built")
	flags.IntVar(&o.builds.releases, "builds-releases", 2, "releases of each layer that is built")
	flags.DurationVar(&o.idle, "idle", 2*time.Minute, "how long idle lasts")
	flags.IntVar(&o.commits, "commits", 50, "commits of the scenarios commit and builds")
	flags.IntVar(&o.repeat, "repeat", 1, "how often all is measured, one system after the other each time; the tables show medians")
	flags.DurationVar(&o.calm, "calm", 2*time.Second, "how long nothing may happen until a scenario begins; some systems never rest, which is waited for 20s")
	flags.DurationVar(&o.quiet, "quiet", 5*time.Second, "how long no request may be made until a system counts as quiet after its restart")
	flags.DurationVar(
		&o.readyDelay,
		"ready-delay",
		100*time.Millisecond,
		"how long after a release was written the stand-in for helm-controller says that it is Ready",
	)
	flags.DurationVar(&o.timeout, "timeout", 30*time.Minute, "how long a system may take for a scenario")
	flags.BoolVar(&o.ownSources, "own-sources", false, "give each layer a GitRepository of its own; without it all layers have the same")
	flags.StringVar(&o.out, "out", "", "file for the report as JSON")
	flags.StringArrayVar(&o.strataFlags, "strata-flag", nil, "a flag for Strata beside those that its chart gives it; may be given again")
	flags.StringVar(
		&o.profiles,
		"pprof-dir",
		"",
		"folder for profiles of each scenario, of the API server and of systems that serve them; it is made where it is missing; this has its cost",
	)
	flags.DurationVar(&o.profileTime, "pprof-time", 5*time.Second, "how long the CPU profile of a scenario is taken, from its begin")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if rest := flags.Args(); len(rest) > 0 {
		return nil, fmt.Errorf("%q is no flag", strings.Join(rest, " "))
	}
	if _, err := chooseSystems(o.curveSystems); err != nil {
		return nil, fmt.Errorf("--curve-systems: %w", err)
	}
	var err error
	if o.systems, err = chooseSystems(systemNames); err != nil {
		return nil, err
	}
	if o.scenarios, err = chooseScenarios(scenarios); err != nil {
		return nil, err
	}
	return o, o.check()
}

// check refuses values that make no sense.
func (o *options) check() error {
	for _, number := range []struct {
		name  string
		value int
	}{
		{"chain-layers", o.chain.layers},
		{"chain-releases", o.chain.releases},
		{"fanout-layers", o.fanOut.layers},
		{"fanout-releases", o.fanOut.releases},
		{"curve-releases", o.curveReleases},
		{"fleet-clusters", o.fleet.clusters},
		{"fleet-layers", o.fleet.layers},
		{"fleet-releases", o.fleet.releases},
		{"rollout-clusters", o.rollout.clusters},
		{"rollout-layers", o.rollout.layers},
		{"rollout-releases", o.rollout.releases},
		{"builds-layers", o.builds.layers},
		{"builds-releases", o.builds.releases},
		{"commits", o.commits},
		{"repeat", o.repeat},
	} {
		if number.value < 1 || number.value > 9999 {
			return fmt.Errorf("--%s is %d: it must be from 1 to 9999", number.name, number.value)
		}
	}
	for _, layers := range o.curve {
		if layers < 1 || layers > 9999 {
			return fmt.Errorf("--curve-layers holds %d: each must be from 1 to 9999", layers)
		}
	}
	switch {
	case o.readyDelay < 0:
		return fmt.Errorf("--ready-delay is %s: it must not be negative", o.readyDelay)
	case len(o.curve) == 0:
		return errors.New("--curve-layers is empty")
	case o.idle <= 0:
		return fmt.Errorf("--idle is %s: it must be more than 0", o.idle)
	case o.calm < 0:
		return fmt.Errorf("--calm is %s: it must not be negative", o.calm)
	case o.quiet < time.Second:
		return fmt.Errorf("--quiet is %s: it must be at least 1s", o.quiet)
	case o.timeout <= 0:
		return fmt.Errorf("--timeout is %s: it must be more than 0", o.timeout)
	case len(o.systems) == 0:
		return errors.New("--systems is empty")
	case len(o.scenarios) == 0:
		return errors.New("--scenarios is empty")
	}
	return nil
}

// chooseScenarios finds scenarios by their names, in which dashes are no
// matter, and puts them in the order in which they run.
func chooseScenarios(names []string) ([]string, error) {
	same := func(a, b string) bool {
		return strings.ReplaceAll(a, "-", "") == strings.ReplaceAll(b, "-", "")
	}
	for _, name := range names {
		if !slices.ContainsFunc(scenarioNames, func(known string) bool { return same(name, known) }) {
			return nil, fmt.Errorf("there is no scenario %q; there are %s", name, strings.Join(scenarioNames, ", "))
		}
	}
	var chosen []string
	for _, known := range scenarioNames {
		if slices.ContainsFunc(names, func(name string) bool { return same(name, known) }) {
			chosen = append(chosen, known)
		}
	}
	return chosen, nil
}

// runs tells whether a scenario was chosen.
func (o *options) runs(scenario string) bool { return slices.Contains(o.scenarios, scenario) }

// logf prints a line of progress.
func (o *options) logf(format string, args ...any) {
	fmt.Fprintf(o.progress, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// withoutPlaces leaves out of arguments where files of this machine are written,
// which makes no difference to what is measured.
func withoutPlaces(args []string) []string {
	var left []string
	for i := 0; i < len(args); i++ {
		name, _, joined := strings.Cut(args[i], "=")
		switch {
		case name != "--out" && name != "--pprof-dir":
			left = append(left, args[i])
		case !joined:
			i++
		}
	}
	return left
}
