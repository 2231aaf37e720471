// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/summary"
)

// lookEvery is how often the table is made anew.
const lookEvery = 200 * time.Millisecond

// follow shows the layers until all are deployed. When the context ends, the
// error names those that are not, with their messages.
func (d *demo) follow(ctx context.Context) error {
	fmt.Fprintln(d.out)
	view := newView(d.out)
	began := time.Now()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var rows []summary.Row
	for {
		latest, err := d.rows(ctx)
		switch {
		case err == nil:
			rows = latest
			view.show(rows, time.Since(began))
		case ctx.Err() == nil:
			return err
		}
		if allDeployed(rows) {
			fmt.Fprintf(d.out, "\nAll layers are deployed, %.0fs after they were applied.\n", time.Since(began).Seconds())
			return nil
		}
		select {
		case <-ctx.Done():
			return notDeployed(context.Cause(ctx), rows)
		case <-d.controller.Ended():
			return d.controllerEnded()
		case <-ticker.C:
		}
	}
}

// rows returns the layers in the order in which the example lists them.
func (d *demo) rows(ctx context.Context) ([]summary.Row, error) {
	if d.platform != "" {
		return d.fleetRows(ctx)
	}
	rows := make([]summary.Row, 0, len(d.layers))
	for _, name := range d.layers {
		layer := &v1alpha1.AddonsLayer{}
		if err := d.client.Get(ctx, types.NamespacedName{Name: name}, layer); err != nil {
			return nil, fmt.Errorf("cannot get layer %s: %w", name, err)
		}
		rows = append(rows, summary.Of(layer, time.Now()))
	}
	return rows, nil
}

func allDeployed(rows []summary.Row) bool {
	for _, row := range rows {
		if row.State != string(v1alpha1.StateDeployed) || row.Blocked {
			return false
		}
	}
	return len(rows) > 0
}

// notDeployed says which layers are not deployed, and why not.
func notDeployed(cause error, rows []summary.Row) error {
	problems := []error{cause}
	for _, row := range rows {
		if row.State != string(v1alpha1.StateDeployed) || row.Blocked {
			problems = append(problems, fmt.Errorf("  %s is %s: %s", row.Name, row.State, cmp.Or(row.Why, row.Reason)))
		}
	}
	return errors.Join(problems...)
}

// view shows rows: a terminal's table is drawn over the last one; anything
// else gets a line for each change.
type view struct {
	out   io.Writer
	file  *os.File // the terminal, or nil
	drawn []string // on the terminal
	last  map[string]summary.Row
}

func newView(out io.Writer) *view {
	v := &view{out: out, last: map[string]summary.Row{}}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		v.file = file
	}
	return v
}

func (v *view) show(rows []summary.Row, after time.Duration) {
	if v.file != nil {
		v.draw(rows)
		return
	}
	width := 10
	for _, row := range rows {
		width = max(width, len(row.Name))
	}
	for _, row := range rows {
		if last, known := v.last[row.Name]; known && !row.Changed(last) {
			continue
		}
		v.last[row.Name] = row
		cells := row.Cells(false)
		line := fmt.Sprintf("%6.1fs  %-*s %-8s %-13s %-5s %s", after.Seconds(), width, row.Name, row.Version, row.State, row.Ready, cells[len(cells)-1])
		fmt.Fprintln(v.out, strings.TrimRight(line, " "))
	}
}

func (v *view) draw(rows []summary.Row) {
	width, _, err := term.GetSize(int(v.file.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	lines := table(rows)
	if slices.Equal(lines, v.drawn) {
		return
	}
	var text strings.Builder
	if len(v.drawn) > 0 {
		fmt.Fprintf(&text, "\x1b[%dA", len(v.drawn))
	}
	for _, line := range lines {
		if runes := []rune(line); len(runes) >= width {
			line = string(runes[:width-1])
		}
		text.WriteString(line + "\x1b[K\n")
	}
	v.drawn = lines
	_, _ = io.WriteString(v.out, text.String())
}

// table renders rows as lines with aligned columns.
func table(rows []summary.Row) []string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "LAYER\tVERSION\tSTATE\tREADY\tSINCE\tWHY")
	for _, row := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", row.Name, row.Version, row.State, row.Ready, row.Since, row.Why)
	}
	_ = w.Flush() // a strings.Builder takes everything
	return strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
}

// invite says how to look around.
func (d *demo) invite() error {
	_, err := fmt.Fprintf(d.out, `
Look around, in another terminal:

  export KUBECONFIG=%s PATH=%s:$PATH
  kubectl get al
  kubectl strata get -o wide
  kubectl get helmreleases -A
  kubectl annotate al base kraan.io/hold="looking around"
  kubectl annotate al base kraan.io/hold-

Change the platform; Flux fetches what you push within %.0f seconds:

  git clone %s

examples/README.md has things to try. The controller's log is %s

Ctrl-C stops everything and removes it.
`, d.plane.Kubeconfig(), d.bin, fetchInterval.Seconds(), d.repo.URL(), d.controller.Log())
	return err
}
