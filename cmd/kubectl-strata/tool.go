// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/internal/terminal"
)

// errDiffers ends a command that has worked, and found that something differs, or
// would change. What there is to say has been printed.
var errDiffers = errors.New("something differs")

// tool is what every command works with.
type tool struct {
	flags *genericclioptions.ConfigFlags
	// out and errOut take what can be printed, whoever has written it.
	out, errOut io.Writer
	// console is errOut as it is, for what is drawn over itself.
	console io.Writer
	// screen is what out writes to.
	screen terminal.Screen
	// now returns the time.
	now func() time.Time
	// cluster is the one that flags name.
	cluster *gather.Cluster
}

func newTool(out, errOut io.Writer) *tool {
	flags := genericclioptions.NewConfigFlags(true)
	// Layers have no namespace, other kinds say so themselves, and nothing is
	// cached on disk.
	flags.Namespace, flags.CacheDir = nil, nil
	t := &tool{flags: flags, out: terminal.Guard(out), errOut: terminal.Guard(errOut), console: errOut, screen: terminal.Of(out, os.LookupEnv), now: time.Now}
	t.cluster = gather.New(gather.Options{
		Config:  func() (*rest.Config, error) { return restConfig(flags) },
		Mapper:  flags.ToRESTMapper,
		Now:     func() time.Time { return t.now() },
		Explain: func(err error, of snapshot.Part) error { return explain(err, flags, fleetKinds[of]) },
	})
	return t
}

// progress returns what shows, on a terminal, how long work gets on.
func (t *tool) progress() *terminal.Progress {
	return terminal.NewProgress(t.console, terminal.Of(t.console, os.LookupEnv))
}

// warnUnread says which kinds could not be read, and what that means for what is
// shown. Kinds that the cluster does not serve have no objects that could be shown.
func (t *tool) warnUnread(s *snapshot.Snapshot, meaning string) {
	var lacking []string
	for part, err := range s.Unread {
		if apierrors.IsForbidden(err) {
			lacking = append(lacking, part.GroupResource().String())
		}
	}
	if len(lacking) > 0 {
		slices.Sort(lacking)
		fmt.Fprintf(t.errOut, "kubectl strata: you may not list %s, so %s\n", strings.Join(lacking, ", "), meaning)
	}
}

// noLayer says that there is no such layer, and which one may be meant.
func noLayer(s *snapshot.Snapshot, name string) error {
	return &missingError{kind: layerKind, wanted: reference{name: name}, near: summary.Near(name, s.LayerNames())}
}

// outputFlag adds --output with the formats that a command has beside its text. Others
// are refused before the command runs.
func outputFlag(command *cobra.Command, into *string, formats ...string) {
	command.Flags().StringVarP(into, "output", "o", "", "one of "+strings.Join(formats, ", "))
	command.PreRunE = func(*cobra.Command, []string) error {
		if *into != "" && !slices.Contains(formats, *into) {
			return fmt.Errorf("--output is %q: it must be %s", *into, summary.Either(formats))
		}
		return nil
	}
}

// printAs writes a value as yaml, or as json in every other format.
func (t *tool) printAs(format string, value any) error {
	var data []byte
	var err error
	if format == "yaml" {
		data, err = yaml.Marshal(value)
	} else {
		data, err = json.MarshalIndent(value, "", "    ")
		data = append(data, '\n')
	}
	if err != nil {
		return fmt.Errorf("cannot print as %s: %w", format, err)
	}
	_, err = t.out.Write(data)
	return err
}
