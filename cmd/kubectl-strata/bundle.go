// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/answers/bundles"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/near"
)

const bundleLong = `Show ApplicationBundles: what is in them, where they are, how one leads to
another, and what differs.

A bundle is named by its name, or as FAMILY@VERSION.`

const bundleListExamples = `  # All bundles
  kubectl strata bundle list

  # Their names, for other commands
  kubectl strata bundle list -o name`

const bundleGetLong = `Show a bundle: its layers in the order in which they are deployed, with their
applications, conditions and hooks, the inputs that it asks for, from which
versions it is entered, and the Platforms and clusters that have it.

Where it is installed is counted by layers: deployed of all.

Exit codes:
  0  fine
  1  it cannot be shown, or does not exist
  2  it cannot be installed any more: it is withdrawn, past its end of life, or
     something is wrong with it`

const bundleGetExamples = `  # By its name, or by family and version
  kubectl strata bundle get base-1.1.0
  kubectl strata bundle get base@1.1.0

  # For other programs
  kubectl strata bundle get base@1.1.0 -o json`

const bundlePathsLong = `Show the ways from one version of a family to another that a Platform would go
which names the latter exactly, those with the fewest hops first; and why a
cluster cannot go there at once. A version is gone to only from those that its
upgradesFrom takes; withdrawn versions, previews and those that cannot be
installed are not gone over.

Without --from and --to it is all versions to the newest one that can be
installed; with one of them, all from or to that one.

Platforms do not look at Kubernetes versions to choose a way: the layers of a
version that is for another one wait. With --kubernetes such ways are shown as
blocked.

Exit codes:
  0  there is a way, for each that is shown
  1  it cannot be shown, or there is no such family or version
  2  there is none, for one that is shown`

const bundlePathsExamples = `  # How everybody gets to the newest version
  kubectl strata bundle paths base

  # From one version to another, on clusters with Kubernetes 1.34
  kubectl strata bundle paths base --from 1.0.0 --to 1.2.0 --kubernetes 1.34`

const bundleDiffLong = `Show what differs between two bundles: layers, applications with their charts,
values by their paths, objects, inputs, gates and hooks. An application that is
in another layer now has moved.

Values whose path looks secret, and Secrets, are not shown, only that they
differ. Templates are compared as they are written.

Exit codes:
  0  nothing differs
  1  it cannot be said
  2  something differs`

const bundleDiffExamples = `  # What a new version changes
  kubectl strata bundle diff base@1.0.0 base@1.1.0

  # For the description of a pull request
  kubectl strata bundle diff base@1.0.0 base@1.1.0 -o markdown`

const whereBundles = "where bundles are installed, and what is wrong with them, is shown as far as that goes"

func newBundle(t *tool) *cobra.Command {
	return group(
		"bundle",
		"Show bundles, the ways between them, and what differs",
		bundleLong,
		newBundleList(t),
		newBundleGet(t),
		newBundlePaths(t),
		newBundleDiff(t),
	)
}

func newBundleList(t *tool) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use: "list", Short: "Show all bundles", Long: "Show all bundles, by family, the newest version first.\n\nExit codes:\n  0  fine\n  1  they cannot be shown",
		Example: bundleListExamples, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return t.bundleList(command.Context(), output) },
	}
	console.OutputFlag(command, &output, "json", "yaml", "name")
	return command
}

func (t *tool) bundleList(ctx context.Context, output string) error {
	w, _, err := t.world(ctx, snapshot.Bundles, whereBundles)
	if err != nil {
		return err
	}
	all := bundles.All(w)
	switch output {
	case "name":
		names := make([]string, 0, len(all))
		for _, bundle := range all {
			names = append(names, bundle.Name)
		}
		return t.PrintNames(snapshot.Bundles, names)
	case "json", "yaml":
		return t.PrintAs(output, all)
	}
	columns := console.Columns("NAME", "FAMILY:6", "VERSION:2", "KUBERNETES:4", "UPGRADES FROM:5", "END OF LIFE:3", "PLATFORMS:7", "CLUSTERS:1", "NOTE")
	return t.Table(columns, printing.BundleRows(all, w.Now), "No ApplicationBundles found.")
}

func newBundleGet(t *tool) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use: "get NAME", Short: "Show what is in a bundle, and where it is", Long: bundleGetLong, Example: bundleGetExamples, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return t.bundleGet(command.Context(), args[0], output)
		},
	}
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}

func (t *tool) bundleGet(ctx context.Context, name, output string) error {
	w, _, err := t.world(ctx, snapshot.Bundles, whereBundles)
	if err != nil {
		return err
	}
	found := w.FindBundle(name)
	if found == nil {
		return console.NoSuch(snapshot.Bundles, name, w.BundleNames())
	}
	bundle := bundles.Of(w, found)
	if output != "" {
		err = t.PrintAs(output, bundle)
	} else {
		err = t.printBundle(bundle)
	}
	if err == nil && (bundle.Withdrawn != "" || bundle.Ended || len(bundle.Problems) > 0) {
		return console.ErrBlocked
	}
	return err
}

