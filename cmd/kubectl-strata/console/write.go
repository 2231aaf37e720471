// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/terminal"
)

// Say writes one line of what was done.
func Say(out io.Writer, format string, args ...any) {
	fmt.Fprintf(out, format+"\n", args...)
}

// PrintAs writes a value as yaml, or as json in every other format.
func (c *Console) PrintAs(format string, value any) error {
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
	_, err = c.Out.Write(data)
	return err
}

// Table writes rows, or says that there are none.
func (c *Console) Table(columns []terminal.Column, rows [][]string, none string) error {
	if len(rows) == 0 {
		Say(c.Out, "%s", none)
		return nil
	}
	return c.Screen.Table(c.Out, columns, rows)
}

// Columns returns columns of which those with a number behind their name, as in
// CHART:2, are left out of narrow screens, the highest number first.
func Columns(names ...string) []terminal.Column {
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

// Without returns a table without some of its columns.
func Without(columns []terminal.Column, rows [][]string, names ...string) ([]terminal.Column, [][]string) {
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

// Field writes one line of a description, wrapped on narrow screens; nothing where
// there is nothing to say.
func (c *Console) Field(name, text string) {
	if text == "" {
		return
	}
	const width = 14
	for _, line := range c.Screen.Wrap(terminal.Safe(fmt.Sprintf("%s %s", name+":", text)), "  ") {
		if rest, is := strings.CutPrefix(line, name+": "); is && len(name)+1 < width && c.Screen.Width == 0 {
			line = fmt.Sprintf("%-*s%s", width, name+":", rest)
		}
		Say(c.Out, "%s", c.Screen.Clip(line))
	}
}

// Paragraph writes a sentence, wrapped on narrow screens.
func (c *Console) Paragraph(out io.Writer, format string, args ...any) {
	for _, line := range c.Screen.Wrap(terminal.Safe(fmt.Sprintf(format, args...)), "  ") {
		Say(out, "%s", c.Screen.Clip(line))
	}
}

// Tell prints a sentence, in lines that fit the screen.
func (c *Console) Tell(format string, args ...any) {
	for _, line := range c.Screen.Wrap(terminal.Safe(fmt.Sprintf(format, args...)), "  ") {
		Say(c.Out, "%s", line)
	}
}

// ToDo prints what somebody has to do.
func (c *Console) ToDo(lines []string) {
	if len(lines) == 0 {
		return
	}
	Say(c.Out, "")
	Say(c.Out, "To do:")
	for _, line := range lines {
		for n, part := range c.Screen.Wrap(terminal.Safe(line), "  ") {
			if n == 0 {
				part = "- " + part
			}
			Say(c.Out, "%s", part)
		}
	}
}

// PrintNames writes names as kubectl does with -o name.
func (c *Console) PrintNames(part snapshot.Part, names []string) error {
	for _, name := range names {
		Say(c.Out, "%s.%s/%s", strings.ToLower(part.Kind), v1alpha1.GroupVersion.Group, name)
	}
	return nil
}
