// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/answers/fleet"
	"github.com/strata-project/strata/internal/answers/platforms"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

const platformLong = `Show Platforms and their roll-outs, what would be done for one, and approve
stages.`

const platformListLong = `Show all Platforms.

VERSION is the one that clusters are moved to, behind those that they have.
CLUSTERS counts those that are up to date, of all; AWAY those that do not
answer. STAGE is the one that is at work.

Exit codes:
  0  every Platform gets on by itself
  1  they cannot be shown
  2  one does not: it has failed or is wrong, is held, waits for approval, or
     clusters of it have failed or do not answer`

const platformListExamples = `  # All Platforms
  kubectl strata platform list`

const platformGetLong = `Show a Platform with the stages of its roll-out, what each waits for, the
picked applications, and the clusters that are worst off.

DONE counts clusters that are well at the version. FAILED are those that have
failed on their way, are not well before it, or have no way to the version.
SOAK is how long a stage has still to be well before the next one begins.
Counts of stages are of this moment, by the rules of the controller.

Exit codes:
  0  it gets on by itself
  1  it cannot be shown, or does not exist
  2  it does not: it has failed or is wrong, is held, waits for approval, or
     clusters of it have failed or do not answer`

const platformGetExamples = `  # The stages
  kubectl strata platform get edge

  # With a line for each cluster
  kubectl strata platform get edge --clusters`

const platformPlanLong = `Show what the controller would do for a Platform now, and write nothing: which
clusters go to which version, over which others, in which stage; which layers
are created, changed and deleted, in order; and what waits for what.

It is decided by the rules of the controller from bundles, catalogue, clusters,
layers and ConfigMaps as they are. What comes later, such as the second of two
versions or the next stage, follows from how the first turns out, and is not
foretold. --at decides for another moment, with everything else as it is now.
ConfigMaps of inputsFrom must be readable; without the right to read one the
plan says so and is of a Platform that waits for it.

Exit codes:
  0  nothing would be done
  1  it cannot be said
  2  something would be done`

const platformPlanExamples = `  # What is about to happen
  kubectl strata platform plan edge

  # What another version would do
  kubectl strata platform plan edge --version 1.1.0

  # On Saturday night, when the window is open
  kubectl strata platform plan edge --version 1.1.0 --at 2026-12-05T23:00:00Z`

const platformApproveLong = `Approve a stage of a roll-out for the version that it goes to, which is put into
the annotation ` + v1alpha1.ApproveAnnotation + ` of the Platform, beside what is there. Other
versions need approval of their own. A stage that others come before can be
approved ahead; it begins when they are done.

Nothing is asked. What is approved is said: the version, and the clusters that
may begin.

Exit codes:
  0  it is approved
  1  it is not: there is no such stage, or nothing of it waits for approval`

const platformApproveExamples = `  # Let production begin
  kubectl strata platform approve edge --stage production --reason "canary was well over night"`

func newPlatform(t *tool) *cobra.Command {
	return group(
		"platform",
		"Show Platforms and their roll-outs, plan them, approve stages",
		platformLong,
		newPlatformList(t),
		newPlatformGet(t),
		newPlatformPlan(t),
		newPlatformApprove(t),
	)
}

func newPlatformList(t *tool) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use: "list", Short: "Show all Platforms", Long: platformListLong, Example: platformListExamples, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return t.platformList(command.Context(), output) },
	}
	console.OutputFlag(command, &output, "json", "yaml", "name")
	return command
}

func (t *tool) platformList(ctx context.Context, output string) error {
	p, err := t.platforms(ctx)
	if err != nil {
		return err
	}
	all, names := []platforms.Standing{}, []string{}
	for _, platform := range p.World.Platforms {
		standing := platforms.Of(p.Observe(ctx, platform, p.World.Now))
		standing.Clusters = []platforms.Cluster{} // which only get shows
		all, names = append(all, standing), append(names, platform.Name)
	}
	switch output {
	case "name":
		err = t.PrintNames(snapshot.Platforms, names)
	case "json", "yaml":
		err = t.PrintAs(output, all)
	default:
		columns := console.Columns("NAME", "BUNDLE:5", "VERSION:2", "READY", "CLUSTERS:1", "FAILED:4", "AWAY:6", "STAGE:3", "WHY")
		columns[3].Role = roleOfState
		err = t.Table(columns, printing.PlatformRows(all), "No Platforms found.")
	}
	if err == nil && slices.ContainsFunc(all, platforms.Standing.Blocked) {
		return console.ErrBlocked
	}
	return err
}

