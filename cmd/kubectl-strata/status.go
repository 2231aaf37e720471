// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/verdict"
)

const statusLong = `Say in one sentence whether everything is well that you may see, and if not, what the
cause is. Below it stands each cause, the worst first: since when, until when, how
many layers wait for it, and what there is to read about it.

The three worst causes are followed down to the Pod, on other clusters too where you
may read their kubeconfigs. What you may not list is not counted, and is named.

Exit codes:
  0  everything is deployed, or gets there by itself
  1  it cannot be said
  2  something has failed, or waits for what does not come by itself`

const statusExamples = `  # Is everything well?
  kubectl strata status

  # Is everything well that is my team's?
  kubectl strata status -l team=payments

  # For a check of your own
  kubectl strata status -o json`

// newStatus returns the command that says how everything stands.
func newStatus(t *tool) *cobra.Command {
	var output string
	remote := remoteFlags{}
	command := &cobra.Command{
		Use: "status", Short: "Say in one sentence whether everything is well", Long: statusLong, Example: statusExamples, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			o, err := remote.options(t)
			if err != nil {
				return err
			}
			return t.status(command.Context(), o, output)
		},
	}
	remote.add(command)
	remote.addSelector(command)
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}

func (t *tool) status(ctx context.Context, o gather.WhyOptions, output string) error {
	s, err := t.Cluster.Read(ctx, gather.VerdictParts...)
	if err != nil {
		return err
	}
	v, err := t.Cluster.Verdict(ctx, s, o)
	if err != nil {
		return err
	}
	if output != "" {
		err = t.PrintAs(output, v)
	} else {
		_, err = io.WriteString(t.Out, printing.Verdict(t.Screen, v, s.Now, t.program()))
	}
	if err == nil && (v.State == verdict.Failed || v.State == verdict.Waiting) {
		return console.ErrBlocked
	}
	return err
}
