// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package console is what every command of the plug-in works with: the cluster that
// flags name, the terminal, and what is said about errors.
package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/releases"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/near"
	"github.com/strata-project/strata/internal/terminal"
)

// ErrDiffers ends a command that has worked, and found that something differs, or
// would change. What there is to say has been printed.
var ErrDiffers = errors.New("something differs")

// ErrBlocked ends a command that has worked, and found a layer that is blocked
// or failed, or a cluster that is not ready. What there is to say has been printed.
var ErrBlocked = errors.New("a layer or a cluster is blocked or failed")

// FieldManager is who has made what the plug-in makes, and ActManager who has decided what
// somebody decides by it.
const (
	FieldManager = gather.FieldManager
	ActManager   = gather.ActManager
)

// Console is where a command comes from and what it writes to.
type Console struct {
	// Flags say which cluster is meant.
	Flags *genericclioptions.ConfigFlags
	// Out takes what can be printed, whoever has written it.
	Out io.Writer
	// ErrOut takes what can be printed, whoever has written it.
	ErrOut io.Writer
	// Terminal is ErrOut as it is, for what is drawn over itself.
	Terminal io.Writer
	// Screen is what Out writes to.
	Screen terminal.Screen
	// Answers is where somebody at a terminal answers what they are asked; nil where
	// nobody can be asked.
	Answers io.Reader
	// Now returns the time.
	Now func() time.Time
	// Cluster is the one that flags name.
	Cluster *gather.Cluster
}

// New returns the console of a process that writes to out and errOut.
func New(out, errOut io.Writer) *Console {
	flags := genericclioptions.NewConfigFlags(true)
	// Layers have no namespace, other kinds say so themselves, and nothing is
	// cached on disk.
	flags.Namespace, flags.CacheDir = nil, nil
	c := &Console{Flags: flags, Out: terminal.Guard(out), ErrOut: terminal.Guard(errOut), Terminal: errOut, Screen: terminal.Of(out, os.LookupEnv), Now: time.Now}
	if terminal.Answers(os.Stdin) && terminal.Answers(os.Stderr) {
		c.Answers = os.Stdin
	}
	c.Cluster = c.reached()
	return c
}

// reached returns the cluster that flags name.
func (c *Console) reached() *gather.Cluster {
	return gather.New(gather.Options{
		Config:  func() (*rest.Config, error) { return Config(c.Flags) },
		Mapper:  c.Flags.ToRESTMapper,
		Now:     func() time.Time { return c.Now() },
		Explain: c.Explain,
	})
}

// Progress returns what shows, on a terminal, how long work gets on.
func (c *Console) Progress() *terminal.Progress {
	return terminal.NewProgress(c.Terminal, terminal.Of(c.Terminal, os.LookupEnv))
}

// WarnUnread says which kinds could not be read, and what that means for what is
// shown. Kinds that the cluster does not serve have no objects that could be shown.
func (c *Console) WarnUnread(s *snapshot.Snapshot, meaning string) {
	if lacking := gather.Lacking(s); len(lacking) > 0 {
		fmt.Fprintf(c.ErrOut, "kubectl strata: you may not list %s, so %s\n", strings.Join(lacking, ", "), meaning)
	}
}

// ReadMade reads the objects of kinds, and says which of them may not be listed.
func (c *Console) ReadMade(ctx context.Context, wanted []releases.Wanted) (*releases.Live, error) {
	live, err := c.Cluster.Made(ctx, wanted)
	if err == nil {
		c.WarnKinds(live)
	}
	return live, err
}

// WarnKinds says which kinds could not be read for lack of rights.
func (c *Console) WarnKinds(live *releases.Live) {
	var lacking []string
	for kind, why := range live.Unread {
		if why == gather.MayNotList {
			lacking = append(lacking, kind)
		}
	}
	if len(lacking) > 0 {
		slices.Sort(lacking)
		fmt.Fprintf(c.ErrOut, "kubectl strata: you may not list %s, so how these are is not shown\n", strings.Join(lacking, ", "))
	}
}

// OutputFlag adds --output with the formats that a command has beside its text. Others
// are refused before the command runs.
func OutputFlag(command *cobra.Command, into *string, formats ...string) {
	command.Flags().StringVarP(into, "output", "o", "", "one of "+strings.Join(formats, ", "))
	command.PreRunE = func(*cobra.Command, []string) error {
		if *into != "" && !slices.Contains(formats, *into) {
			return fmt.Errorf("--output is %q: it must be %s", *into, near.Either(formats))
		}
		return nil
	}
}
