// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"io"
	"slices"
	"strings"

	"github.com/strata-project/strata/internal/printable"
)

// gap is between two columns.
const gap = "   "

// Column is one column of a table.
type Column struct {
	Name string
	// Expendable columns are left out of a screen that is too narrow for them,
	// those with the highest number first; 0 stays.
	Expendable int
	// Role of a cell; nil for Plain.
	Role func(cell string) Role
}

// Columns returns columns that stay on every screen.
func Columns(names ...string) []Column {
	columns := make([]Column, 0, len(names))
	for _, name := range names {
		columns = append(columns, Column{Name: name})
	}
	return columns
}

// Table writes rows below the names of their columns. On a screen that is too
// narrow, columns that are expendable are left out; where that is not enough, what
// the last column says goes below its row. Cells are of others' making and are made
// safe.
func (s Screen) Table(out io.Writer, columns []Column, rows [][]string) error {
	safe := make([][]string, 0, len(rows))
	for _, row := range rows {
		cells := make([]string, len(columns))
		for i := range columns {
			if i < len(row) {
				cells[i] = Safe(row[i])
			}
			if cells[i] == "" && i < len(columns)-1 {
				cells[i] = "-"
			}
		}
		safe = append(safe, cells)
	}
	shown, fits := s.fitting(columns, safe)
	last := len(columns) - 1
	if !fits && len(shown) > 1 {
		shown = shown[:len(shown)-1]
	} else {
		fits = true
	}
	heads := make([]string, len(columns))
	for i, column := range columns {
		heads[i] = column.Name
	}
	var text strings.Builder
	for n, cells := range append([][]string{heads}, safe...) {
		text.WriteString(s.line(columns, shown, safe, cells, n > 0) + "\n")
		if n == 0 || fits || cells[last] == "" {
			continue
		}
		for _, line := range (Screen{Width: s.Width - len(below)}).Wrap(cells[last], "") {
			text.WriteString(s.Clip(below+line) + "\n")
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// below begins the lines that say what the last column has no room for.
const below = "  "

// line returns a row in the columns that are shown.
func (s Screen) line(columns []Column, shown []int, rows [][]string, cells []string, painted bool) string {
	var text strings.Builder
	left := s.Width
	for at, i := range shown {
		cell, width := cells[i], widthOf(columns, rows, i)
		if s.Width > 0 {
			if left <= 0 {
				break
			}
			cell = printable.Clip(cell, left)
			left -= width + len(gap)
		}
		padding := ""
		if at < len(shown)-1 && (s.Width == 0 || left > 0) {
			padding = strings.Repeat(" ", max(0, width-len([]rune(cell)))) + gap
		}
		if painted && columns[i].Role != nil {
			cell = s.Paint(columns[i].Role(cells[i]), cell)
		}
		text.WriteString(cell + padding)
	}
	return strings.TrimRight(text.String(), " ")
}

// fitting returns the columns that a screen has room for, by their places, and
// whether there is room for the last one.
func (s Screen) fitting(columns []Column, rows [][]string) (shown []int, fits bool) {
	for i := range columns {
		shown = append(shown, i)
	}
	for s.Width > 0 {
		needed := 0
		for at, i := range shown {
			width := widthOf(columns, rows, i)
			if at == len(shown)-1 {
				// The last column may be cut, but not to nothing.
				needed += min(width, max(s.Width/3, 20))
				break
			}
			needed += width + len(gap)
		}
		worst := -1
		for at, i := range shown {
			if columns[i].Expendable > 0 && (worst < 0 || columns[i].Expendable > columns[shown[worst]].Expendable) {
				worst = at
			}
		}
		if needed <= s.Width || worst < 0 {
			return shown, needed <= s.Width
		}
		shown = slices.Delete(shown, worst, worst+1)
	}
	return shown, true
}

func widthOf(columns []Column, rows [][]string, i int) int {
	width := len([]rune(columns[i].Name))
	for _, row := range rows {
		width = max(width, len([]rune(row[i])))
	}
	return width
}
