// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package fromhosts

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/hostplans"
	"github.com/strata-project/strata/internal/hosts"
)

const replaceLong = `Take a host out of the cluster that is broken or cannot be reached, as long as etcd keeps its
majority, and bring it in again where it can be reached.

It is what apply does where the manifest has replace: true for the host, once: the manifest
stays as it is. Another machine in the place of one that is gone is brought in by apply, with
its address in the manifest.

Exit codes are those of apply.`

const replaceExamples = `  # cp-1 does not come back: have its member leave etcd, and its Node the cluster
  kubectl strata hosts replace cp-1`

func newReplace(c *console.Console) *cobra.Command {
	w := &work{Console: c}
	file, output, yes := "", "", false
	command := &cobra.Command{
		Use:     "replace HOST",
		Short:   "Take a broken host out of the cluster, and bring it in again",
		Long:    replaceLong,
		Example: replaceExamples,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return w.replace(command.Context(), args[0], file, yes, output)
		},
	}
	w.addFlags(command)
	w.snapshotFlag(command)
	command.Flags().StringVarP(&file, "file", "f", defaultFile, "the manifest")
	command.Flags().BoolVarP(&yes, "yes", "y", false, "do it without a question")
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}

func (w *work) replace(ctx context.Context, name, file string, yes bool, output string) error {
	defer w.end()
	if err := w.open(ctx, file); err != nil {
		return err
	}
	if !consent(w.cluster, name) {
		return fmt.Errorf("there is no host %s in the manifest", name)
	}
	options := w.options()
	options.Approve = func(plan *hostplans.Plan) error {
		if !isReplacing(plan, name) {
			return whyNotReplaced(plan, name)
		}
		return w.approve(plan, "", yes, output)
	}
	return w.run(ctx, options, output, func(plan *hostplans.Plan) error { return whyNotReplaced(plan, name) })
}

// consent has a host be one that may be taken out.
func consent(cluster *v1alpha1.HostCluster, name string) bool {
	for _, list := range [][]v1alpha1.ClusterHost{cluster.Spec.ControlPlane, cluster.Spec.Workers} {
		if i := slices.IndexFunc(list, func(h v1alpha1.ClusterHost) bool { return h.Name == name }); i >= 0 {
			list[i].Replace = true
			return true
		}
	}
	return false
}

// isReplacing tells whether a plan takes a host out.
func isReplacing(plan *hostplans.Plan, name string) bool {
	return slices.ContainsFunc(plan.Actions, func(a hosts.Action) bool {
		return a.Host == name && slices.Contains([]hosts.Verb{hosts.VerbRemoveMember, hosts.VerbRemoveNode, hosts.VerbReset}, a.Verb)
	})
}

// whyNotReplaced says why a plan does not take a host out.
func whyNotReplaced(plan *hostplans.Plan, name string) error {
	i := slices.IndexFunc(plan.Hosts, func(h hostplans.Host) bool { return h.Name == name })
	switch {
	case plan.Outcome == hosts.Error:
		return errors.New(plan.Message)
	case i >= 0 && plan.Hosts[i].Class == hosts.Healthy:
		return fmt.Errorf("%s is healthy, and is not replaced: take it out of the manifest to have it leave the cluster", name)
	case plan.Outcome == hosts.Blocked:
		return errors.New(plan.Message)
	}
	return fmt.Errorf("%s is not in the cluster: kubectl strata hosts apply brings it in", name)
}
