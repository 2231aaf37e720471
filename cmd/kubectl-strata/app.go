// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/answers/applications"
	"github.com/strata-project/strata/internal/answers/fleet"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

const appLong = `Show the applications of the catalogue, which versions of them are in use, and
where.`

const appListLong = `Show the applications of the catalogue: a line for each version that layers
have, and one for each application that none has.

NEWEST is the newest version that anybody may be given: no preview, not
withdrawn, and not past its end of life. TESTED is the newest one in a bundle
that may be installed. END OF LIFE is that of the version in use. BUNDLES
counts the bundles that have the version, CLUSTERS the clusters whose layers
are made of one of them, at the version that they are sent to. NOTE says why
another version should take its place.

Releases that did not come from a bundle are not looked into.

Exit codes:
  0  fine
  1  it cannot be shown
  2  with --outdated or --eol: there is such a version`

const appListExamples = `  # All applications
  kubectl strata app list

  # What is in use and should be another version, with the layers
  kubectl strata app list --outdated -o wide

  # In CI: fail where something in use has less than 90 days to live
  kubectl strata app list --eol 90d`

const appGetLong = `Show an application of the catalogue: its versions with charts, ranges of
Kubernetes versions, dependencies and recommendations, the bundles that have
them, and the Platforms and clusters that these are on.

Exit codes:
  0  fine
  1  it cannot be shown, or does not exist`

const appGetExamples = `  # All about one application
  kubectl strata app get cert-manager

  # For other programs
  kubectl strata app get cert-manager -o json`

func newApp(t *tool) *cobra.Command {
	return group("app", "Show the applications of the catalogue", appLong, newAppList(t), newAppGet(t))
}

func newAppList(t *tool) *cobra.Command {
	var output, life string
	var filter applications.Filter
	command := &cobra.Command{
		Use: "list", Short: "Show applications, and which versions of them are where", Long: appListLong, Example: appListExamples, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if life != "" {
				var err error
				if filter.EndOfLife, err = applications.Days(life); err != nil {
					return fmt.Errorf("--eol: %w", err)
				}
			}
			return t.appList(command.Context(), filter, output)
		},
	}
	command.Flags().BoolVar(&filter.Outdated, "outdated", false, "show what is in use and should be another version")
	command.Flags().StringVar(&life, "eol", "", "show what is in use and is past its end of life, or will be within this time, such as 90d")
	console.OutputFlag(command, &output, "wide", "json", "yaml", "name")
	return command
}

func (t *tool) appList(ctx context.Context, filter applications.Filter, output string) error {
	w, _, err := t.world(ctx, snapshot.Applications, "where applications are in use is shown as far as that goes")
	if err != nil {
		return err
	}
	apps := applications.Filtered(applications.Of(w), filter, w.Now)
	if err := t.printApps(apps, w, output); err != nil {
		return err
	}
	if filter.Some() && len(apps) > 0 {
		return console.ErrDiffers
	}
	return nil
}

func (t *tool) printApps(apps []applications.App, w fleet.World, output string) error {
	switch output {
	case "json", "yaml":
		return t.PrintAs(output, apps)
	case "name":
		names := make([]string, 0, len(apps))
		for _, app := range apps {
			names = append(names, app.Name)
		}
		return t.PrintNames(snapshot.Applications, names)
	}
	columns := console.Columns("NAME", "VERSION", "NEWEST:1", "TESTED:4", "END OF LIFE:3", "BUNDLES:6", "PLATFORMS:5", "CLUSTERS:2", "LAYERS:7", "NOTE")
	rows := printing.AppRows(apps, w.Now)
	if output != "wide" {
		columns, rows = console.Without(columns, rows, "PLATFORMS", "LAYERS")
	}
	none := "No HelmApplications found."
	if len(w.Applications) > 0 {
		none = "No version in use is like that."
	}
	return t.Table(columns, rows, none)
}

func newAppGet(t *tool) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use: "get NAME", Short: "Show an application with its versions, and who uses which", Long: appGetLong, Example: appGetExamples, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return t.appGet(command.Context(), args[0], output)
		},
	}
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}

func (t *tool) appGet(ctx context.Context, name, output string) error {
	w, _, err := t.world(ctx, snapshot.Applications, "where the application is in use is shown as far as that goes")
	if err != nil {
		return err
	}
	var names []string
	for _, app := range applications.Of(w) {
		if app.Name != name {
			names = append(names, app.Name)
			continue
		}
		if output != "" {
			return t.PrintAs(output, app)
		}
		t.Field("Application", app.Name)
		t.Field("Description", app.Description)
		t.Field("Newest", orDash(app.Newest))
		t.Field("Tested", orDash(app.Tested))
		for _, problem := range app.Problems {
			t.Field("Problem", problem)
		}
		console.Say(t.Out, "")
		columns := console.Columns("VERSION", "CHART:6", "KUBERNETES:3", "END OF LIFE:1", "NEEDS:4", "RECOMMENDS:8", "BUNDLES:5", "PLATFORMS:7", "CLUSTERS:2", "NOTE")
		return t.Screen.Table(t.Out, columns, printing.VersionRows(app, w.Now))
	}
	return console.NoSuch(snapshot.Applications, name, names)
}
