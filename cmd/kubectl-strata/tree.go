// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/answers/releases"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/internal/answers/tree"
)

const treeLong = `Show what layers are made of: what must hold before they are deployed and what is
there now, what they claim of capabilities, their releases in the order in which
they are deployed, and what was made for each.

With --objects every object is shown with its state. Each kind of objects is read
with one list; Secrets are never read. Without it objects are counted by kind.
What a layer has on other clusters is not read.

Exit codes:
  0  the layers are shown
  1  they cannot be shown
  2  a layer that is shown is blocked or failed`

const treeExamples = `  # All layers
  kubectl strata tree

  # One of them, with every object and its state
  kubectl strata tree base --objects

  # Dependencies of dependencies, for other programs
  kubectl strata tree apps --depth 4 -o json`

// seeCommands are those that say where things stand.
func seeCommands(t *tool) []*cobra.Command {
	return []*cobra.Command{newStatus(t), newUI(t), newTree(t), newWhy(t), newEvents(t), newOwner(t)}
}

// newTree returns the command that shows what layers are made of.
func newTree(t *tool) *cobra.Command {
	o := &treeOptions{tool: t}
	command := &cobra.Command{
		Use: "tree [LAYER...]", Short: "Show what layers are made of, with gates, releases and objects", Long: treeLong, Example: treeExamples,
		RunE: func(command *cobra.Command, names []string) error { return o.run(command.Context(), names) },
	}
	command.Flags().IntVar(&o.depth, "depth", 2, "how deep to look below a layer: 1 for gates and releases, 2 for objects and what dependencies need")
	command.Flags().BoolVar(&o.objects, "objects", false, "show every object with its state")
	command.Flags().StringVarP(&o.selector, "selector", "l", "", "the layers with these labels, for example team=platform")
	console.OutputFlag(command, &o.output, "json", "yaml")
	return command
}

// treeOptions are the flags of the command.
type treeOptions struct {
	*tool
	depth            int
	objects          bool
	selector, output string
}

func (o *treeOptions) run(ctx context.Context, names []string) error {
	if o.depth < 0 {
		return errors.New("--depth must not be negative")
	}
	s, err := o.Cluster.ReadWithVersion(
		ctx,
		append([]snapshot.Part{snapshot.Layers, snapshot.Clusters, snapshot.Releases, snapshot.Bundles, snapshot.Claims}, snapshot.Sources...)...)
	if err != nil {
		return err
	}
	chosen, err := chosenLayers(s, names, o.selector)
	if err != nil {
		return err
	}
	if s, err = o.Cluster.Open(ctx, s, chosen...); err != nil {
		return err
	}
	o.WarnUnread(s, "what they are is not shown")
	var live *releases.Live
	if o.objects {
		if live, err = o.ReadMade(ctx, releases.Looks(s, chosen)); err != nil {
			return err
		}
	}
	trees, blocked := make([]tree.Layer, 0, len(chosen)), false
	for _, layer := range chosen {
		trees = append(trees, tree.Of(s, layer, live, o.depth))
		blocked = blocked || summary.Of(layer, s.Now).Blocked
	}
	if err := o.print(trees); err != nil {
		return err
	}
	if blocked {
		return console.ErrBlocked
	}
	return nil
}

func (o *treeOptions) print(trees []tree.Layer) error {
	switch {
	case o.output != "":
		return o.PrintAs(o.output, trees)
	case len(trees) == 0:
		console.Say(o.Out, "No layers found.")
		return nil
	}
	roots := make([]printing.Node, 0, len(trees))
	for _, layer := range trees {
		roots = append(roots, printing.Tree(layer, o.depth, o.objects))
	}
	_, err := io.WriteString(o.Out, printing.Draw(o.Screen, roots))
	return err
}

// errSelector says how labels are written. It does not repeat what cannot be understood.
var errSelector = errors.New("--selector cannot be understood: write labels such as team=platform")

// chosenLayers returns the layers that are named, or that a selector finds; all
// where neither is given.
func chosenLayers(s *snapshot.Snapshot, names []string, selector string) ([]*v1alpha1.AddonsLayer, error) {
	if len(names) > 0 && selector != "" {
		return nil, errors.New("give names or --selector, not both")
	}
	wanted, err := labels.Parse(selector)
	if err != nil {
		return nil, errSelector
	}
	named := map[string]bool{}
	var missing []error
	for _, name := range names {
		if named[name] = true; s.Layer(name) == nil {
			missing = append(missing, console.NoLayer(s, name))
		}
	}
	var chosen []*v1alpha1.AddonsLayer
	for _, layer := range s.Layers {
		if wanted.Matches(labels.Set(layer.Labels)) && (len(names) == 0 || named[layer.Name]) {
			chosen = append(chosen, layer)
		}
	}
	return chosen, errors.Join(missing...)
}