func newPlatformGet(t *tool) *cobra.Command {
	var output string
	var withClusters bool
	command := &cobra.Command{
		Use: "get NAME", Short: "Show a Platform and the stages of its roll-out", Long: platformGetLong, Example: platformGetExamples, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return t.platformGet(command.Context(), args[0], withClusters, output)
		},
	}
	command.Flags().BoolVar(&withClusters, "clusters", false, "show a line for each cluster")
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}

func (t *tool) platformGet(ctx context.Context, name string, withClusters bool, output string) error {
	p, err := t.platforms(ctx)
	if err != nil {
		return err
	}
	platform, err := platformNamed(p, name)
	if err != nil {
		return err
	}
	standing := platforms.Of(p.Observe(ctx, platform, p.World.Now))
	t.tellMissing(p)
	if output != "" {
		err = t.PrintAs(output, standing)
	} else {
		err = t.printStanding(standing, withClusters)
	}
	if err == nil && standing.Blocked() {
		return console.ErrBlocked
	}
	return err
}

func (t *tool) printStanding(s platforms.Standing, withClusters bool) error {
	t.Field("Platform", s.Name)
	t.Field("Bundle", s.Family)
	t.Field("Version", s.Target())
	t.Field("Available", s.Available)
	t.Field("Ready", s.Ready+": "+s.Why)
	t.Field("Clusters", fmt.Sprintf("%d of %d up to date, %d under way, %d waiting, %d failed, %d away",
		s.Counts.Ready, s.Counts.Total, s.Counts.Progressing, s.Counts.Waiting, s.Counts.Failed, s.Counts.Unreachable))
	t.Field("Layers", fmt.Sprintf("%d of %d deployed", s.Deployed, s.Layers))
	if s.Next != nil {
		t.Field("Next change", s.Next.UTC().Format(time.RFC3339))
	}
	for _, approval := range s.Approvals {
		t.Field("Approved", strings.Join(slices.DeleteFunc([]string{
			approval.Approval, approval.Seen.UTC().Format(time.RFC3339), approval.By, approval.Reason,
		}, func(text string) bool { return text == "" }), ", "))
	}
	if err := t.printStages(printing.StageRows(s.Stages)); err != nil {
		return err
	}
	if len(s.Lock) > 0 {
		rows := [][]string{}
		for _, app := range s.Lock {
			rows = append(rows, []string{app.Name, app.Version, app.Why})
		}
		console.Say(t.Out, "")
		if err := t.Screen.Table(t.Out, console.Columns("PICKED", "VERSION", "WHY"), rows); err != nil {
			return err
		}
	}
	if len(s.Worst) > 0 {
		rows := [][]string{}
		for _, trouble := range s.Worst {
			cluster := trouble.Cluster
			if cluster == "" {
				cluster = fleet.Home
			}
			rows = append(rows, []string{cluster, trouble.Stage, trouble.Reason})
		}
		console.Say(t.Out, "")
		if err := t.Screen.Table(t.Out, console.Columns("WORST OFF", "STAGE:1", "WHY"), rows); err != nil {
			return err
		}
	}
	if !withClusters {
		return nil
	}
	console.Say(t.Out, "")
	return t.printClusters(s.Clusters)
}

func (t *tool) printStages(rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	console.Say(t.Out, "")
	return t.Screen.Table(
		t.Out,
		console.Columns("STAGE", "STATE", "CLUSTERS:1", "DONE:2", "MOVING:5", "FAILED:3", "WAITING:4", "AWAY:6", "SOAK:7", "WAITS FOR"),
		rows,
	)
}

func (t *tool) printClusters(all []platforms.Cluster) error {
	return t.Table(console.Columns("CLUSTER", "STAGE:2", "STATE", "VERSIONS:1", "LAYERS:3", "WHY"), printing.ClusterRows(all), "No clusters are meant.")
}

