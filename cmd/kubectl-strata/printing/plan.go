// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/strata-project/strata/internal/answers/preview"
	"github.com/strata-project/strata/internal/terminal"
)

// maxObjects is how many objects of one action are shown to people.
const maxObjects = 50

var verbs = map[preview.Verb]terminal.Role{
	preview.Install:   terminal.Good,
	preview.Create:    terminal.Good,
	preview.Adopt:     terminal.Good,
	preview.Upgrade:   terminal.Busy,
	preview.Change:    terminal.Busy,
	preview.Reinstall: terminal.Bad,
	preview.Update:    terminal.Busy,
	preview.Correct:   terminal.Busy,
	preview.Downgrade: terminal.Warning,
	preview.Orphan:    terminal.Warning,
	preview.Prune:     terminal.Bad,
	preview.Release:   terminal.Warning,
	preview.Suspend:   terminal.Warning,
	preview.Supersede: terminal.Warning,
	preview.Held:      terminal.Warning,
	preview.Wait:      terminal.Warning,
	preview.Refuse:    terminal.Bad,
	preview.Fail:      terminal.Bad,
}

// Plan writes the plan for people.
func Plan(out io.Writer, screen terminal.Screen, p *preview.Plan) error {
	for _, line := range screen.Wrap(terminal.Safe(p.Heading(true)), "  ") {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	if p.Differs() {
		fmt.Fprintln(out)
		columns := []terminal.Column{
			{Name: "WAVE", Expendable: 3},
			{Name: "LAYER", Expendable: 1},
			{Name: "ACTION", Role: func(cell string) terminal.Role { return verbs[preview.Verb(cell)] }},
			{Name: "OBJECT"},
			{Name: "VERSION", Expendable: 2},
			{Name: "NOTE"},
		}
		if err := screen.Table(out, columns, rows(p)); err != nil {
			return err
		}
	}
	if err := details(out, screen, p); err != nil {
		return err
	}
	if len(p.Notes) > 0 {
		fmt.Fprintln(out, "\nNotes:")
		for _, note := range p.Notes {
			fmt.Fprintln(out, strings.Join(screen.Wrap("- "+terminal.Safe(note), "  "), "\n"))
		}
	}
	_, err := fmt.Fprintf(out, "\n%s\n", strings.Join(screen.Wrap(p.Verdict(), "  "), "\n"))
	return err
}

// rows returns the actions and the layers that are blocked.
func rows(p *preview.Plan) [][]string {
	var rows [][]string
	for _, action := range p.Actions {
		rows = append(
			rows,
			[]string{strconv.Itoa(action.Wave), at(action.Layer, action.Version), string(action.Action), action.Object.String(), action.Versions(), action.Remark()},
		)
	}
	for _, layer := range p.Blocked {
		note := layer.Message
		if layer.Until != "" && !strings.Contains(note, layer.Until) {
			note += " (until " + layer.Until + ")"
		}
		rows = append(rows, []string{"-", at(layer.Layer, layer.Version), string(layer.Verdict), "-", "-", note})
	}
	return rows
}

func at(layer, version string) string {
	if version == "" {
		return layer
	}
	return layer + "@" + version
}

// details writes what changes of each object.
func details(out io.Writer, screen terminal.Screen, p *preview.Plan) error {
	for _, action := range p.Actions {
		if !action.HasDetails() {
			continue
		}
		head := string(action.Action) + " " + action.Object.String()
		if action.File != "" {
			head += " (" + action.File + ")"
		}
		fmt.Fprintln(out)
		for _, line := range screen.Wrap(terminal.Safe(head), "  ") {
			fmt.Fprintln(out, screen.Paint(terminal.Strong, line))
		}
		for i, change := range action.Changes {
			if i == maxObjects {
				fmt.Fprintf(out, "  and %d more objects; -o json has them\n", len(action.Changes)-maxObjects)
				break
			}
			for _, line := range change.Lines {
				role := map[byte]terminal.Role{'+': terminal.Good, '-': terminal.Bad, '~': terminal.Busy}[(line + " ")[0]]
				for _, part := range (terminal.Screen{Width: max(0, screen.Width-2)}).Wrap(safeLine(line), "  ") {
					if _, err := fmt.Fprintln(out, screen.Paint(role, "  "+part)); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// safeLine is a line of others' making, with its indent.
func safeLine(line string) string {
	text := strings.TrimLeft(line, " ")
	return strings.Repeat(" ", len(line)-len(text)) + terminal.Safe(text)
}
