// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package fromhosts

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/hostclusters"
)

const initLong = `Write a manifest with a comment on each field, to be filled in.`

const initExamples = `  # A manifest to begin with
  kubectl strata hosts init > hosts.yaml`

func newInit(c *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:     "init",
		Short:   "Write a manifest to begin with",
		Long:    initLong,
		Example: initExamples,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(c.Out, hostclusters.Sample)
			return err
		},
	}
}
