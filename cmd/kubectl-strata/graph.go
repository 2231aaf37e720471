// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/drawing"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

const graphLong = `Draw which layer waits for which. Arrows lead from a layer to those that wait
for it, so that the order goes from left to right; what is written on one is
the version or range that is asked for.

A layer shows its version, its state and how many of its releases are ready,
in a colour by state. Layers that others depend on and that do not exist are
dashed and marked missing; layers that depend on each other are marked cycle.
Layers of another cluster are in a frame of their own.

With names, only these layers are drawn, what they depend on, and what
depends on them.

Formats:
  dot      for Graphviz (the default)
  mermaid  for Markdown on GitHub and GitLab
  svg      a picture for browsers; what a layer waits for shows where the
           pointer rests
  json     nodes and edges, for other programs

Exit codes:
  0  the graph is drawn, whatever the states of layers
  1  the layers cannot be read, or a name is wrong`

const graphExamples = `  # A picture
  kubectl strata graph -o svg > layers.svg

  # With Graphviz
  kubectl strata graph | dot -Tpng > layers.png

  # One layer with what it needs and what needs it, for Markdown
  kubectl strata graph base -o mermaid`

// newGraph returns the command that draws layers.
func newGraph(t *tool) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use: "graph [LAYER...]", Short: "Draw which layer waits for which", Long: graphLong, Example: graphExamples,
		RunE: func(command *cobra.Command, names []string) error {
			return t.graph(command.Context(), names, output)
		},
	}
	console.OutputFlag(command, &output, "dot", "mermaid", "svg", "json")
	return command
}

func (t *tool) graph(ctx context.Context, names []string, output string) error {
	s, err := t.Cluster.Read(ctx, snapshot.Layers)
	if err != nil {
		return err
	}
	for _, name := range names {
		if s.Layer(name) == nil {
			return console.NoLayer(s, name)
		}
	}
	graph := drawing.Of(s.Layers, s.Now, names...)
	var text string
	switch output {
	case "json":
		return t.PrintAs(output, graph)
	case "svg":
		text = graph.SVG()
	case "mermaid":
		text = graph.Mermaid()
	default:
		text = graph.DOT()
	}
	_, err = io.WriteString(t.Out, text)
	return err
}
