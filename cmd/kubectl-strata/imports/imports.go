// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package imports holds the commands that write layers for what already runs.
package imports

import (
	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
)

// Commands returns the commands that write layers for what already runs.
func Commands(c *console.Console) []*cobra.Command {
	command := &cobra.Command{
		Use: "import", Short: "Write layers for what already runs",
		Long: `Write layers for what already runs, and show that nothing would be installed again.
Nothing in the cluster is changed: files are written into a folder, to be looked at
and committed.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newFlux(c), newHelm(c), newKraan(c))
	return []*cobra.Command{command}
}
