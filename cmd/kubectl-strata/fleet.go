// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/fleet"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/internal/terminal"
)

// addFleet adds the commands about what there is to install, and where it is.
func addFleet(root *cobra.Command, t *tool) {
	for _, command := range root.Commands() {
		if command.Name() == "clusters" {
			addClusterCommands(t, command)
		}
	}
	root.AddCommand(newApp(t), newBundle(t), newPlatform(t), newDeprovision(t))
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

// fleetKinds are the kinds that commands of the fleet name in what they say.
var fleetKinds = map[snapshot.Part]kind{
	snapshot.Layers:       layerKind,
	snapshot.Clusters:     clusterKind,
	snapshot.Applications: ownKind(snapshot.Applications, "HelmApplication", "kubectl strata app list"),
	snapshot.Bundles:      ownKind(snapshot.Bundles, "ApplicationBundle", "kubectl strata bundle list"),
	snapshot.Platforms:    ownKind(snapshot.Platforms, "Platform", "kubectl strata platform list"),
}

func ownKind(part snapshot.Part, noun, command string) kind {
	return kind{
		resource: part.GroupVersionResource, noun: noun, plural: noun + "s", command: command,
		unknown: fmt.Sprintf("this cluster has no Strata that knows %ss; install or upgrade the chart (docs/install.md), or choose another cluster with --context", noun),
	}
}

// world reads a management cluster. Without the first part there is nothing to say;
// what is missing of the others is told.
func (t *tool) world(ctx context.Context, needed snapshot.Part, meaning string) (fleet.World, *snapshot.Snapshot, error) {
	w, s, err := t.cluster.Fleet(ctx, needed)
	if err == nil {
		t.warnUnread(s, meaning)
	}
	return w, s, err
}

// noSuch says that an object does not exist, and which one may be meant.
func noSuch(part snapshot.Part, name string, names []string) error {
	return &missingError{kind: fleetKinds[part], wanted: reference{name: name}, near: summary.Near(name, names)}
}

// table writes rows, or says that there are none.
func (t *tool) table(columns []terminal.Column, rows [][]string, none string) error {
	if len(rows) == 0 {
		say(t.out, "%s", none)
		return nil
	}
	return t.screen.Table(t.out, columns, rows)
}

// expendable returns columns of which those with a number behind their name, as in
// CHART:2, are left out of narrow screens, the highest number first.
func expendable(names ...string) []terminal.Column {
	columns := make([]terminal.Column, 0, len(names))
	for _, name := range names {
		name, number, _ := strings.Cut(name, ":")
		column := terminal.Column{Name: name}
		if _, err := fmt.Sscan(number, &column.Expendable); err != nil {
			column.Expendable = 0
		}
		columns = append(columns, column)
	}
	return columns
}

// without returns a table without some of its columns.
func without(columns []terminal.Column, rows [][]string, names ...string) ([]terminal.Column, [][]string) {
	var kept []int
	var shown []terminal.Column
	for i, column := range columns {
		if !slices.Contains(names, column.Name) {
			kept, shown = append(kept, i), append(shown, column)
		}
	}
	fewer := make([][]string, 0, len(rows))
	for _, row := range rows {
		cells := make([]string, 0, len(kept))
		for _, i := range kept {
			cells = append(cells, row[i])
		}
		fewer = append(fewer, cells)
	}
	return shown, fewer
}

// field writes one line of a description, wrapped on narrow screens; nothing where
// there is nothing to say.
func (t *tool) field(name, text string) {
	if text == "" {
		return
	}
	const width = 14
	for _, line := range t.screen.Wrap(terminal.Safe(fmt.Sprintf("%s %s", name+":", text)), "  ") {
		if rest, is := strings.CutPrefix(line, name+": "); is && len(name)+1 < width && t.screen.Width == 0 {
			line = fmt.Sprintf("%-*s%s", width, name+":", rest)
		}
		say(t.out, "%s", t.screen.Clip(line))
	}
}

// paragraph writes a sentence, wrapped on narrow screens.
func (t *tool) paragraph(out io.Writer, format string, args ...any) {
	for _, line := range t.screen.Wrap(terminal.Safe(fmt.Sprintf(format, args...)), "  ") {
		say(out, "%s", t.screen.Clip(line))
	}
}

// printNames writes names as kubectl does with -o name.
func (t *tool) printNames(part snapshot.Part, names []string) error {
	for _, name := range names {
		say(t.out, "%s.%s/%s", strings.ToLower(part.Kind), v1alpha1.GroupVersion.Group, name)
	}
	return nil
}

// forbidden tells whether an error says that a right is missing.
func forbidden(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

// yes says a boolean in a word.
func yes(is bool, word string) string {
	if is {
		return word
	}
	return ""
}

// orDash returns a text, or a dash where there is none.
func orDash(text string) string { return cmp.Or(text, "-") }
