// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package fromhosts

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/cmd/kubectl-strata/setup"
	"github.com/strata-project/strata/internal/hosts"
)

const planLong = `Look at all hosts and their cluster, and say what would be done, in order and why.

Nothing is changed on a host. Of a host key that is seen first, a line is added to the
known hosts.

STATE is Empty, for a host that has nothing of a cluster; Dirty, for one with remains that no
action of this cluster has left; InProgress, for one on which an action has begun and not
ended; Healthy, Broken or Unreachable. Behind an action stands how many members of etcd are
healthy before and after it.

Exit codes:
  0  there is nothing to do
  1  the manifest is wrong, or the hosts cannot be looked at
  2  there is something to do, or something that stops it`

const planExamples = `  # What there is, and what would be done
  kubectl strata hosts plan hosts.yaml

  # For a program, or for apply --plan
  kubectl strata hosts plan hosts.yaml -o json > plan.json`

func newPlan(c *console.Console, build setup.Build) *cobra.Command {
	w := &work{Console: c}
	output := ""
	command := &cobra.Command{
		Use:     "plan [FILE]",
		Short:   "Say what is there, and what would be done",
		Long:    planLong,
		Example: planExamples,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return w.plan(command.Context(), fileOf(args), output)
		},
	}
	w.addFlags(command)
	w.takeOverFlag(command)
	w.snapshotFlag(command)
	w.fill.addFlags(command, build)
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}

func (w *work) plan(ctx context.Context, file, output string) error {
	defer w.end()
	if err := w.open(ctx, file); err != nil {
		return err
	}
	if err := w.openFilling(ctx); err != nil {
		return err
	}
	plan, _, err := w.look(ctx)
	if err != nil {
		return err
	}
	if output != "" {
		err = w.PrintAs(output, plan)
	} else {
		err = printing.HostPlan(w.Out, w.Screen, plan)
	}
	switch {
	case err != nil:
		return err
	case plan.Outcome == hosts.Done:
		return nil
	case plan.Acts():
		return console.ErrDiffers
	}
	return console.ErrBlocked
}
