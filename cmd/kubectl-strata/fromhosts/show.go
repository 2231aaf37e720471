// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package fromhosts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/scripts"
	"github.com/strata-project/strata/internal/ssh"
	"github.com/strata-project/strata/internal/terminal"
)

// warnBefore is how long before their end certificates are named.
const warnBefore = 90 * 24 * time.Hour

const statusLong = `Show how the hosts and their cluster are, and change nothing.

Exit codes:
  0  every host is healthy, and as the manifest says
  1  the hosts cannot be looked at
  2  a host is not healthy, or not as the manifest says`

const statusExamples = `  kubectl strata hosts status`

func newStatus(c *console.Console) *cobra.Command {
	w := &work{Console: c}
	output := ""
	command := &cobra.Command{
		Use:     "status [FILE]",
		Short:   "Show how the hosts and their cluster are",
		Long:    statusLong,
		Example: statusExamples,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return w.status(command.Context(), fileOf(args), output)
		},
	}
	w.addFlags(command)
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}

func (w *work) status(ctx context.Context, file, output string) error {
	defer w.end()
	if err := w.open(ctx, file); err != nil {
		return err
	}
	plan, sight, err := w.look(ctx)
	if err != nil {
		return err
	}
	plan.Warnings = append(plan.Warnings, sight.Certificates(w.Now().Add(warnBefore))...)
	if output != "" {
		err = w.PrintAs(output, plan)
	} else {
		err = printing.HostStatus(w.Out, w.Screen, plan)
	}
	switch {
	case err != nil:
		return err
	case plan.Outcome == hosts.Done:
		return nil
	}
	return console.ErrBlocked
}

const kubeconfigLong = `Print a kubeconfig for the cluster, as its administrator, at the endpoint of the manifest.

It is the one that kubeadm has made, with all rights: keep it as you would keep a key.`

const kubeconfigExamples = `  kubectl strata hosts kubeconfig > edge.kubeconfig`

func newKubeconfig(c *console.Console) *cobra.Command {
	w := &work{Console: c}
	command := &cobra.Command{
		Use:     "kubeconfig [FILE]",
		Short:   "Print a kubeconfig for the cluster",
		Long:    kubeconfigLong,
		Example: kubeconfigExamples,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return w.kubeconfig(command.Context(), fileOf(args))
		},
	}
	w.addFlags(command)
	return command
}

func (w *work) kubeconfig(ctx context.Context, file string) error {
	defer w.end()
	if err := w.open(ctx, file); err != nil {
		return err
	}
	_, sight, err := w.look(ctx)
	if err != nil {
		return err
	}
	if sight.Cluster == nil {
		return errors.New("there is no cluster that answers on these hosts: kubectl strata hosts plan says what there is")
	}
	text, err := sight.Cluster.Kubeconfig(w.cluster.Name, w.cluster.Spec.Endpoint)
	if err != nil {
		return err
	}
	_, err = w.Out.Write(text)
	return err
}

const logsLong = `Print what the programs of the last two actions have written on a host.`

const logsExamples = `  kubectl strata hosts logs cp-1`

func newLogs(c *console.Console) *cobra.Command {
	w := &work{Console: c}
	file := ""
	command := &cobra.Command{
		Use:     "logs HOST",
		Short:   "Print what programs have written on a host",
		Long:    logsLong,
		Example: logsExamples,
		Args:    cobra.ExactArgs(1),
		RunE:    func(command *cobra.Command, args []string) error { return w.logs(command.Context(), args[0], file) },
	}
	w.addFlags(command)
	command.Flags().StringVarP(&file, "file", "f", defaultFile, "the manifest")
	return command
}

func (w *work) logs(ctx context.Context, host, file string) error {
	defer w.end()
	if err := w.open(ctx, file); err != nil {
		return err
	}
	result, err := w.machines.Run(ctx, host, ssh.Command{Input: []byte(scripts.Log)})
	switch {
	case err != nil:
		return err
	case result.Status != 0:
		return fmt.Errorf("%s does not say what its programs have written", host)
	case len(result.Output) == 0:
		fmt.Fprintf(w.Out, "No action has written anything on %s.\n", host)
		return nil
	}
	for line := range strings.Lines(string(result.Output)) {
		if _, err := fmt.Fprintln(w.Out, terminal.Safe(strings.TrimRight(line, "\n"))); err != nil {
			return err
		}
	}
	return nil
}
