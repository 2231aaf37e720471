// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/strata-project/strata/internal/terminal"
)

// maxObjects is how many objects of one action are shown to people.
const maxObjects = 50

var roles = map[Verb]terminal.Role{
	Install: terminal.Good, Create: terminal.Good, Adopt: terminal.Good, Upgrade: terminal.Busy, Change: terminal.Busy, Update: terminal.Busy,
	Correct: terminal.Busy, Downgrade: terminal.Warning, Orphan: terminal.Warning, Prune: terminal.Bad, Release: terminal.Warning,
	Suspend: terminal.Warning, Supersede: terminal.Warning, Held: terminal.Warning, Wait: terminal.Warning, Refuse: terminal.Bad, Fail: terminal.Bad,
}

// Text writes the plan for people.
func (p *Plan) Text(out io.Writer, screen terminal.Screen) error {
	for _, line := range screen.Wrap(terminal.Safe(p.heading(true)), "  ") {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	if p.Differs() {
		fmt.Fprintln(out)
		columns := []terminal.Column{
			{Name: "WAVE", Expendable: 3},
			{Name: "LAYER", Expendable: 1},
			{Name: "ACTION", Role: func(cell string) terminal.Role { return roles[Verb(cell)] }},
			{Name: "OBJECT"},
			{Name: "VERSION", Expendable: 2},
			{Name: "NOTE"},
		}
		if err := screen.Table(out, columns, p.rows()); err != nil {
			return err
		}
	}
	if err := p.details(out, screen); err != nil {
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

// heading says what the plan is of, with the address of the cluster where only those
// see it who know that.
func (p *Plan) heading(withAddress bool) string {
	text := "Plan of " + p.From
	if p.Revision != "" && !strings.Contains(p.From, p.Revision) {
		text += " (" + p.Revision + ")"
	}
	if p.Cluster != "" {
		text += ", for Kubernetes " + cmp.Or(p.Kubernetes, "of an unknown version")
		if withAddress {
			text += " at " + p.Cluster
		}
		return text
	}
	text += ", for an empty cluster"
	if p.Kubernetes != "" {
		text += " of Kubernetes " + p.Kubernetes
	}
	return text
}

// rows returns the actions and the layers that are blocked.
func (p *Plan) rows() [][]string {
	var rows [][]string
	for _, action := range p.Actions {
		rows = append(rows, []string{strconv.Itoa(action.Wave), named(action.Layer, action.Version), string(action.Action), action.Object.String(), action.versions(), action.note()})
	}
	for _, layer := range p.Blocked {
		note := layer.Message
		if layer.Until != "" && !strings.Contains(note, layer.Until) {
			note += " (until " + layer.Until + ")"
		}
		rows = append(rows, []string{"-", named(layer.Layer, layer.Version), string(layer.Verdict), "-", "-", note})
	}
	return rows
}

func named(layer, version string) string {
	if version == "" {
		return layer
	}
	return layer + "@" + version
}

func (a Action) versions() string {
	switch {
	case a.From == "" || a.Action == Install:
		return a.To
	case a.To == "":
		return a.From + " -> -"
	}
	return a.From + " -> " + a.To
}

// note says what there is to know beside the columns.
func (a Action) note() string {
	note := a.Note
	if a.After != "" {
		note = joined(strings.ReplaceAll(note, "after its grace", "after its grace of "+a.After), "")
		if !strings.Contains(note, a.After) {
			note = joined(note, "after "+a.After)
		}
	}
	switch {
	case a.Unknown != "":
		note = joined(note, "objects not known")
	case a.Object.Kind == "HelmRelease" && len(a.Changes) > 0:
		note = joined(note, counted(a.Changes))
	}
	return note
}

// counted says how many objects change, and how.
func counted(changes []ObjectChange) string {
	counts := map[string]int{}
	for _, change := range changes {
		counts[change.Verb]++
	}
	var parts []string
	for _, verb := range []string{"create", "change", "delete"} {
		if count := counts[verb]; count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, map[string]string{"create": "created", "change": "changed", "delete": "deleted"}[verb]))
		}
	}
	noun := "objects"
	if len(changes) == 1 {
		noun = "object"
	}
	return noun + ": " + strings.Join(parts, ", ")
}

// hasDetails tells whether there is more to show than that the object comes or goes.
func (a Action) hasDetails() bool {
	for _, change := range a.Changes {
		if change.Object != a.Object || change.Verb == "change" {
			return true
		}
	}
	return false
}

// details writes what changes of each object.
func (p *Plan) details(out io.Writer, screen terminal.Screen) error {
	for _, action := range p.Actions {
		if !action.hasDetails() {
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
