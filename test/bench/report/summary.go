// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
)

// Measures returns all figures of a result: the scenario's own, and those of
// its wall time, cost, requests and downloads as far as they were taken.
func (r Result) Measures() []Figure {
	figures := append(slices.Clone(r.Figures), Figure{Name: Wall, Unit: Seconds, Value: r.WallSeconds})
	if r.Cost != nil {
		figures = append(figures,
			Figure{Name: CPU, Unit: Seconds, Value: r.Cost.CPUSeconds},
			Figure{Name: RSS, Unit: Bytes, Value: float64(r.Cost.PeakRSSBytes)})
	}
	if q := r.Requests; q != nil {
		figures = append(figures, counts(
			Reads, q.Reads(), Writes, q.Writes(), Watches, q.Watches(), Leases, q.Leases, Version, q.Version)...)
	}
	if q := r.RemoteRequests; q != nil {
		figures = append(figures, counts(
			RemoteReads, q.Reads(), RemoteWrites, q.Writes(), RemoteWatches, q.Watches(), RemoteVersion, q.Version)...)
	}
	if r.Downloads != nil {
		figures = append(figures, Figure{Name: Downloads, Value: float64(*r.Downloads)})
	}
	return figures
}

// counts makes figures of pairs of a name and a number of things.
func counts(pairs ...any) []Figure {
	var figures []Figure
	for i := 0; i < len(pairs); i += 2 {
		figures = append(figures, Figure{Name: pairs[i].(string), Value: float64(pairs[i+1].(int))})
	}
	return figures
}

// Summary is what one system did in one scenario of one size, over all the
// times it was repeated.
type Summary struct {
	Scenario string
	System   string
	Sizes    Sizes
	// Runs is how many results without an error there are.
	Runs int
	// Figures are the medians over those results, by nearest rank. Where there
	// are none they are what the results with an error have, which did not end.
	Figures []Figure
	// Notes and Errors are those of all results, each once.
	Notes, Errors []string
}

// Figure returns the value of a figure, and whether it was taken.
func (s Summary) Figure(name string) (float64, bool) {
	for _, f := range s.Figures {
		if f.Name == name {
			return f.Value, true
		}
	}
	return 0, false
}

// Measured returns the value of a figure of results that ended, and whether
// there is one. Figure has those of failed ones too.
func (s Summary) Measured(name string) (float64, bool) {
	if s.Runs == 0 {
		return 0, false
	}
	return s.Figure(name)
}

// Group is everything that can be compared: the summaries of all systems in
// one scenario of one size.
type Group struct {
	Scenario string
	Sizes    Sizes
	Systems  []Summary
}

// System returns the summary of a system, and whether it took part.
func (g Group) System(name string) (Summary, bool) {
	for _, s := range g.Systems {
		if s.System == name {
			return s, true
		}
	}
	return Summary{}, false
}

// measures are the figures that Result.Measures adds, in their order.
var measures = []string{
	Wall, CPU, RSS, Reads, Writes, Watches, Leases, Version, RemoteReads, RemoteWrites, RemoteWatches, RemoteVersion, Downloads,
}

// FigureNames returns the names of all figures of the group, each once: those
// of the scenario in the order of the first system that has them, and then
// those that every scenario has.
func (g Group) FigureNames() []string {
	var names []string
	for _, s := range g.Systems {
		for _, f := range s.Figures {
			if !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(slices.Index(measures, a), slices.Index(measures, b))
	})
	return names
}

// scenarioOrder and systemOrder are the orders in which things are shown.
// What is not named in them comes last.
var (
	scenarioOrder = []string{Chain, FanOut, Idle, Commit, Restart, Storm, Curve, FleetJoin, Fleet, FleetIdle, RolloutInstall, Rollout, Builds, BuildsCommit}
	systemOrder   = []string{Plain, PlainCreate, IdleManager, Strata, KustomizeTuned, Kustomize}
)

// Groups summarizes results, ordered by scenario, sizes and system. The order
// of the results does not matter but for that of notes and errors.
func Groups(results []Result) []Group {
	var groups []Group
	for _, r := range results {
		i := slices.IndexFunc(groups, func(g Group) bool { return g.Scenario == r.Scenario && g.Sizes == r.Sizes })
		if i < 0 {
			groups = append(groups, Group{Scenario: r.Scenario, Sizes: r.Sizes})
			i = len(groups) - 1
		}
		if _, ok := groups[i].System(r.System); !ok {
			groups[i].Systems = append(groups[i].Systems, summarize(results, r))
		}
	}
	for _, g := range groups {
		slices.SortStableFunc(g.Systems, func(a, b Summary) int {
			return inOrder(systemOrder, a.System, b.System)
		})
	}
	slices.SortStableFunc(groups, func(a, b Group) int {
		return cmp.Or(
			inOrder(scenarioOrder, a.Scenario, b.Scenario),
			cmp.Compare(a.Sizes.Clusters, b.Sizes.Clusters),
			cmp.Compare(a.Sizes.Layers, b.Sizes.Layers),
			cmp.Compare(a.Sizes.Releases, b.Sizes.Releases),
			cmp.Compare(a.Sizes.Commits, b.Sizes.Commits),
		)
	})
	return groups
}

// inOrder compares two names by their places in an order, and then as text.
func inOrder(order []string, a, b string) int {
	place := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
}

// summarize takes all results that repeat one of them.
func summarize(results []Result, of Result) Summary {
	s := Summary{Scenario: of.Scenario, System: of.System, Sizes: of.Sizes}
	var ended, failed []Figure
	for _, r := range results {
		if r.Scenario != of.Scenario || r.System != of.System || r.Sizes != of.Sizes {
			continue
		}
		s.Notes = appendNew(s.Notes, r.Notes...)
		if r.Error != "" {
			s.Errors = appendNew(s.Errors, r.Error)
			failed = append(failed, r.Measures()...)
			continue
		}
		s.Runs++
		ended = append(ended, r.Measures()...)
	}
	if s.Figures = medians(ended); s.Runs == 0 {
		s.Figures = medians(failed)
	}
	return s
}

// medians returns each figure once, with the median of its values.
func medians(figures []Figure) []Figure {
	values := map[string][]float64{}
	for _, f := range figures {
		values[f.Name] = append(values[f.Name], f.Value)
	}
	once := firsts(figures, func(f Figure) string { return f.Name })
	for i := range once {
		once[i].Value, _ = Percentile(values[once[i].Name], 50)
	}
	return once
}

// firsts returns the first of those that have the same name.
func firsts[T any](all []T, name func(T) string) []T {
	var found []T
	seen := map[string]bool{}
	for _, one := range all {
		if !seen[name(one)] {
			seen[name(one)] = true
			found = append(found, one)
		}
	}
	return found
}

func appendNew(to []string, more ...string) []string {
	for _, text := range more {
		if !slices.Contains(to, text) {
			to = append(to, text)
		}
	}
	return to
}
