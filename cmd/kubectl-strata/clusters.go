// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/remoteclusters"
)

const clustersLong = `Show RemoteClusters, sorted by namespace and name: the clusters that layers
with spec.cluster belong on.

LAYERS counts the layers that are deployed, of those that name the cluster.
EXPIRES is for how long its credentials last. LAST SEEN is how long ago it
has answered the controller. WHY says what is waited for, what is wrong, or
that the credentials end soon.

The clusters themselves are not asked: what is shown is what the controller
has found out.

Exit codes:
  0  every cluster shown is ready
  1  the clusters cannot be shown
  2  a cluster is not ready: it does not answer, or waits for its kubeconfig,
     or that cannot be used; or the controller has not looked at its latest
     generation`

const clustersExamples = `  # The clusters of all namespaces
  kubectl strata clusters

  # One of them, with endpoint, Secret and the whole of its message
  kubectl strata clusters fleet/prod-eu -o wide

  # Those of one namespace, for who may see no others
  kubectl strata clusters --namespace fleet

  # Follow them
  kubectl strata clusters --watch`

func newClusters(t *tool) *cobra.Command {
	o := &showOptions{Console: t.Console, kind: clusterKind}
	command := &cobra.Command{
		Use:     "clusters [[NAMESPACE/]NAME...]",
		Aliases: []string{"cluster"},
		Short:   "Show the other clusters that layers belong on",
		Long:    clustersLong,
		Example: clustersExamples,
		RunE: func(command *cobra.Command, args []string) error {
			o.names = args
			return o.run(command.Context(), t.Out)
		},
	}
	o.addFlags(command, "show RemoteClusters with these labels, for example region=eu")
	command.Flags().StringVarP(&o.namespace, "namespace", "n", "", "show RemoteClusters of this namespace alone")
	return command
}

// addClusterCommands puts the commands about single clusters below the one that
// shows them, whose arguments are names of clusters. A cluster that is called as one
// of them is shown by its name with its namespace.
func addClusterCommands(t *tool, clusters *cobra.Command) {
	list := newClusters(t)
	list.Use, list.Aliases = "list [[NAMESPACE/]NAME...]", nil
	list.Example = strings.ReplaceAll(list.Example, "strata clusters", "strata clusters list")
	clusters.AddCommand(append(remoteclusters.Commands(t.Console), list)...)
}
