// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package fromhosts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/cmd/kubectl-strata/setup"
	"github.com/strata-project/strata/internal/hostplans"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/provision"
	"github.com/strata-project/strata/internal/terminal"
)

const applyLong = `Do what plan says: make the cluster, and bring hosts that lack into it.

The plan is shown, and done after a yes; --yes does it without a question. --plan does it
only if it is still the one in a file, which hosts plan -o json has written.

One action is taken at a time, and everything is looked at again after each. kubeadm does
the work. What is begun is written into a journal on the host, so that this command can be
killed at any moment, the connection be cut, or the host stop: run again, it goes on where
it was. Nothing is done that is not in the plan that was agreed to.

Hosts are locked while this runs, and the cluster is once there is one. Whoever runs it at
the same time is told who is at work.

Exit codes:
  0  there is nothing left to do
  1  it could not be done; what was done is said
  2  something stops it that somebody has to see to`

const applyExamples = `  # Make or repair the cluster
  kubectl strata hosts apply hosts.yaml

  # What somebody has looked at, and nothing else
  kubectl strata hosts plan hosts.yaml -o json > plan.json
  kubectl strata hosts apply hosts.yaml --plan plan.json --yes`

// maxPlan is how long a file with a plan may be, in bytes.
const maxPlan = 8 << 20

func newApply(c *console.Console, build setup.Build) *cobra.Command {
	w := &work{Console: c}
	var agreed, output string
	var yes bool
	command := &cobra.Command{
		Use:     "apply [FILE]",
		Short:   "Make the cluster, and bring missing hosts into it",
		Long:    applyLong,
		Example: applyExamples,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return w.apply(command.Context(), fileOf(args), agreed, yes, output)
		},
	}
	w.addFlags(command)
	w.takeOverFlag(command)
	w.snapshotFlag(command)
	w.fill.addFlags(command, build)
	command.Flags().BoolVarP(&yes, "yes", "y", false, "do it without a question")
	command.Flags().StringVar(&agreed, "plan", "", "do it only if the plan is still that of this file, as plan -o json writes it")
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}

func (w *work) apply(ctx context.Context, file, agreed string, yes bool, output string) error {
	defer w.end()
	digest := ""
	if agreed != "" {
		var err error
		if digest, err = digestOf(agreed); err != nil {
			return err
		}
	}
	if err := w.open(ctx, file); err != nil {
		return err
	}
	if err := w.openFilling(ctx); err != nil {
		return err
	}
	options := w.options()
	options.Filling = w.filler()
	options.Approve = func(plan *hostplans.Plan) error { return w.approve(plan, digest, yes, output) }
	return w.run(ctx, options, output, nil)
}

// run does what is to be done, and says how it has ended. unasked says what is wrong where
// there was nothing to agree to; nil for nothing.
func (w *work) run(ctx context.Context, options provision.Options, output string, unasked func(*hostplans.Plan) error) error {
	begin, asked, approve := w.Now(), false, options.Approve
	options.Approve = func(plan *hostplans.Plan) error {
		asked = true
		return approve(plan)
	}
	plan, err := provision.Run(ctx, options)
	if err == nil && !asked && unasked != nil {
		err = unasked(plan)
	}
	if err != nil {
		return err
	}
	return w.finish(plan, output, w.Now().Sub(begin))
}

// finish says what is left to do.
func (w *work) finish(plan *hostplans.Plan, output string, took time.Duration) error {
	w.warn(plan)
	var err error
	if output != "" {
		err = w.PrintAs(output, plan)
	} else {
		err = w.conclude(plan, took)
	}
	switch {
	case err != nil:
		return err
	case plan.Outcome == hosts.Done:
		return nil
	}
	return console.ErrBlocked
}

// approve shows the plan, and asks for a yes.
func (w *work) approve(plan *hostplans.Plan, digest string, yes bool, output string) error {
	if digest != "" && plan.Digest != digest {
		return errors.New("the plan is not that of --plan any more: look at the new one with kubectl strata hosts plan")
	}
	if output == "" {
		if err := printing.HostPlan(w.Out, w.Screen, plan); err != nil {
			return err
		}
		fmt.Fprintln(w.Out)
	}
	if yes {
		return nil
	}
	return w.Confirm("Do this?", false)
}

// report says what is done, with a line for each step.
func (w *work) report(event provision.Event) {
	text := event.Message
	if event.Host != "" {
		text = event.Host + " " + text
	}
	if !event.Until.IsZero() {
		text += " (until " + event.Until.UTC().Format(time.TimeOnly) + ")"
	}
	fmt.Fprintf(w.ErrOut, "%s %s\n", w.Now().UTC().Format(time.TimeOnly), terminal.Safe(text))
}

// conclude says how it has ended.
func (w *work) conclude(plan *hostplans.Plan, took time.Duration) error {
	if err := printing.HostPlan(w.Out, w.Screen, plan); err != nil {
		return err
	}
	if plan.Outcome == hosts.Done && took > time.Second {
		fmt.Fprintf(w.Out, "It took %s.\n", took.Round(time.Second))
	}
	return nil
}

// digestOf reads the digest of a plan that was written before.
func digestOf(file string) (string, error) {
	opened, err := os.Open(file) //nolint:gosec // somebody names their own file
	if err != nil {
		return "", fmt.Errorf("cannot read the plan: %w", err)
	}
	defer func() { _ = opened.Close() }()
	data, err := io.ReadAll(io.LimitReader(opened, maxPlan+1))
	if err != nil {
		return "", fmt.Errorf("cannot read the plan: %w", err)
	}
	var plan struct {
		Digest string `json:"digest"`
	}
	if len(data) > maxPlan || json.Unmarshal(data, &plan) != nil || plan.Digest == "" {
		return "", fmt.Errorf("%s is no plan that kubectl strata hosts plan -o json has written", file)
	}
	return plan.Digest, nil
}

// whoAmI says for others who works on hosts.
func whoAmI() string {
	name, machine := "somebody", "a machine"
	if current, err := user.Current(); err == nil {
		name = current.Username
	}
	if host, err := os.Hostname(); err == nil {
		machine = host
	}
	return fmt.Sprintf("%s@%s (process %d)", name, machine, os.Getpid())
}
