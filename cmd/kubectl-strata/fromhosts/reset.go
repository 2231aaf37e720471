// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package fromhosts

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/provision"
)

const resetLong = `Take away what a cluster is on its hosts: the cluster is gone then, with all that is in it.

Without --host, every host of the manifest is reset that an action of this cluster has been
at. A host with something that no action of this cluster has left is reset only when --host
names it; one with the journal of another cluster is not reset at all, and neither is a
single member of a cluster that answers. A worker that --host names is left by its Pods
first, and its Node goes.

With it goes what etcd has had on a host before a restore.

Packages stay, and so do the files of Pods outside /var/lib/kubelet. The name of the
cluster has to be typed, or given by --confirm.`

const resetExamples = `  # The whole cluster
  kubectl strata hosts reset hosts.yaml --confirm default/edge

  # One host, with remains of another installation
  kubectl strata hosts reset hosts.yaml --host cp-1`

func newReset(c *console.Console) *cobra.Command {
	w := &work{Console: c}
	var named []string
	confirmed := ""
	command := &cobra.Command{
		Use:     "reset [FILE]",
		Short:   "Take away what a cluster is on its hosts",
		Long:    resetLong,
		Example: resetExamples,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return w.reset(command.Context(), fileOf(args), named, confirmed)
		},
	}
	w.addFlags(command)
	command.Flags().StringSliceVar(&named, "host", nil, "reset these hosts alone")
	command.Flags().StringVar(&confirmed, "confirm", "", "the namespace and name of the cluster, for where nobody can be asked")
	return command
}

func (w *work) reset(ctx context.Context, file string, named []string, confirmed string) error {
	defer w.end()
	if err := w.open(ctx, file); err != nil {
		return err
	}
	name := w.cluster.Namespace + "/" + w.cluster.Name
	chosen, err := provision.Reset(ctx, w.options(), named, func(hosts []string) error { return w.confirmReset(name, confirmed, hosts) })
	switch {
	case err != nil:
		return err
	case len(chosen) == 0:
		fmt.Fprintln(w.Out, "There is nothing to take away.")
		return nil
	}
	w.Paragraph(w.Out, "%s: reset", strings.Join(chosen, ", "))
	return nil
}

// confirmReset has somebody type the name of the cluster that goes.
func (w *work) confirmReset(name, confirmed string, hosts []string) error {
	if confirmed == "" {
		w.Paragraph(w.ErrOut, "What is of a cluster on %s goes, and cannot be brought back.", strings.Join(hosts, ", "))
	}
	return w.confirmName(name, confirmed)
}

// confirmName has somebody type the name of the cluster, unless it was given.
func (w *work) confirmName(name, confirmed string) error {
	if confirmed == "" {
		answer, err := w.Ask("Type " + name + " to go on:")
		if err != nil {
			return err
		}
		if confirmed = answer; answer == "" && w.Answers == nil {
			return fmt.Errorf("nothing was done, for there is no terminal to ask at: give --confirm %s", name)
		}
	}
	if confirmed != name {
		return console.ErrNotWanted
	}
	return nil
}
