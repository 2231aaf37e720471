// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

const docsBegin = `# The plug-in

` + "`kubectl strata`" + ` sees what Strata keeps in a cluster, and acts on it.
It asks the API server alone, with your own rights, and needs nothing else in the cluster.
[install.md](install.md) says how to get it. This page is written from the commands themselves.

`

// newDocs returns the command that writes docs/cli.md.
func newDocs(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: "docs", Short: "Write the reference of all commands", Hidden: true, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			root := command.Root()
			text := &strings.Builder{}
			text.WriteString(docsBegin)
			fmt.Fprintf(text, "%s\n\n| command | does |\n|---|---|\n", root.Long)
			all := withBelow(shown(root))
			for _, each := range all {
				name := nameBelow(root, each)
				fmt.Fprintf(text, "| [`%s`](#%s) | %s |\n", name, strings.ReplaceAll(name, " ", "-"), each.Short)
			}
			for _, each := range all {
				describe(text, root, each)
			}
			fmt.Fprintf(text, "\n## Flags of all commands\n\n%s", indented(root.PersistentFlags().FlagUsages()))
			_, err := io.WriteString(out, text.String())
			return err
		},
	}
}

// shown returns the commands that help lists.
func shown(root *cobra.Command) []*cobra.Command {
	var found []*cobra.Command
	for _, each := range root.Commands() {
		if each.IsAvailableCommand() {
			found = append(found, each)
		}
	}
	return found
}

// withBelow returns commands with those below them; of the scripts for shells, which
// cobra explains, only the one that has them.
func withBelow(commands []*cobra.Command) []*cobra.Command {
	var found []*cobra.Command
	for _, each := range commands {
		found = append(found, each)
		if each.Name() != "completion" {
			found = append(found, withBelow(shown(each))...)
		}
	}
	return found
}

// nameBelow returns a command's name as it follows that of the plug-in.
func nameBelow(root, command *cobra.Command) string {
	return strings.TrimPrefix(command.CommandPath(), root.CommandPath()+" ")
}

func describe(text *strings.Builder, root, command *cobra.Command) {
	fmt.Fprintf(text, "\n## %s\n\n    %s\n\n", nameBelow(root, command), command.UseLine())
	if command.Long == "" {
		fmt.Fprintf(text, "%s.\n", command.Short)
	} else {
		fmt.Fprintf(text, "%s\n", withTables(command.Long))
	}
	if command.Example != "" {
		fmt.Fprintf(text, "\nExamples:\n\n%s", indented(command.Example+"\n"))
	}
	if flags := command.LocalNonPersistentFlags(); flags.HasAvailableFlags() {
		fmt.Fprintf(text, "\nFlags:\n\n%s", indented(flags.FlagUsages()))
	}
}

// withTables makes blocks of the lines of a text that begin with two spaces.
func withTables(text string) string {
	var lines []string
	within := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		is := strings.HasPrefix(line, "  ")
		if is && !within && len(lines) > 0 && lines[len(lines)-1] != "" {
			lines = append(lines, "")
		}
		if within = is; is {
			line = "  " + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// indented makes a block of a text as Markdown has it.
func indented(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \n"); line != "" {
			line = "    " + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n") + "\n"
}
