// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/answers/checks"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

const checkLong = `Check that Strata can work in the cluster: the version of Kubernetes; Flux's
source-controller and helm-controller; Strata's CRDs, whether they have all
fields that this plug-in knows; the controller, its version and its rights;
what is left of Kraan; and what you yourself may do.

Each line begins with ok, warn or fail. A warning is something to know; what
you may not read is one. Below it is what to do. Nothing is changed.

--pre checks only what must hold before kubectl strata install.

Limits: the controller's rights are compared with those of the chart's
ClusterRoles. Other clusters are not asked; kubectl strata clusters shows
those.

Exit codes:
  0  nothing has failed
  1  the cluster cannot be asked
  2  a check has failed`

const checkExamples = `  # Can it be installed?
  kubectl strata check --pre

  # Is it well?
  kubectl strata check

  # What has failed, for other programs
  kubectl strata check -o json | jq '.checks[] | select(.result == "fail")'`

// newCheck returns the command that checks an installation.
func newCheck(t *setup) *cobra.Command {
	var output string
	var before bool
	command := &cobra.Command{
		Use: "check", Short: "Check that Strata can work in the cluster", Long: checkLong, Example: checkExamples, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			findings, err := t.check(command.Context(), before)
			if err != nil {
				return err
			}
			return t.printFindings(findings, output)
		},
	}
	command.Flags().BoolVar(&before, "pre", false, "check only what must hold before Strata is installed")
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}

func (t *setup) check(ctx context.Context, before bool) ([]checks.Finding, error) {
	wanted, err := t.build.Wanted()
	if err != nil {
		return nil, err
	}
	facts, err := t.Cluster.Facts(ctx, wanted)
	if err != nil {
		return nil, t.Explain(err, snapshot.Layers)
	}
	if before {
		return checks.Before(facts, wanted), nil
	}
	return checks.All(facts, wanted), nil
}

func (t *setup) printFindings(findings []checks.Finding, output string) error {
	if output != "" {
		if err := t.PrintAs(output, map[string]any{"checks": findings}); err != nil {
			return err
		}
	} else if _, err := io.WriteString(t.Out, printing.Checks(t.Screen, findings)); err != nil {
		return err
	}
	if checks.Failed(findings) {
		return console.ErrBlocked
	}
	return nil
}
