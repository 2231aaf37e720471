// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/strata-project/strata/internal/answers/bundles"
	"github.com/strata-project/strata/internal/answers/preview"
	"github.com/strata-project/strata/internal/terminal"
)

// maxMarkdown is how many bytes a comment on a pull request may have, with room
// for what others add; GitHub takes 65536 characters.
const maxMarkdown = 60_000

// PlanMarkdown writes the plan as a comment on a pull request: a table, and what
// changes of each release in parts that can be opened. What does not fit is left
// out, and said to be.
func PlanMarkdown(out io.Writer, p *preview.Plan) error {
	var text strings.Builder
	fmt.Fprintf(&text, "### Strata: %s\n\n%s\n", markdown(p.Verdict()), markdown(p.Heading(false)))
	if p.Differs() {
		text.WriteString("\n| wave | layer | action | object | version | note |\n|---|---|---|---|---|---|\n")
	}
	left := 0
	for _, row := range rows(p) {
		for i := range row {
			row[i] = markdown(row[i])
		}
		row[2] = "**" + row[2] + "**"
		line := "| " + strings.Join(row, " | ") + " |\n"
		if text.Len()+len(line) > maxMarkdown/2 {
			left++
			continue
		}
		text.WriteString(line)
	}
	if left > 0 {
		fmt.Fprintf(&text, "\nand %d more lines\n", left)
	}
	left = 0
	for _, action := range p.Actions {
		if !action.HasDetails() {
			continue
		}
		part := fmt.Sprintf("\n<details><summary>%s %s, %s</summary>\n\n```diff\n%s```\n\n</details>\n",
			action.Action, markdown(action.Object.String()), preview.Count(action.Changes), strings.Join(diffLines(action.Changes), ""))
		if text.Len()+len(part) > maxMarkdown {
			left++
			continue
		}
		text.WriteString(part)
	}
	if left > 0 {
		fmt.Fprintf(&text, "\nWhat changes of %d more objects is too much for a comment; `kubectl strata plan` shows it.\n", left)
	}
	for i, note := range p.Notes {
		if i == 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "- %s\n", markdown(note))
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// diffLines returns what changes as lines that a block of the kind diff colours.
func diffLines(changes []preview.ObjectChange) []string {
	var lines []string
	for i, change := range changes {
		if i == maxObjects {
			lines = append(lines, "# and "+strconv.Itoa(len(changes)-maxObjects)+" more objects\n")
			break
		}
		for _, line := range change.Lines {
			line = strings.ReplaceAll(safeLine(line), "```", "'''")
			if rest, changed := strings.CutPrefix(line, "~"); changed {
				line = "!" + rest
			}
			lines = append(lines, line+"\n")
		}
	}
	return lines
}

var escaping = strings.NewReplacer(
	"|",
	"\\|",
	"<",
	"&lt;",
	">",
	"&gt;",
	"`",
	"\\`",
	"*",
	"\\*",
	"_",
	"\\_",
	"[",
	"\\[",
	"]",
	"\\]",
	"@",
	"&#64;",
	"#",
	"&#35;",
	"://",
	"&#58;//",
)

// markdown escapes a text of others' making, so that it is a text, names nobody
// and links to nothing.
func markdown(text string) string { return escaping.Replace(terminal.Safe(text)) }

// ChangesMarkdown returns the changes from one bundle to another as a table for a comment.
func ChangesMarkdown(from, to string, changes []bundles.Change) string {
	var text strings.Builder
	fmt.Fprintf(&text, "### %s -> %s\n\n", cell(from), cell(to))
	if len(changes) == 0 {
		return text.String() + "Nothing differs.\n"
	}
	text.WriteString("| Layer | Change | What | From -> To |\n|---|---|---|---|\n")
	for _, c := range changes {
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", cell(c.Layer), c.Verb, cell(c.What), cell(arrow(c)))
	}
	return text.String()
}

// cell writes a text so that it stays within a cell, and means nothing to Markdown
// or HTML.
func cell(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "`", "'", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "@", "@\u200b").Replace(text)
}