func (t *tool) printBundle(b bundles.Bundle) error {
	t.Field("Bundle", fmt.Sprintf("%s, version %s of %s", b.Name, b.Version, b.Family))
	t.Field("Description", b.Description)
	t.Field("Kubernetes", b.KubeVersion)
	from := "none, it can only be installed afresh"
	if len(b.UpgradesFrom) > 0 {
		from = strings.Join(b.UpgradesFrom, " or ")
	}
	t.Field("Entered from", from)
	if b.EndOfLife != nil {
		t.Field("End of life", b.EndOfLife.UTC().Format("2006-01-02")+yes(b.Ended, " (past)"))
	}
	t.Field("Note", b.Note())
	console.Say(t.Out, "")
	columns := console.Columns("LAYER", "AFTER:2", "APPLICATION", "VERSION:1", "CHART:3", "NOTE")
	if err := t.Screen.Table(t.Out, columns, printing.BundleLayerRows(b)); err != nil {
		return err
	}
	if len(b.Inputs) > 0 {
		rows := [][]string{}
		for _, input := range b.Inputs {
			rows = append(rows, []string{input.Name, input.Type, yes(input.Required, "required"), input.Default, strings.Join(input.Enum, ", "), input.Description})
		}
		console.Say(t.Out, "")
		if err := t.Screen.Table(t.Out, console.Columns("INPUT", "TYPE:2", "REQUIRED:1", "DEFAULT:3", "ONE OF:4", "DESCRIPTION"), rows); err != nil {
			return err
		}
	}
	console.Say(t.Out, "")
	rows := [][]string{}
	for _, on := range b.Installed {
		rows = append(rows, []string{on.Platform, on.Cluster, fmt.Sprintf("%d/%d", on.Deployed, on.Layers)})
	}
	return t.Table(console.Columns("PLATFORM", "CLUSTER", "LAYERS"), rows, "It is installed nowhere.")
}

func newBundlePaths(t *tool) *cobra.Command {
	var output string
	var route bundles.Route
	command := &cobra.Command{
		Use: "paths FAMILY", Short: "Show the ways from version to version", Long: bundlePathsLong, Example: bundlePathsExamples, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return t.bundlePaths(command.Context(), args[0], route, output)
		},
	}
	command.Flags().StringVar(&route.From, "from", "", "the version that a cluster is at")
	command.Flags().StringVar(&route.To, "to", "", "the version to go to")
	command.Flags().StringVar(&route.Kubernetes, "kubernetes", "", "the version of Kubernetes that the clusters have, such as 1.34")
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}

func (t *tool) bundlePaths(ctx context.Context, family string, route bundles.Route, output string) error {
	w, _, err := t.world(ctx, snapshot.Bundles, "what can be installed is known as far as that goes")
	if err != nil {
		return err
	}
	if !slices.Contains(w.Families(), family) {
		if meant := near.Near(family, w.Families()); len(meant) > 0 {
			return fmt.Errorf("there is no family %s of bundles; did you mean %s?", family, strings.Join(meant, " or "))
		}
		return fmt.Errorf("there is no family %s of bundles; kubectl strata bundle list lists those there are", family)
	}
	paths, err := bundles.Paths(w, family, route)
	if err != nil {
		return err
	}
	if output != "" {
		err = t.PrintAs(output, paths)
	} else {
		rows := [][]string{}
		for _, path := range paths {
			rows = append(rows, []string{path.String(), fmt.Sprint(len(path.Hops)), path.Why()})
		}
		err = t.Table(console.Columns("PATH", "HOPS:1", "WHY"), rows, "There are no two versions to go between.")
	}
	if err == nil && slices.ContainsFunc(paths, func(p bundles.Path) bool { return p.Blocked != "" }) {
		return console.ErrBlocked
	}
	return err
}

func newBundleDiff(t *tool) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use: "diff A B", Short: "Show what differs between two bundles", Long: bundleDiffLong, Example: bundleDiffExamples, Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			return t.bundleDiff(command.Context(), args[0], args[1], output)
		},
	}
	console.OutputFlag(command, &output, "json", "yaml", "markdown")
	return command
}

func (t *tool) bundleDiff(ctx context.Context, a, b, output string) error {
	w, _, err := t.world(ctx, snapshot.Bundles, "charts are named as far as that goes")
	if err != nil {
		return err
	}
	from, to := w.FindBundle(a), w.FindBundle(b)
	switch {
	case from == nil:
		return console.NoSuch(snapshot.Bundles, a, w.BundleNames())
	case to == nil:
		return console.NoSuch(snapshot.Bundles, b, w.BundleNames())
	}
	changes := bundles.Diff(w, from, to)
	switch output {
	case "json", "yaml":
		err = t.PrintAs(output, changes)
	case "markdown":
		_, err = fmt.Fprint(t.Out, printing.ChangesMarkdown(from.Name, to.Name, changes))
	default:
		err = t.Table(console.Columns("LAYER:1", "CHANGE", "WHAT", "FROM -> TO"), printing.ChangeRows(changes), "Nothing differs.")
	}
	if err == nil && len(changes) > 0 {
		return console.ErrDiffers
	}
	return err
}
