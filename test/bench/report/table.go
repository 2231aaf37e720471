// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// table is a heading, rows of cells of which the first names the columns, and
// lines that follow.
type table struct {
	heading string
	rows    [][]string
	after   []string
}

// tables returns all tables of a report in the order in which they are read.
func tables(r Report) []table {
	all := []table{runTable(r.Run), targetTable(Judge(r.Results))}
	for _, g := range Groups(r.Results) {
		all = append(all, figureTable(g))
		if t := ratioTable(g); len(t.rows) > 1 {
			all = append(all, t)
		}
	}
	if t := verbTable(r.Results); len(t.rows) > 1 {
		all = append(all, t)
	}
	for _, s := range r.Run.Systems {
		if t := flagTable(s); len(t.rows) > 1 {
			all = append(all, t)
		}
	}
	return all
}

// Text writes the report as tables for a terminal.
func Text(w io.Writer, r Report) error {
	for i, t := range tables(r) {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s\n\n", t.heading)
		aligned := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
		for _, row := range t.rows {
			fmt.Fprintf(aligned, "  %s\n", strings.Join(row, "\t"))
		}
		if err := aligned.Flush(); err != nil {
			return fmt.Errorf("cannot write the table: %w", err)
		}
		for _, line := range t.after {
			fmt.Fprintf(w, "  %s\n", line)
		}
	}
	return nil
}

// Markdown writes the report as tables for a page whose headings above it are
// of the given level. Headings of 2 are written as ###.
func Markdown(w io.Writer, r Report, level int) error {
	var text strings.Builder
	for i, t := range tables(r) {
		if i > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "%s %s\n\n", strings.Repeat("#", level+1), t.heading)
		for n, row := range t.rows {
			fmt.Fprintf(&text, "| %s |\n", strings.Join(escaped(row), " | "))
			if n == 0 {
				text.WriteString(strings.Repeat("|---", len(row)) + "|\n")
			}
		}
		for _, line := range t.after {
			fmt.Fprintf(&text, "\n%s\n", line)
		}
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("cannot write the table: %w", err)
	}
	return nil
}

// escaped returns cells in which nothing ends the cell.
func escaped(cells []string) []string {
	done := make([]string, 0, len(cells))
	for _, cell := range cells {
		done = append(done, strings.NewReplacer("|", `\|`, "\n", " ").Replace(cell))
	}
	return done
}

// runTable tells of the machine and the programs.
func runTable(run Run) table {
	t := table{heading: "Where and when", rows: [][]string{
		{"what", "value"},
		{"date", run.Date.UTC().Format("2006-01-02 15:04 MST")},
		{"command", strings.Join(run.Command, " ")},
		{"cores", fmt.Sprint(run.Machine.Cores)},
		{"CPU", run.Machine.CPU},
		{"memory", Format(float64(run.Machine.MemoryBytes), Bytes)},
		{"kernel", run.Machine.Kernel},
		{"Go", run.Machine.Go},
		{"releases are Ready after", Format(run.ReadyDelaySeconds, Seconds)},
	}}
	for _, p := range run.Programs {
		t.rows = append(t.rows, []string{p.Name, p.Version})
	}
	if run.StandIn != "" {
		t.after = append(t.after, run.StandIn)
	}
	return t
}

// targetTable tells of every target how it stands.
func targetTable(targets []Target) table {
	t := table{heading: "Targets", rows: [][]string{{"target", "limit", "measured", "verdict"}}}
	for _, target := range targets {
		limit, measured := Format(target.Limit, target.Unit), "-"
		if target.Below {
			limit = "below " + limit
		}
		if target.Value != nil {
			measured = Format(*target.Value, target.Unit)
		}
		t.rows = append(t.rows, []string{target.Name, limit, measured, string(target.Verdict)})
	}
	return t
}

// title names a group with its sizes.
func title(g Group) string { return g.Scenario + ": " + g.Sizes.String() }

// String says the sizes in words.
func (s Sizes) String() string {
	text := fmt.Sprintf("%d layers of %d releases", s.Layers, s.Releases)
	if s.Clusters > 0 {
		text = fmt.Sprintf("%d clusters of %s", s.Clusters, text)
	}
	if s.Commits > 0 {
		text += fmt.Sprintf(", %d commits", s.Commits)
	}
	return text
}

// cells returns the numbers of layers and releases as a table shows them.
func (s Sizes) cells() (layers, releases string) {
	layers = fmt.Sprint(s.Layers)
	if s.Clusters > 0 {
		layers = fmt.Sprintf("%d x %d", s.Clusters, s.Layers)
	}
	return layers, fmt.Sprint(s.Releases)
}

// figureTable has a row for each figure and a column for each system.
func figureTable(g Group) table {
	t := table{heading: title(g), rows: [][]string{{"figure"}}}
	for _, s := range g.Systems {
		t.rows[0] = append(t.rows[0], s.System)
		if s.Runs > 1 {
			t.after = append(t.after, fmt.Sprintf("%s: the median of %d runs.", s.System, s.Runs))
		}
		for _, note := range s.Notes {
			t.after = append(t.after, s.System+": "+note)
		}
		for _, failure := range s.Errors {
			t.after = append(t.after, s.System+" failed: "+failure)
		}
	}
	for _, name := range g.FigureNames() {
		row := []string{name}
		for _, s := range g.Systems {
			row = append(row, s.cell(name))
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// cell returns a figure as text, and "-" where it was not measured.
func (s Summary) cell(name string) string {
	for _, f := range s.Figures {
		if f.Name == name {
			return Format(f.Value, f.Unit)
		}
	}
	return "-"
}

// verbTable counts requests by verb, of all results that have them.
func verbTable(results []Result) table {
	t := table{
		heading: "API requests by verb",
		rows:    [][]string{{"scenario", "system", "layers", "releases", "requests", "leases, version"}},
	}
	for _, r := range results {
		if r.Requests != nil {
			t.rows = append(t.rows, verbRow(r, r.System, r.Requests))
		}
		if r.RemoteRequests != nil {
			t.rows = append(t.rows, verbRow(r, r.System+", on the clusters", r.RemoteRequests))
		}
	}
	return t
}

func verbRow(r Result, system string, requests *Requests) []string {
	var verbs []string
	for _, c := range requests.ByVerb() {
		verbs = append(verbs, fmt.Sprintf("%s %s", c.Verb, grouped(float64(c.Count))))
	}
	if len(verbs) == 0 {
		verbs = []string{"none"}
	}
	layers, releases := r.Sizes.cells()
	return []string{
		r.Scenario, system, layers, releases,
		strings.Join(verbs, ", "), fmt.Sprintf("%d, %d", requests.Leases, requests.Version),
	}
}

// flagTable lists the flags of a system; those that were given are marked.
func flagTable(s System) table {
	t := table{heading: "Flags of " + s.Name, rows: [][]string{{"flag", "value", "from"}}}
	if s.About != "" {
		t.after = []string{s.About}
	}
	for _, f := range s.Flags {
		from := "default"
		if f.Given {
			from = "given"
		}
		t.rows = append(t.rows, []string{"--" + f.Name, f.Value, from})
	}
	return t
}
