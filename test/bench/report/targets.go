// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Verdict is how a measurement stands against a target.
type Verdict string

// The verdicts. A target is not measured when what it needs did not run, did
// not end, or did not take the figure.
const (
	Met         Verdict = "met"
	Missed      Verdict = "missed"
	NotMeasured Verdict = "not measured"
)

// Target is one thing that Strata promises, and how it stands.
type Target struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	// Limit is the value that must not be exceeded, or not be reached where
	// Below is set.
	Limit float64 `json:"limit"`
	Below bool    `json:"below,omitempty"`
	// Value is what was measured; nil where nothing was.
	Value   *float64 `json:"value,omitempty"`
	Verdict Verdict  `json:"verdict"`
}

// Units of targets beside those of figures.
const (
	Times   = "x" // a ratio
	Percent = "%"
)

// Judge says of every target how the results stand against it. The targets
// are for 2 cores beside the API server, with releases Ready after 100 ms.
func Judge(results []Result) []Target {
	groups := Groups(results)
	wide := Sizes{Layers: 100, Releases: 10}
	most := Sizes{Layers: 1000, Releases: 10}
	return slices.Concat(
		judgeChain(groups, Sizes{Layers: 10, Releases: 5}),
		judgeFanOut(groups, wide),
		judgeCommit(groups, wide),
		judgeIdle(groups, wide, most),
		[]Target{
			atMost("RSS at 1000 layers of 10 releases", Bytes, 300e6, highest(groups, RSS, func(g Group) bool {
				return sameCluster(g.Sizes, most)
			})).below(),
			atMost("restart at 1000 layers of 10 releases: API writes", Count, 0, find(groups, Restart, most, Strata, Writes)),
		},
		judgeStorm(groups, wide),
		judgeGrowth(groups),
		judgeFleet(groups),
	)
}

func judgeChain(groups []Group, sizes Sizes) []Target {
	of := fmt.Sprintf("chain of %d layers of %d releases", sizes.Layers, sizes.Releases)
	return []Target{
		atMost(of+": hop, p95", Seconds, 0.150, find(groups, Chain, sizes, Strata, HopP95)).below(),
		atMost(of+": all Deployed", Seconds, 2.5, find(groups, Chain, sizes, Strata, AllDeployed)).below(),
	}
}

func judgeFanOut(groups []Group, sizes Sizes) []Target {
	of := fmt.Sprintf("fan-out %d x %d", sizes.Layers, sizes.Releases)
	created := find(groups, FanOut, sizes, Strata, AllCreated)
	deployed := find(groups, FanOut, sizes, Strata, AllDeployed)
	ready := find(groups, FanOut, sizes, Strata, AllReady)
	return []Target{
		atMost(of+": all created, to the limit", Times, 1.2,
			divide(created, find(groups, FanOut, sizes, Plain, AllCreated))).below(),
		// What is between is the stand-in's work, and no system's.
		atMost(of+": from all Ready to all Deployed", Seconds, 0.25, subtract(deployed, ready)).below(),
	}
}

func judgeCommit(groups []Group, sizes Sizes) []Target {
	in := func(g Group) bool { return g.Scenario == Commit && sameCluster(g.Sizes, sizes) }
	of := fmt.Sprintf("commit in one of %d layers", sizes.Layers)
	return []Target{
		atMost(of+": p50", Seconds, 0.100, highest(groups, CommitP50, in)).below(),
		atMost(of+": p95", Seconds, 0.300, highest(groups, CommitP95, in)).below(),
		atMost(of+": releases changed elsewhere", Count, 0, highest(groups, OtherReleases, in)),
		atMost(of+": writes to each other layer", Count, 1, highest(groups, OtherLayerWrites, in)),
	}
}

func judgeIdle(groups []Group, wide, sizes Sizes) []Target {
	in := func(g Group) bool { return g.Scenario == Idle }
	ofManager := divide(find(groups, Idle, wide, Strata, CPU), find(groups, Idle, wide, IdleManager, CPU))
	cpu := find(groups, Idle, sizes, Strata, CPU)
	share := divide(cpu, find(groups, Idle, sizes, Strata, Wall))
	if share != nil {
		*share *= 100
	}
	return []Target{
		atMost("idle: API writes", Count, 0, highest(groups, Writes, in)),
		atMost("idle: API reads beyond watches", Count, 0, highest(groups, Reads, in)),
		atMost(fmt.Sprintf("idle at %d layers: cpu, to a manager that does nothing", wide.Layers), Times, 1.5, ofManager),
		atMost(fmt.Sprintf("idle at %d layers: share of a core", sizes.Layers), Percent, 0.5, share).below(),
	}
}

func judgeStorm(groups []Group, sizes Sizes) []Target {
	of := fmt.Sprintf("storm on %d x %d", sizes.Layers, sizes.Releases)
	var targets []Target
	for _, figure := range []string{StormArtifacts, StormEdits} {
		targets = append(targets, atMost(of+": "+figure+", to the limit", Times, 2, divide(
			find(groups, Storm, sizes, Strata, figure), find(groups, Storm, sizes, Plain, figure))))
	}
	return targets
}

