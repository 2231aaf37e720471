// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/strata-project/strata/internal/terminal"
)

// mostExamples is how many examples -h shows.
const mostExamples = 2

// addHelp has -h say of every command what fits a screen, and the command help all there
// is to say. The flags by which kubectl finds the cluster are those of all commands, and
// listed by the command options alone, as kubectl does it.
func (t *tool) addHelp(root *cobra.Command) {
	options := &cobra.Command{
		Use: "options", Short: "List the flags that all commands have", Args: cobra.NoArgs,
		Run: func(command *cobra.Command, _ []string) {
			fmt.Fprintf(command.OutOrStdout(), "These flags can be given to every command:\n\n%s", t.flagLines(root.PersistentFlags(), false))
		},
	}
	help := &cobra.Command{
		Use: "help [COMMAND...]", Short: "Say all there is to say about a command",
		RunE: func(command *cobra.Command, args []string) error {
			found, left, err := root.Find(args)
			if err != nil || len(left) > 0 {
				return fmt.Errorf("there is no command %s: %s --help lists those that there are", strings.Join(args, " "), root.CommandPath())
			}
			fmt.Fprint(command.OutOrStdout(), t.helpOf(found, true))
			return nil
		},
	}
	root.AddCommand(options)
	root.SetHelpCommand(help)
	root.SetHelpFunc(func(command *cobra.Command, _ []string) { fmt.Fprint(command.OutOrStdout(), t.helpOf(command, false)) })
}

// helpOf is what is said of a command, all of it or what fits a screen.
func (t *tool) helpOf(command *cobra.Command, whole bool) string {
	text := &strings.Builder{}
	said := command.Long
	if said == "" {
		said = command.Short + "."
	}
	examples := command.Example
	if !whole {
		said, _, _ = strings.Cut(said, "\n\n")
		examples = firstExamples(examples)
	}
	fmt.Fprintf(text, "%s\n\nUsage:\n", strings.TrimRight(said, "\n"))
	if command.Runnable() && command.HasParent() {
		fmt.Fprintf(text, "  %s\n", command.UseLine())
	}
	if command.HasAvailableSubCommands() {
		fmt.Fprintf(text, "  %s [command]\n", command.CommandPath())
	}
	if whole && len(command.Aliases) > 0 {
		fmt.Fprintf(text, "\nAliases:\n  %s\n", command.NameAndAliases())
	}
	if examples != "" {
		fmt.Fprintf(text, "\nExamples:\n%s\n", examples)
	}
	if command.HasAvailableSubCommands() {
		text.WriteString("\nCommands:\n")
		for _, each := range command.Commands() {
			if each.IsAvailableCommand() {
				fmt.Fprintf(text, "  %-11s %s\n", each.Name(), each.Short)
			}
		}
	}
	if flags := command.LocalNonPersistentFlags(); command.HasParent() && flags.HasAvailableFlags() {
		fmt.Fprintf(text, "\nFlags:\n%s", t.flagLines(flags, !whole))
	}
	text.WriteString(t.more(command, whole))
	return text.String()
}

// more says where there is more.
func (t *tool) more(command *cobra.Command, whole bool) string {
	var hints []string
	if !whole && command.Long != "" && command.HasParent() {
		hints = append(hints, fmt.Sprintf("%s help %s says more.", program, nameBelow(command.Root(), command)))
	}
	if command == command.Root() {
		return "\n" + program + " COMMAND -h says how a command is used, and options which flags all have.\n"
	}
	if command.HasAvailableSubCommands() {
		hints = append(hints, command.CommandPath()+" COMMAND -h says how a command is used.")
	}
	hints = append(hints, program+" options lists the flags of all commands.")
	return "\n" + strings.Join(hints, "\n") + "\n"
}

// flagLines lists flags, each on a line of its own where they are to fit a screen.
func (t *tool) flagLines(flags *pflag.FlagSet, brief bool) string {
	if !brief {
		return flags.FlagUsagesWrapped(t.Screen.Width)
	}
	lines := strings.Builder{}
	for line := range strings.Lines(flags.FlagUsages()) {
		lines.WriteString(terminal.Brief(strings.TrimRight(line, "\n"), t.Screen.Width) + "\n")
	}
	return lines.String()
}

// firstExamples returns the first ones of the examples of a command, each of which
// begins with a comment.
func firstExamples(examples string) string {
	var shown []string
	for i, example := range strings.Split(examples, "\n\n") {
		if i < mostExamples {
			shown = append(shown, strings.TrimRight(example, "\n"))
		}
	}
	return strings.Join(shown, "\n")
}
