// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/strata-project/strata/internal/printable"
)

// longest is how many characters of a value are shown, around what differs.
const longest = 60

// lead is how many characters are shown before what differs.
const lead = 10

// Lines returns a change as text: one line for an object that comes (+) or goes (-),
// and one for each field that changes (~). At most limit lines are returned, the last
// of which says how many fields there are beyond; 0 returns all. Long values are
// shortened to what differs of them, of texts of several lines the first line that
// differs is shown. What cannot be printed is quoted.
func (c Change) Lines(limit int) []string {
	sign := map[string]string{Create: "+", Delete: "-", Update: "~"}[c.Verb]
	head := sign + " " + readable(c.ID.String())
	if len(c.Fields) == 0 {
		return []string{head}
	}
	fields := c.Fields
	if limit > 0 && len(fields) > limit {
		fields = fields[:limit-1]
	}
	lines := make([]string, 0, len(fields)+1)
	for _, field := range fields {
		lines = append(lines, head+"  "+field.String())
	}
	if rest := len(c.Fields) - len(fields); rest > 0 {
		lines = append(lines, fmt.Sprintf("%s  and %d more fields", head, rest))
	}
	return lines
}

// String returns a field as Lines shows it: "spec.replicas: 1 -> 2".
func (f FieldChange) String() string {
	path := readable(f.Path)
	from, wasText := f.From.(string)
	to, isText := f.To.(string)
	switch {
	case f.From == nil:
		return path + ": added " + shown(f.To)
	case f.To == nil:
		return path + ": removed " + shown(f.From)
	case wasText && isText && strings.Contains(from+to, "\n"):
		return path + ": " + textChange(from, to)
	}
	text := path + ": " + pair(plain(f.From), plain(f.To))
	if f.Default {
		text += " (default)"
	}
	return text
}

// textChange says what differs in texts of several lines.
func textChange(from, to string) string {
	before, after := strings.Split(from, "\n"), strings.Split(to, "\n")
	first := 0
	for first < min(len(before), len(after)) && before[first] == after[first] {
		first++
	}
	last := 0
	for last < min(len(before), len(after))-first && before[len(before)-1-last] == after[len(after)-1-last] {
		last++
	}
	before, after = before[first:len(before)-last], after[first:len(after)-last]
	text := fmt.Sprintf("line %d: ", first+1)
	switch {
	case len(before) == 0:
		text += "added " + shown(after[0])
	case len(after) == 0:
		text += "removed " + shown(before[0])
	default:
		text += pair(plain(before[0]), plain(after[0]))
	}
	if more := max(len(before), len(after)) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more lines)", more)
	}
	return text
}

// pair shows two values, without what long ones have in common before they differ.
func pair(from, to string) string {
	before, after := []rune(from), []rune(to)
	if len(before) > longest || len(after) > longest {
		first := 0
		for first < min(len(before), len(after)) && before[first] == after[first] {
			first++
		}
		if first > lead {
			before, after = before[first-lead:], after[first-lead:]
			from, to = "…"+string(before), "…"+string(after)
		}
	}
	return shorten(from) + " -> " + shorten(to)
}

func shown(value any) string { return shorten(plain(value)) }

// plain returns a value as it is written: a text as it is where it can be printed and
// cannot be taken for something else, and JSON otherwise.
func plain(value any) string {
	text, is := value.(string)
	if !is {
		return readable(encoded(value))
	}
	if text == "" || strings.TrimSpace(text) != text || ambiguous(text) {
		return strconv.Quote(text)
	}
	return readable(text)
}

// ambiguous tells whether a text looks like a value that is no text.
func ambiguous(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil || text == "true" || text == "false" || text == "null" || strings.ContainsAny(text[:1], `{["`)
}

func shorten(text string) string { return printable.Clip(text, longest) }