// judgeFleet judges how long a fleet takes, and what it costs when all is deployed,
// whatever its size: the probes, one of each cluster in an interval and one more where
// the window begins with one, and nothing else.
func judgeFleet(groups []Group) []Target {
	var slowest *float64
	for _, g := range groups {
		ratio := divide(find(groups, Fleet, g.Sizes, Strata, AllCreated), find(groups, Fleet, g.Sizes, Plain, AllCreated))
		if ratio != nil && (slowest == nil || *ratio > *slowest) {
			slowest = ratio
		}
	}
	targets := []Target{atMost("fleet: all created, to the limit", Times, 1.5, slowest).below()}
	in := func(g Group) bool { return g.Scenario == FleetIdle }
	for _, of := range []struct{ name, figure string }{
		{"API writes", Writes},
		{"API reads beyond watches", Reads},
		{"writes on the clusters", RemoteWrites},
		{"reads on the clusters beyond watches and the probe", RemoteReads},
	} {
		targets = append(targets, atMost("fleet, idle: "+of.name, Count, 0, highest(groups, of.figure, in)))
	}
	return append(targets, judgeProbes(groups))
}

// judgeProbes judges the fleet of which most probes are too many.
func judgeProbes(groups []Group) Target {
	judge := func(window time.Duration, probes *float64) Target {
		return atMost("fleet, idle: probes of each cluster", Count, 1+float64(window/ProbeInterval), probes)
	}
	worst := judge(2*time.Minute, nil)
	for _, g := range groups {
		probes, wall := find(groups, FleetIdle, g.Sizes, Strata, Probes), find(groups, FleetIdle, g.Sizes, Strata, Wall)
		if probes == nil || wall == nil {
			continue
		}
		next := judge(time.Duration(*wall*float64(time.Second)), probes)
		if worst.Value == nil || *next.Value-next.Limit > *worst.Value-worst.Limit {
			worst = next
		}
	}
	return worst
}

// growthLimit is the highest exponent that counts as linear: cost in the
// power of 1.1 of the number of layers is 26% more than ten times at ten times
// the layers, which is about what one run differs from the next.
const growthLimit = 1.1

// judgeGrowth judges how cost grows from the smallest to the largest number
// of layers of Strata's curve.
func judgeGrowth(groups []Group) []Target {
	var targets []Target
	for _, figure := range []string{AllDeployed, CPU, RSS} {
		targets = append(targets, atMost("growth from 100 to 1000 layers: exponent of "+figure, Count, growthLimit,
			exponent(groups, figure, 100, 1000)))
	}
	return targets
}

// exponent returns e where a figure of Strata's curve grows as layers^e from
// the size first to the size last, both with the same number of releases.
func exponent(groups []Group, figure string, first, last int) *float64 {
	for _, g := range groups {
		if g.Scenario != Curve || g.Sizes.Layers != first {
			continue
		}
		end := g.Sizes
		end.Layers = last
		times := divide(find(groups, Curve, end, Strata, figure), find(groups, Curve, g.Sizes, Strata, figure))
		if times == nil || *times <= 0 {
			continue
		}
		e := math.Log(*times) / math.Log(float64(last)/float64(first))
		return &e
	}
	return nil
}

// atMost judges a value against a limit that it may reach.
func atMost(name, unit string, limit float64, value *float64) Target {
	t := Target{Name: name, Unit: unit, Limit: limit, Value: value}
	return t.judged()
}

// below makes the limit one that may not be reached.
func (t Target) below() Target {
	t.Below = true
	return t.judged()
}

func (t Target) judged() Target {
	switch {
	case t.Value == nil:
		t.Verdict = NotMeasured
	case *t.Value < t.Limit, *t.Value == t.Limit && !t.Below:
		t.Verdict = Met
	default:
		t.Verdict = Missed
	}
	return t
}

// find returns a figure, or nil where it was not measured. The number of
// commits is no matter.
func find(groups []Group, scenario string, sizes Sizes, system, figure string) *float64 {
	for _, g := range groups {
		if g.Scenario != scenario || !sameCluster(g.Sizes, sizes) {
			continue
		}
		if s, ok := g.System(system); ok {
			if value, ok := s.Measured(figure); ok {
				return &value
			}
		}
	}
	return nil
}

// highest returns the highest value of a figure of Strata in the groups that
// match, or nil where none has it.
func highest(groups []Group, figure string, match func(Group) bool) *float64 {
	var found *float64
	for _, g := range groups {
		if s, ok := g.System(Strata); ok && match(g) {
			if value, ok := s.Measured(figure); ok && (found == nil || value > *found) {
				found = &value
			}
		}
	}
	return found
}

// sameCluster says whether two sizes have the same clusters, layers and releases.
func sameCluster(a, b Sizes) bool {
	return a.Clusters == b.Clusters && a.Layers == b.Layers && a.Releases == b.Releases
}

// divide returns a/b, or nil where one is missing or b is 0.
func divide(a, b *float64) *float64 {
	if a == nil || b == nil || *b == 0 {
		return nil
	}
	quotient := *a / *b
	return &quotient
}

func subtract(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	difference := *a - *b
	return &difference
}
