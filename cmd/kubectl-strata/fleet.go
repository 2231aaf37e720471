// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/internal/answers/fleet"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

// addFleet adds the commands about what there is to install, and where it is.
func addFleet(root *cobra.Command, t *tool) {
	for _, command := range root.Commands() {
		if command.Name() == "clusters" {
			addClusterCommands(t, command)
		}
	}
	root.AddCommand(newApp(t), newBundle(t), newPlatform(t), newCapability(t), newDeprovision(t))
}

// group returns a command that only has others.
func group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(commands...)
	return command
}

// world reads a management cluster. Without the first part there is nothing to say;
// what is missing of the others is told.
func (t *tool) world(ctx context.Context, needed snapshot.Part, meaning string) (fleet.World, *snapshot.Snapshot, error) {
	w, s, err := t.Cluster.Fleet(ctx, needed)
	if err == nil {
		t.WarnUnread(s, meaning)
	}
	return w, s, err
}

// yes says a boolean in a word.
func yes(is bool, word string) string {
	if is {
		return word
	}
	return ""
}

// orDash returns a text, or a dash where there is none.
func orDash(text string) string { return cmp.Or(text, "-") }
