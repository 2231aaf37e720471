// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"fmt"
	"slices"

	"github.com/strata-project/strata/test/bench/report"
)

// row is what is compared in one set of bars.
type row struct{ scenario, figure, title string }

var rows = []row{
	{report.Chain, report.HopP50, "from a layer Ready to the next begun, p50"},
	{report.Chain, report.AllDeployed, "until all layers are Deployed"},
	{report.FanOut, report.AllCreated, "until all releases exist"},
	{report.FanOut, report.AllDeployed, "until all layers are Deployed"},
	{report.Commit, report.CommitP50, "from the artifact to the release, p50"},
	{report.Commit, report.CommitP95, "from the artifact to the release, p95"},
	{report.Restart, report.Quiet, "until it is quiet"},
	{report.Storm, report.StormArtifacts, "until all new artifacts are applied"},
	{report.Storm, report.StormEdits, "until all edits are taken back"},
	{report.Fleet, report.AllCreated, "until all releases exist"},
	{report.Fleet, report.AllDeployed, "until all layers are Deployed"},
}

// bar is one value of a system.
type bar struct {
	system string
	value  float64
}

// barSet are the bars of a row.
type barSet struct {
	title string
	bars  []bar
}

// Bars draws the times of the main scenarios on one logarithmic axis: each
// step of the grid is ten times as long as the one before it. A scenario that
// was run at several sizes is drawn at its smallest.
func Bars(results []report.Result) ([]byte, error) {
	sets := barSets(report.Groups(results))
	var values []float64
	var systems []string
	height := 0.0
	const barHeight, barGap, setTitle, setGap = 13, 4, 20, 16
	for _, set := range sets {
		height += setTitle + setGap + float64(len(set.bars))*(barHeight+barGap)
		for _, b := range set.bars {
			values = append(values, b.value)
			if !slices.Contains(systems, b.system) {
				systems = append(systems, b.system)
			}
		}
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("cannot draw the bars: %w", ErrNothing)
	}
	const width, left, right = 940, 24, 70
	c := &canvas{width: width}
	top := 18 + c.legend(left, 18, inLegend(systems))
	bottom := top + height
	c.height = bottom + 28
	// Below the shortest there is room for a bar to be seen.
	shortest := slices.Min(values)
	x := newScale(append(values, shortest/2), left, width-right)
	for _, tick := range x.ticks() {
		c.line(x.at(tick), top, x.at(tick), bottom, "grid")
		c.text(x.at(tick), bottom+18, "middle", "small", report.Format(tick, report.Seconds))
	}
	y := top
	for _, set := range sets {
		c.text(left+6, y+setTitle-6, "start", "", set.title)
		y += setTitle
		for _, b := range set.bars {
			c.bar(left, y, x.at(b.value)-left, barHeight, lookOf(b.system).colour)
			c.text(x.at(b.value)+6, y+barHeight-2, "start", "small", report.Format(b.value, report.Seconds))
			y += barHeight + barGap
		}
		y += setGap
	}
	c.line(left, top, left, bottom, "axis")
	return c.bytes("Times of the scenarios, on a logarithmic axis",
		"Bars for each system and scenario. Shorter is better; each step of the grid is ten times the one before it."), nil
}

// barSets returns the sets that have any value.
func barSets(groups []report.Group) []barSet {
	var sets []barSet
	for _, r := range rows {
		i := slices.IndexFunc(groups, func(g report.Group) bool { return g.Scenario == r.scenario })
		if i < 0 {
			continue
		}
		g := groups[i]
		sizes := g.Sizes
		sizes.Commits = 0 // which is no matter of the time of one
		set := barSet{title: fmt.Sprintf("%s, %s: %s", r.scenario, sizes, r.title)}
		for _, s := range g.Systems {
			if value, ok := s.Figure(r.figure); ok && value > 0 {
				set.bars = append(set.bars, bar{system: s.System, value: value})
			}
		}
		if len(set.bars) > 0 {
			sets = append(sets, set)
		}
	}
	return sets
}
