// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package fromhosts

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/hostplans"
	"github.com/strata-project/strata/internal/hosts"
)

func newCerts(c *console.Console) *cobra.Command {
	command := &cobra.Command{
		Use:   "certs",
		Short: "Renew the certificates of the control plane",
		Args:  cobra.NoArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newRenew(c))
	return command
}

const renewLong = `Renew the certificates of all hosts of the control plane, one host after another, whenever
they end. kubeadm renews them, and those in its kubeconfigs; the authorities stay.

apply does so by itself for certificates that end within 30 days, and also where they have
ended and no API server answers any more. What else the manifest wants is in the plan, too.

Exit codes are those of apply.`

func newRenew(c *console.Console) *cobra.Command {
	w := &work{Console: c}
	output, yes := "", false
	command := &cobra.Command{
		Use:     "renew [FILE]",
		Short:   "Renew the certificates of the control plane",
		Long:    renewLong,
		Example: "  kubectl strata hosts certs renew",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return w.renew(command.Context(), fileOf(args), yes, output)
		},
	}
	w.addFlags(command)
	w.snapshotFlag(command)
	command.Flags().BoolVarP(&yes, "yes", "y", false, "do it without a question")
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}

func (w *work) renew(ctx context.Context, file string, yes bool, output string) error {
	defer w.end()
	if err := w.open(ctx, file); err != nil {
		return err
	}
	options := w.options()
	options.RenewCertificates = true
	options.Approve = func(plan *hostplans.Plan) error { return w.approve(plan, "", yes, output) }
	return w.run(ctx, options, output, func(plan *hostplans.Plan) error {
		if plan.Outcome == hosts.Done {
			return errors.New("no host of the control plane has certificates")
		}
		return nil
	})
}
