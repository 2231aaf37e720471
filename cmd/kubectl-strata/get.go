// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"
)

const getLong = `Show layers, sorted by name.

READY counts the releases that are ready, of those that must be. CLUSTER is
the RemoteCluster that the layer belongs on, a->b while it moves, and - for
the cluster that Strata runs in. SINCE is for how long the layer has been
ready, or has not been. WHY says what it waits for, or what is wrong.

What layers have on other clusters is shown as the controller has seen it
there; those clusters are not asked.

Exit codes:
  0  every layer shown is deployed, or gets there by itself
  1  the layers cannot be shown
  2  a layer is blocked or failed: it is held; it waits for its source, for
     its cluster, for a version of Kubernetes or for another layer; its
     cluster does not answer; it cannot be deleted; or the controller has
     not looked at its latest generation`

const getExamples = `  # All layers
  kubectl strata get

  # Two of them, with source, path and the whole of their messages
  kubectl strata get bootstrap base -o wide

  # Follow those with a label
  kubectl strata get -l team=platform --watch

  # Their names, for other commands
  kubectl strata get -o name`

func newGet(t *tool) *cobra.Command {
	o := &showOptions{Console: t.Console, kind: layerKind}
	command := &cobra.Command{
		Use:     "get [LAYER...]",
		Short:   "Show where layers stand, and why",
		Long:    getLong,
		Example: getExamples,
		RunE: func(command *cobra.Command, args []string) error {
			o.names = args
			return o.run(command.Context(), t.Out)
		},
	}
	o.addFlags(command, "show layers with these labels, for example team=platform")
	return command
}
