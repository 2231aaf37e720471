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

` + "`kubectl strata`" + ` sees what Strata keeps in a cluster, and acts on it. It asks the API server alone, with your own rights, and needs nothing else in the cluster. [install.md](install.md) says how to get it. This page is written from the commands themselves.

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
			for _, each := range shown(root) {
				fmt.Fprintf(text, "| [`%s`](#%s) | %s |\n", each.Name(), each.Name(), each.Short)
			}
			for _, each := range shown(root) {
				describe(text, each)
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

func describe(text *strings.Builder, command *cobra.Command) {
	fmt.Fprintf(text, "\n## %s\n\n    kubectl strata %s [flags]\n\n", command.Name(), command.Use)
	if command.Long == "" {
		fmt.Fprintf(text, "%s.\n", command.Short)
	} else {
		fmt.Fprintf(text, "%s\n", withTables(command.Long))
	}
	fmt.Fprintf(text, "\nExamples:\n\n%s\nFlags:\n\n%s", indented(command.Example+"\n"), indented(command.LocalNonPersistentFlags().FlagUsages()))
}

// withTables makes blocks of the lines of a text that begin with two spaces.
func withTables(text string) string {
	var lines []string
	within := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		is := strings.HasPrefix(line, "  ")
		if is && !within {
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
