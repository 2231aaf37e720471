// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-strata is the plug-in kubectl strata. It asks the API server, and
// needs no server of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/fromhosts"
	"github.com/strata-project/strata/cmd/kubectl-strata/imports"
	"github.com/strata-project/strata/cmd/kubectl-strata/setup"
	"github.com/strata-project/strata/internal/address"
)

// What the linker sets.
var (
	// version is that of the plug-in.
	version = "dev"
	// image is that of the controller of the same release, as HOST/PATH@sha256:HEX, and
	// hostsImage that of the controller of hosts; empty where the plug-in was built by hand.
	image, hostsImage string
	// registry is where the charts of other releases are, as oci://HOST/PATH; may be empty.
	registry string
)

// Exit codes, the same for all commands.
const (
	exitFine    = 0
	exitError   = 1
	exitBlocked = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := runAs(ctx, os.Args[0], os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs a command line and returns the exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	return newTool(out, errOut).run(ctx, args)
}

func (t *tool) run(ctx context.Context, args []string) int {
	command := newCommand(t)
	command.SetArgs(args)
	command.SetOut(renamed(t.Out))
	command.SetErr(t.ErrOut)
	err := command.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, console.ErrBlocked), errors.Is(err, console.ErrDiffers):
		return exitBlocked
	default:
		fmt.Fprintf(t.ErrOut, "kubectl strata: %v\n", address.Error(err))
		return exitError
	}
}

func newCommand(t *tool) *cobra.Command {
	flags, out := t.Flags, t.Out
	root := &cobra.Command{
		Use:   file(),
		Short: "See the layers of add-ons in a cluster, and act on them",
		Long: `See the layers of add-ons that Strata keeps in a cluster, and act on them.

Commands that show something only read. All of them exit with 0 when all is
well, with 1 when they cannot say or do what was asked, and with 2 when
something differs, is blocked or has failed.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: program},
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	flags.AddFlags(root.PersistentFlags())
	root.AddCommand(newGet(t), newClusters(t), newHistory(t), newWait(t, out),
		newHold(t, out), newResume(t, out), newReconcile(t, out), newRollback(t), newVersion(t, out), newDocs(out))
	root.AddCommand(newPlan(t), newDiff(t))
	root.AddCommand(seeCommands(t)...)
	addFleet(root, t)
	root.AddCommand(canUpgradeCommands(t)...)
	root.AddCommand(imports.Commands(t.Console)...)
	root.AddCommand(lintCommands(t)...)
	build := setup.Build{Version: version, Image: image, HostsImage: hostsImage, Registry: registry}
	root.AddCommand(newGraph(t), fromhosts.Commands(t.Console, build))
	root.AddCommand(setup.Commands(t.Console, build)...)
	t.addHelp(root)
	t.complete(root)
	sayWhatIsMeant(root)
	return root
}

// sayWhatIsMeant has a command, and all below it, say of words that it does not take how it
// is written, and of a mistyped command which may be meant.
func sayWhatIsMeant(command *cobra.Command) {
	for _, below := range command.Commands() {
		sayWhatIsMeant(below)
	}
	takes := command.Args
	if takes == nil {
		return
	}
	command.Args = func(command *cobra.Command, args []string) error {
		err := takes(command, args)
		written := program + strings.TrimPrefix(strings.TrimPrefix(command.UseLine(), program), file())
		switch {
		case err == nil:
			return nil
		case len(args) > 0 && command.HasAvailableSubCommands():
			if command.SuggestionsMinimumDistance <= 0 {
				command.SuggestionsMinimumDistance = 2
			}
			if meant := command.SuggestionsFor(args[0]); len(meant) > 0 {
				return fmt.Errorf("there is no command %s; did you mean %s?", args[0], strings.Join(meant, ", or "))
			}
			return fmt.Errorf("there is no command %s: %s --help lists those that there are", args[0], command.CommandPath())
		case len(args) == 0:
			return fmt.Errorf("it is not said what is meant: write %s", written)
		default:
			return fmt.Errorf("%w: write %s", err, written)
		}
	}
}
