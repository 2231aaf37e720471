// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drawing draws the graph of layers: as DOT, as Mermaid and as SVG. All of
// them show the same nodes and edges, in the same order for the same layers.
package drawing

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/printable"
)

// States that the controller does not have.
const (
	// stateMissing is that of a layer that others depend on and that does not exist.
	stateMissing = "Missing"
	// stateNew is that of a layer which the controller has not looked at yet.
	stateNew = "New"
)

// Graph is which layer waits for which.
type Graph struct {
	// Nodes are sorted by name.
	Nodes []Node `json:"nodes"`
	// Edges are sorted by layer, then by what it depends on.
	Edges []Edge `json:"edges"`
}

// Node is a layer, or a name that stands for none.
type Node struct {
	Name string `json:"name"`
	// Version, after the one that is deployed where they differ.
	Version string `json:"version,omitempty"`
	// State in the layer's own word; Missing where there is no such layer.
	State string `json:"state"`
	// Ready counts the releases that are ready, of those that must be.
	Ready string `json:"ready,omitempty"`
	// Cluster that the layer belongs on; empty for the one that Strata runs in.
	Cluster string `json:"cluster,omitempty"`
	// Why says what the layer waits for, or what is wrong.
	Why     string `json:"why,omitempty"`
	Missing bool   `json:"missing"`
	// Cycle is true for a layer that depends on itself, through others or not.
	Cycle bool `json:"cycle"`
}

// Edge is what one layer depends on.
type Edge struct {
	Layer     string `json:"layer"`
	DependsOn string `json:"dependsOn"`
	// Version or range that is asked for; empty where any will do.
	Version string `json:"version,omitempty"`
	Missing bool   `json:"missing"`
	// Cycle is true where the layers depend on each other.
	Cycle bool `json:"cycle"`
}

// Of returns the graph of layers at a moment. With names it is that of these
// layers, of what they depend on, and of what depends on them.
func Of(all []*v1alpha1.AddonsLayer, now time.Time, names ...string) Graph {
	needs, rows := dependencies.Graph{}, map[string]summary.Row{}
	for _, layer := range all {
		needs[layer.Name] = dependencies.Names(layer.Spec.Prereqs.DependsOn)
		rows[layer.Name] = summary.Of(layer, now)
	}
	shown := related(needs, names)
	g := Graph{Nodes: []Node{}, Edges: []Edge{}}
	circles := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		circles[name] = needs.Circle(name)
		g.Nodes = append(g.Nodes, nodeOf(name, rows, circles[name] != nil))
	}
	for _, layer := range all {
		if !shown[layer.Name] {
			continue
		}
		for _, on := range needs[layer.Name] {
			if !shown[on] {
				continue
			}
			_, exists := rows[on]
			g.Edges = append(g.Edges, Edge{
				Layer: layer.Name, DependsOn: on, Version: versionOf(layer, on),
				Missing: !exists, Cycle: slices.Contains(circles[layer.Name], on),
			})
		}
	}
	slices.SortFunc(g.Edges, func(a, b Edge) int {
		return cmp.Or(strings.Compare(a.Layer, b.Layer), strings.Compare(a.DependsOn, b.DependsOn))
	})
	return g
}

func nodeOf(name string, rows map[string]summary.Row, cycle bool) Node {
	row, exists := rows[name]
	if !exists {
		return Node{Name: name, State: stateMissing, Missing: true, Why: "there is no layer " + name}
	}
	return Node{
		Name: name, Version: printable.Escaped(row.Version), State: cmp.Or(said(row.State), stateNew), Ready: said(row.Ready),
		Cluster: said(row.Cluster), Why: printable.Escaped(row.Why), Cycle: cycle,
	}
}

// said returns a cell, or nothing where it stands for nothing.
func said(cell string) string {
	if cell == "-" {
		return ""
	}
	return printable.Escaped(cell)
}

// versionOf returns which version of another layer a layer asks for.
func versionOf(layer *v1alpha1.AddonsLayer, on string) string {
	for _, text := range layer.Spec.Prereqs.DependsOn {
		if name, version, _ := strings.Cut(text, "@"); name == on {
			return printable.Escaped(version)
		}
	}
	return ""
}

// related returns names, what they depend on and what depends on them; without
// names everything that there is.
func related(needs dependencies.Graph, names []string) map[string]bool {
	shown := map[string]bool{}
	if len(names) == 0 {
		for layer, on := range needs {
			shown[layer] = true
			for _, name := range on {
				shown[name] = true
			}
		}
		return shown
	}
	dependants := dependencies.Graph{}
	for layer, on := range needs {
		for _, name := range on {
			dependants[name] = append(dependants[name], layer)
		}
	}
	for _, along := range []dependencies.Graph{needs, dependants} {
		reached := map[string]bool{}
		for queue := slices.Clone(names); len(queue) > 0; queue = queue[1:] {
			if !reached[queue[0]] {
				reached[queue[0]] = true
				queue = append(queue, along[queue[0]]...)
			}
		}
		maps.Copy(shown, reached)
	}
	return shown
}

// clusters returns the clusters that layers belong on, sorted, with the one that
// Strata runs in, as the empty name, first.
func (g Graph) clusters() []string {
	names := map[string]bool{}
	for _, node := range g.Nodes {
		names[node.Cluster] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// lines are what a node says: its name, its version, and its state in words, so
// that its colour need not be seen.
func (n Node) lines() []string {
	if n.Missing {
		return []string{n.Name, "missing"}
	}
	state := n.State
	if n.Ready != "" {
		state += " " + n.Ready
	}
	if n.Cycle {
		state += " (cycle)"
	}
	return []string{n.Name, n.Version, state}
}

// tip is what there is to know of a node beyond its lines.
func (n Node) tip() string {
	parts := append(n.lines(), n.Why)
	if n.Cluster != "" {
		parts[len(parts)-1] = strings.TrimSpace("on " + n.Cluster + " " + n.Why)
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ", ")
}

// label says on an edge what is asked for.
func (e Edge) label() string {
	switch {
	case e.Cycle:
		return strings.TrimSpace(e.Version + " (cycle)")
	case e.Missing:
		return strings.TrimSpace(e.Version + " (missing)")
	}
	return e.Version
}

// colours of a node or an edge.
type colours struct{ fill, line, text string }

var palette = map[string]colours{
	"":              {"#f2f2f2", "#6e7781", "#24292f"},
	summary.Good:    {"#dafbe1", "#1a7f37", "#116329"},
	summary.Busy:    {"#ddf4ff", "#0969da", "#0550ae"},
	summary.Warning: {"#fff8c5", "#9a6700", "#6f4a00"},
	summary.Bad:     {"#ffebe9", "#cf222e", "#a40e26"},
}

func (n Node) colours() colours {
	switch {
	case n.Missing:
		return colours{"#ffffff", palette[summary.Bad].line, palette[summary.Bad].text}
	case n.Cycle:
		return palette[summary.Bad]
	}
	return palette[summary.Standing(n.State)]
}

func (e Edge) colour() string {
	if e.Cycle || e.Missing {
		return palette[summary.Bad].line
	}
	return palette[""].line
}
