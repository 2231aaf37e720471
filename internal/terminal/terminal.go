// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package terminal says how something looks on a terminal, and nothing of it
// elsewhere: what goes into a file or a pipe has no colours and lines of any
// length. It knows nothing of Strata, and imports nothing of it but printable.
package terminal

import (
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/fatih/color"
	"golang.org/x/term"

	"github.com/strata-project/strata/internal/printable"
)

// Screen is what is written to. The zero value is a file or a pipe.
type Screen struct {
	// Colour is true where colours are shown.
	Colour bool
	// Width in columns; 0 where there is no limit.
	Width int
}

// Of returns the screen behind a writer. Colours are left out where the
// environment says NO_COLOR, or that the terminal is dumb. Where it says
// CLICOLOR_FORCE, files and pipes are screens, too, as wide as COLUMNS says.
func Of(out io.Writer, environment func(string) (string, bool)) Screen {
	file, is := out.(*os.File)
	if !is || !term.IsTerminal(int(file.Fd())) {
		return forced(environment)
	}
	screen := Screen{Colour: true}
	if width, _, err := term.GetSize(int(file.Fd())); err == nil {
		screen.Width = width
	}
	if set, _ := environment("NO_COLOR"); set != "" {
		screen.Colour = false
	}
	if kind, _ := environment("TERM"); kind == "dumb" {
		screen.Colour = false
	}
	return screen
}

// Answers tells whether somebody sits at a file who can be asked.
func Answers(file *os.File) bool { return term.IsTerminal(int(file.Fd())) }

// forced returns the screen that the environment asks for where there is none.
func forced(environment func(string) (string, bool)) Screen {
	if force, _ := environment("CLICOLOR_FORCE"); force == "" || force == "0" {
		return Screen{}
	}
	without, _ := environment("NO_COLOR")
	screen := Screen{Colour: without == ""}
	columns, _ := environment("COLUMNS")
	if width, err := strconv.Atoi(columns); err == nil && width > 0 {
		screen.Width = width
	}
	return screen
}

// Role is what a piece of text stands for.
type Role int

// The roles of texts.
const (
	Plain Role = iota
	Good
	Busy
	Warning
	Bad
	Dim
	Strong
)

var attributes = map[Role]color.Attribute{
	Good: color.FgGreen, Busy: color.FgCyan, Warning: color.FgYellow, Bad: color.FgRed, Dim: color.Faint, Strong: color.Bold,
}

// Paint returns a text in the colour of its role.
func (s Screen) Paint(role Role, text string) string {
	attribute, known := attributes[role]
	if !s.Colour || !known || text == "" {
		return text
	}
	paint := color.New(attribute)
	paint.EnableColor()
	return paint.Sprint(text)
}

// standings are the words for how something stands. Other words are Plain.
var standings = map[string]Role{"good": Good, "busy": Busy, "warning": Warning, "bad": Bad}

// RoleOf returns the role of a standing: good, busy, warning or bad.
func RoleOf(standing string) Role { return standings[standing] }

// Clip shortens a line to the width of the screen. The line must not be painted.
func (s Screen) Clip(line string) string { return printable.Clip(line, s.Width) }

// Wrap breaks a text into lines of the width of the screen, at spaces, and begins
// all but the first with an indent. Without a limit it is one line. A word that is
// longer than a line has a line of its own.
func (s Screen) Wrap(text, indent string) []string {
	words := strings.Fields(text)
	if s.Width <= 0 || len(words) == 0 {
		return []string{strings.Join(words, " ")}
	}
	var lines []string
	line := words[0]
	for _, word := range words[1:] {
		if len([]rune(line))+1+len([]rune(word)) > s.Width {
			lines = append(lines, line)
			line = indent + word
			continue
		}
		line += " " + word
	}
	return append(lines, line)
}

// Safe returns a text of others' making without what would move the cursor of a
// terminal, hide, or change the direction of writing, in one line.
func Safe(text string) string { return printable.Escaped(text) }

// Brief ends a line that is longer than a screen is wide, at a word. A width of 0 is no
// limit.
func Brief(line string, width int) string {
	const more = " ..."
	if width <= len(more) || len(line) <= width {
		return line
	}
	short := line[:width-len(more)]
	if at := strings.LastIndex(short, " "); at > 0 {
		short = short[:at]
	}
	return strings.TrimRight(short, " ,;:") + more
}