func newPlatformPlan(t *tool) *cobra.Command {
	var output, version, at string
	command := &cobra.Command{
		Use: "plan NAME", Short: "Show what would be done for a Platform", Long: platformPlanLong, Example: platformPlanExamples, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			moment := t.Now()
			if at != "" {
				var err error
				if moment, err = time.Parse(time.RFC3339, at); err != nil {
					return fmt.Errorf("--at is %q: it must be a time such as 2026-12-05T23:00:00Z", at)
				}
			}
			return t.platformPlan(command.Context(), args[0], version, moment, output)
		},
	}
	command.Flags().StringVar(&version, "version", "", "as if spec.bundle.version were this version, or range of versions")
	command.Flags().StringVar(&at, "at", "", "as if it were this time, such as 2026-12-05T23:00:00Z")
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}

func (t *tool) platformPlan(ctx context.Context, name, version string, at time.Time, output string) error {
	p, err := t.platforms(ctx)
	if err != nil {
		return err
	}
	platform, err := platformNamed(p, name)
	if err != nil {
		return err
	}
	if version != "" {
		if platform.Spec.Bundle == nil {
			return fmt.Errorf("platform %s has no bundle that could have a version", name)
		}
		platform = platform.DeepCopy()
		platform.Spec.Bundle.Version = version
	}
	plan := platforms.PlanOf(p.Observe(ctx, platform, at), p.Missing)
	if output != "" {
		err = t.PrintAs(output, plan)
	} else {
		err = t.printPlatformPlan(plan)
	}
	if err == nil && plan.Changes() {
		return console.ErrDiffers
	}
	return err
}

func (t *tool) printPlatformPlan(plan platforms.Plan) error {
	t.Field("Platform", plan.Name)
	t.Field("Bundle", strings.TrimSpace(plan.Family+" "+plan.Target))
	t.Field("At", plan.At.UTC().Format(time.RFC3339))
	t.Field("Read", fmt.Sprintf("%d bundles, %d applications, %d clusters, %d layers, %d ConfigMaps",
		plan.Read.Bundles, plan.Read.Applications, plan.Read.Clusters, plan.Read.Layers, plan.Read.ConfigMaps))
	for _, missing := range plan.Missing {
		t.Field("Not read", missing)
	}
	t.Field("Would say", plan.Ready+": "+plan.Why)
	if plan.Next != nil {
		t.Field("Looks again", plan.Next.UTC().Format(time.RFC3339))
	}
	if err := t.printStages(printing.StageRows(plan.Stages)); err != nil {
		return err
	}
	console.Say(t.Out, "")
	if err := t.printClusters(plan.Clusters); err != nil {
		return err
	}
	if len(plan.Lock) > 0 {
		rows := [][]string{}
		for _, app := range plan.Lock {
			rows = append(rows, []string{app.Name, app.Version, app.Why})
		}
		console.Say(t.Out, "")
		if err := t.Screen.Table(t.Out, console.Columns("PICKS", "VERSION", "WHY"), rows); err != nil {
			return err
		}
	}
	console.Say(t.Out, "")
	return t.Table(
		console.Columns("ORDER:4", "ACTION", "LAYER", "CLUSTER:3", "VERSION:1", "AFTER:2", "NOTE"),
		printing.PlatformPlanRows(plan),
		"No layer would be written or deleted.",
	)
}

func newPlatformApprove(t *tool) *cobra.Command {
	var output, stage, reason string
	command := &cobra.Command{
		Use:     "approve NAME --stage STAGE",
		Short:   "Approve a stage of a roll-out",
		Long:    platformApproveLong,
		Example: platformApproveExamples,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if stage == "" {
				return errors.New("--stage is missing: kubectl strata platform get " + args[0] + " shows the stages")
			}
			return t.platformApprove(command.Context(), args[0], stage, reason, output)
		},
	}
	command.Flags().StringVar(&stage, "stage", "", "the stage that may begin (required)")
	command.Flags().StringVar(&reason, "reason", "", "why, which is put into the annotation "+v1alpha1.ApproveReasonAnnotation)
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}
