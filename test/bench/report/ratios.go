// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import "slices"

// Ratio is a figure of a system over the same figure of the limit and of
// Strata. A ratio is nil where there is nothing to divide by.
type Ratio struct {
	System   string   `json:"system"`
	Figure   string   `json:"figure"`
	ToLimit  *float64 `json:"toLimit,omitempty"`
	ToStrata *float64 `json:"toStrata,omitempty"`
}

// noRatio are the figures of which a ratio says nothing: the window differs
// with the scenario, and the others come with time and not with work.
var noRatio = []string{Wall, Watches, Leases, Version, RemoteWatches, RemoteVersion}

// Ratios returns the ratios of all figures and systems of a group, by figure
// and then system. Those that have neither ratio are left out.
func Ratios(g Group) []Ratio {
	var ratios []Ratio
	for _, name := range g.FigureNames() {
		if slices.Contains(noRatio, name) {
			continue
		}
		limit, strata := groupFigure(g, Plain, name), groupFigure(g, Strata, name)
		for _, s := range g.Systems {
			value := groupFigure(g, s.System, name)
			r := Ratio{System: s.System, Figure: name, ToLimit: divide(value, limit), ToStrata: divide(value, strata)}
			if s.System == Plain {
				r.ToLimit = nil
			}
			if s.System == Strata {
				r.ToStrata = nil
			}
			if r.ToLimit != nil || r.ToStrata != nil {
				ratios = append(ratios, r)
			}
		}
	}
	return ratios
}

func groupFigure(g Group, system, name string) *float64 {
	s, ok := g.System(system)
	if !ok {
		return nil
	}
	value, ok := s.Measured(name)
	if !ok {
		return nil
	}
	return &value
}

// ratioTable has a row for each figure and a column for each system, with the
// ratio to the limit and then that to Strata.
func ratioTable(g Group) table {
	t := table{heading: title(g) + ", as ratios (to the limit / to Strata)", rows: [][]string{{"figure"}}}
	for _, s := range g.Systems {
		t.rows[0] = append(t.rows[0], s.System)
	}
	cells := map[string]map[string]string{}
	for _, r := range Ratios(g) {
		if cells[r.Figure] == nil {
			cells[r.Figure] = map[string]string{}
		}
		cells[r.Figure][r.System] = ratioText(r.ToLimit) + " / " + ratioText(r.ToStrata)
	}
	for _, name := range g.FigureNames() {
		if cells[name] == nil {
			continue
		}
		row := []string{name}
		for _, s := range g.Systems {
			text := cells[name][s.System]
			if text == "" {
				text = "-"
			}
			row = append(row, text)
		}
		t.rows = append(t.rows, row)
	}
	return t
}

func ratioText(ratio *float64) string {
	if ratio == nil {
		return "-"
	}
	return Format(*ratio, Times)
}
