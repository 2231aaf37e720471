// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package drawing

import (
	"cmp"
	"slices"
	"strings"
)

// Sizes in the units of the SVG, which are pixels where it is not scaled.
const (
	letter     = 7.3 // of monospaced text of the size below
	fontSize   = 12
	lineHeight = 16
	nodeHeight = 3*lineHeight + 12
	columnGap  = 130
	rowGap     = 18
	margin     = 20
	laneTitle  = 24
	longest    = 32 // runes of a line
)

// spot is where a node is.
type spot struct{ x, y float64 }

// lane is where the layers of one cluster are, one lane below the other.
type lane struct {
	cluster     string
	top, height float64
}

// layout is where everything is.
type layout struct {
	spots         map[string]spot
	lanes         []lane
	nodeWidth     float64
	width, height float64
}

// lay puts each layer into a column right of all that it depends on, and into the
// lane of its cluster. Inside a column, layers are about where their dependencies
// are, so that few edges cross.
func (g Graph) lay() layout {
	columns := g.columns()
	l := layout{spots: map[string]spot{}, nodeWidth: g.nodeWidth(), height: margin}
	last := 0
	for _, column := range columns {
		last = max(last, column)
	}
	for _, cluster := range g.clusters() {
		top := l.height
		if cluster != "" {
			top += laneTitle
		}
		bottom := top
		for column := range last + 1 {
			for row, name := range g.column(columns, column, cluster, l.spots) {
				s := spot{x: margin + float64(column)*(l.nodeWidth+columnGap), y: top + float64(row)*(nodeHeight+rowGap)}
				l.spots[name] = s
				bottom = max(bottom, s.y+nodeHeight)
			}
		}
		l.lanes = append(l.lanes, lane{cluster: cluster, top: l.height, height: bottom - l.height + rowGap/2})
		l.height = bottom + 2*rowGap
	}
	l.height += margin - rowGap
	l.width = 2*margin + float64(last+1)*(l.nodeWidth+columnGap) - columnGap/2
	return l
}

// columns returns the place of each layer in the order. Layers that depend on each
// other share one.
func (g Graph) columns() map[string]int {
	needs := map[string][]string{}
	for _, edge := range g.Edges {
		if !edge.Cycle {
			needs[edge.Layer] = append(needs[edge.Layer], edge.DependsOn)
		}
	}
	fellows := g.fellows()
	columns := map[string]int{}
	var columnOf func(name string) int
	columnOf = func(name string) int {
		if column, known := columns[name]; known {
			return column
		}
		column := 0
		for _, fellow := range fellows[name] {
			for _, on := range needs[fellow] {
				column = max(column, columnOf(on)+1)
			}
		}
		for _, fellow := range fellows[name] {
			columns[fellow] = column
		}
		return column
	}
	for _, node := range g.Nodes {
		columnOf(node.Name)
	}
	return columns
}

// fellows returns of each layer those that are on a cycle with it, itself among
// them.
func (g Graph) fellows() map[string][]string {
	along := map[string][]string{}
	for _, edge := range g.Edges {
		if edge.Cycle {
			along[edge.Layer] = append(along[edge.Layer], edge.DependsOn)
		}
	}
	fellows := map[string][]string{}
	for _, node := range g.Nodes {
		// Edges of cycles lead to layers of the same cycle alone.
		found := []string{node.Name}
		for i := 0; i < len(found); i++ {
			for _, on := range along[found[i]] {
				if !slices.Contains(found, on) {
					found = append(found, on)
				}
			}
		}
		fellows[node.Name] = found
	}
	return fellows
}

// column returns the layers of a column in one lane, from above.
func (g Graph) column(columns map[string]int, column int, cluster string, spots map[string]spot) []string {
	var names []string
	for _, node := range g.Nodes {
		if columns[node.Name] == column && node.Cluster == cluster {
			names = append(names, node.Name)
		}
	}
	middle := map[string]float64{}
	for _, name := range names {
		sum, count := 0.0, 0.0
		for _, edge := range g.Edges {
			if at, placed := spots[edge.DependsOn]; edge.Layer == name && placed {
				sum, count = sum+at.y, count+1
			}
		}
		middle[name] = sum / max(count, 1)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(middle[a], middle[b]), strings.Compare(a, b))
	})
	return names
}

// nodeWidth is what the longest line needs; all nodes have it.
func (g Graph) nodeWidth() float64 {
	most := 10
	for _, node := range g.Nodes {
		for _, line := range node.lines() {
			most = max(most, min(longest, len([]rune(line))))
		}
	}
	return float64(most)*letter + 20
}
