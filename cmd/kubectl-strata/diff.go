// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/charts"
	"github.com/strata-project/strata/internal/answers/drift"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/terminal"
)

const diffLong = `Show what on the cluster is not as it is wanted: what somebody has changed of a
layer's own objects, and what is missing of the objects that Helm made, or differs
from what the chart renders with the version and the values that are deployed.

Fields that others have added, such as what an API server fills in or a sidecar, are
no drift. Those of a layer's own objects are listed behind a = with who has them; what
people have added by kubectl is taken back, and differs until then. Lines go from what
is wanted to what is there. Values of Secrets, and what
a chart has made of them, are shown as *** only, unless --show-secrets is given.
Strata corrects its own objects by itself; objects of charts are corrected by Flux,
where spec.driftDetection of the HelmRelease asks for that.

A chart that cannot be rendered, and objects that you may not read or that are on
another cluster, are named, and nothing is said of them.

Exit codes:
  0  what could be compared is as it is wanted
  1  it cannot be compared
  2  something differs`

const diffExamples = `  # One layer
  kubectl strata diff base

  # All of them, for other programs
  kubectl strata diff -o json`

// newDiff returns the command that shows drift.
func newDiff(t *tool) *cobra.Command {
	o := &planOptions{PlanOptions: gather.PlanOptions{Lenient: true}}
	command := &cobra.Command{
		Use: "diff [LAYER...]", Short: "Show what on the cluster is not as it is wanted", Long: diffLong, Example: diffExamples,
		RunE: func(command *cobra.Command, names []string) error {
			o.names = names
			return t.diff(command.Context(), o)
		},
	}
	command.Flags().StringVar(
		&o.Namespace,
		"runtime-namespace",
		"",
		"the namespace of sources that name none; read from the controller's Deployment where it may be",
	)
	command.Flags().StringVarP(&o.selector, "selector", "l", "", "the layers with these labels, for example team=platform")
	o.charts.hostsFlag(command.Flags())
	o.charts.secretsFlag(command.Flags())
	console.OutputFlag(command, &o.output, "json", "yaml")
	return command
}

func (t *tool) diff(ctx context.Context, o *planOptions) error {
	progress := t.Progress()
	defer progress.Done()
	progress.Say("reading the cluster")
	gathered, names, err := t.gather(ctx, o)
	if err != nil {
		return err
	}
	defer gathered.Close()
	found, err := gathered.Drift(ctx, gather.PreviewOptions{Names: names, Say: progress.Say})
	if err != nil {
		return err
	}
	progress.Done()
	return t.printDiff(found, o.output)
}

func (t *tool) printDiff(found []drift.Layer, output string) error {
	differs := slices.ContainsFunc(found, func(diff drift.Layer) bool { return len(diff.Objects) > 0 })
	if output != "" {
		if err := t.PrintAs(output, found); err != nil {
			return err
		}
	} else {
		for _, diff := range found {
			t.printLayerDiff(diff)
		}
		if !differs {
			console.Say(t.Out, "What could be compared is as it is wanted.")
		}
	}
	if differs {
		return console.ErrDiffers
	}
	return nil
}

func (t *tool) printLayerDiff(diff drift.Layer) {
	if len(diff.Objects)+len(diff.Beside)+len(diff.Unknown) == 0 {
		return
	}
	verdict := fmt.Sprintf("%d objects differ", len(diff.Objects))
	switch len(diff.Objects) {
	case 0:
		verdict = "nothing differs of what could be compared"
	case 1:
		verdict = "1 object differs"
	}
	for _, line := range t.Screen.Wrap("layer "+diff.Layer+": "+verdict, "  ") {
		console.Say(t.Out, "%s", t.Screen.Paint(terminal.Strong, line))
	}
	for _, object := range diff.Objects {
		for _, line := range object.Lines {
			role := map[byte]terminal.Role{'-': terminal.Bad, '~': terminal.Warning}[(line + " ")[0]]
			text := "  " + strings.TrimRight(terminal.Safe(line), " ")
			if object.Verb == charts.Delete {
				text += " is missing"
			}
			if object.Release != "" {
				text += " (release " + object.Release + ")"
			}
			for _, wrapped := range (terminal.Screen{Width: max(0, t.Screen.Width-2)}).Wrap(text, "  ") {
				console.Say(t.Out, "%s", t.Screen.Paint(role, "  "+wrapped))
			}
		}
	}
	say := func(sign, text string) {
		console.Say(t.Out, "%s", "  "+strings.Join((terminal.Screen{Width: max(0, t.Screen.Width-2)}).Wrap(sign+" "+terminal.Safe(text), "  "), "\n  "))
	}
	for _, beside := range diff.Beside {
		say("=", beside.String())
	}
	for _, unknown := range diff.Unknown {
		say("?", unknown)
	}
}
