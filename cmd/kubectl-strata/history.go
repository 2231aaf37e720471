// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/acts"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/terminal"
)

const historyLong = `Show the last deployments of a layer, the newest first. kubectl strata rollback takes
the layer back to one of them; those that are KEPT are in the cluster, whatever
becomes of the source.`

const historyExamples = `  # What was deployed
  kubectl strata history base

  # For other programs
  kubectl strata history base -o json`

// newHistory returns the command that shows deployments.
func newHistory(t *tool) *cobra.Command {
	c := &choice{Console: t.Console}
	var output string
	command := &cobra.Command{
		Use: "history LAYER", Short: "Show the last deployments of a layer", Long: historyLong, Example: historyExamples, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			layer, err := c.one(command.Context(), names[0])
			if err != nil {
				return err
			}
			return t.printHistory(layer, output)
		},
	}
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}

// one returns a layer by its name.
func (c *choice) one(ctx context.Context, name string) (*v1alpha1.AddonsLayer, error) {
	_, found, err := c.layers(ctx, []string{name})
	if err != nil {
		return nil, err
	}
	layer := &v1alpha1.AddonsLayer{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found[0].Object, layer); err != nil {
		return nil, fmt.Errorf("cannot understand layer %s: %w", name, err)
	}
	return layer, nil
}

func (t *tool) printHistory(layer *v1alpha1.AddonsLayer, output string) error {
	history := layer.Status.History
	if output != "" {
		return t.PrintAs(output, append([]v1alpha1.HistoryEntry{}, history...))
	}
	if len(history) == 0 {
		console.Say(t.Out, "Layer %s has deployed nothing yet.", layer.Name)
		return nil
	}
	columns := []terminal.Column{
		{Name: "ID"},
		{Name: "VERSION"},
		{Name: "REVISION", Expendable: 4},
		{Name: "RESULT", Role: roleOfState},
		{Name: "STARTED"},
		{Name: "TOOK", Expendable: 3},
		{Name: "KEPT", Expendable: 2},
		{Name: "MESSAGE"},
	}
	rows := make([][]string, 0, len(history))
	for _, entry := range history {
		kept := "no"
		if entry.Kept {
			kept = "yes"
		}
		rows = append(rows, []string{
			entry.ID, entry.Version, entry.Revision, string(entry.Result),
			duration.HumanDuration(max(0, t.Now().Sub(entry.Started.Time))) + " ago", duration.HumanDuration(entry.Duration.Duration), kept, entry.Message,
		})
	}
	return t.Screen.Table(t.Out, columns, rows)
}

const rollbackLong = `Take a layer back to one of its last deployments, which kubectl strata history
shows. The layer stays there until its specification, or what its source holds for
it, changes.

With --plan nothing is changed: what would be done is shown, as kubectl strata plan
shows it, with its exit codes.`

const rollbackExamples = `  # What going back to the deployment with the ID 11 would do
  kubectl strata rollback base --to 11 --plan

  # Go back, and wait for it
  kubectl strata rollback base --to 11
  kubectl strata wait base --for deployed`

// newRollback returns the command that takes a layer back.
func newRollback(t *tool) *cobra.Command {
	o := &rollbackOptions{choice: choice{Console: t.Console}}
	command := &cobra.Command{
		Use: "rollback LAYER --to ID", Short: "Take a layer back to an earlier deployment", Long: rollbackLong, Example: rollbackExamples, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			return t.rollback(command.Context(), o, names[0])
		},
	}
	command.Flags().StringVar(&o.to, "to", "", "the ID of the deployment (required)")
	command.Flags().BoolVar(&o.plan, "plan", false, "show what it would do, and do nothing")
	o.charts.hostsFlag(command.Flags())
	o.charts.trustFlag(command.Flags())
	o.charts.secretsFlag(command.Flags())
	console.OutputFlag(command, &o.output, "json", "yaml", "markdown")
	return command
}

// rollbackOptions are what the flags of rollback say.
type rollbackOptions struct {
	choice
	to     string
	plan   bool
	charts chartOptions
	output string
}

func (t *tool) rollback(ctx context.Context, o *rollbackOptions, name string) error {
	if o.to == "" {
		return fmt.Errorf("--to is missing: kubectl strata history %s shows the deployments", name)
	}
	switch {
	case o.output != "" && !o.plan:
		return errors.New("--output is for --plan")
	case (o.charts.ShowSecrets || o.charts.TrustSources) && !o.plan:
		return errors.New("--show-secrets and --trust-sources are for --plan")
	}
	layer, err := o.one(ctx, name)
	if err != nil {
		return err
	}
	entry, err := acts.RollbackOf(layer, o.to)
	if err != nil {
		return err
	}
	if o.plan {
		p, err := t.planned(ctx, &planOptions{names: []string{name}, charts: o.charts, remote: remoteFlags{remote: true}}, func(g *gather.Plan) error {
			return g.Annotate(name, map[string]any{v1alpha1.RollbackToAnnotation: o.to})
		})
		if err != nil {
			return err
		}
		p.From = fmt.Sprintf("going back to deployment %s of layer %s, version %s of revision %s", o.to, name, entry.Version, entry.Revision)
		return t.printPlan(p, o.output)
	}
	if err := o.annotate(ctx, name, map[string]any{v1alpha1.RollbackToAnnotation: o.to}); err != nil {
		return err
	}
	console.Say(t.Out, "layer %s goes back to deployment %s: version %s of revision %s", name, o.to, entry.Version, entry.Revision)
	return nil
}
