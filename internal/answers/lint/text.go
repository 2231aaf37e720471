// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// maxDetails is how many findings the text shows.
const maxDetails = 50

// Text returns a report as people read it: a line for each of the first 50 findings,
// by file, how many there are beside them, and a verdict. width is that of the
// terminal, on which lines are folded; 0 folds none.
func Text(r *Report, width int) string {
	var out strings.Builder
	file := ""
	for i, finding := range r.Findings[:min(len(r.Findings), maxDetails)] {
		if i > 0 && finding.File != file {
			out.WriteString("\n")
		}
		file = finding.File
		out.WriteString(fold(line(finding), width))
	}
	if len(r.Findings) > maxDetails {
		out.WriteString("\n" + more(r.Findings[maxDetails:]))
	}
	if len(r.Findings) > 0 {
		out.WriteString("\n")
	}
	out.WriteString(fold(verdict(r), width))
	return out.String()
}

// line names the place as an editor finds it.
func line(f Finding) string {
	text := place{f.File, f.Line}.String() + ": " + string(f.Level) + " " + f.Rule + ": "
	if f.Field != "" {
		text += f.Field + ": "
	}
	return plain(text + f.Message)
}

// more says what is not shown.
func more(rest []Finding) string {
	type count struct {
		rule     string
		findings int
		files    map[string]bool
	}
	counts := map[string]*count{}
	for _, finding := range rest {
		of := counts[finding.Rule]
		if of == nil {
			of = &count{rule: finding.Rule, files: map[string]bool{}}
			counts[finding.Rule] = of
		}
		of.findings++
		of.files[finding.File] = true
	}
	sorted := make([]*count, 0, len(counts))
	for _, of := range counts {
		sorted = append(sorted, of)
	}
	slices.SortFunc(sorted, func(a, b *count) int {
		return cmp.Or(cmp.Compare(b.findings, a.findings), cmp.Compare(a.rule, b.rule))
	})
	var out strings.Builder
	fmt.Fprintf(&out, "and %d more, all of them with -o json:\n", len(rest))
	for _, of := range sorted {
		fmt.Fprintf(&out, "  %d %s in %s\n", of.findings, of.rule, counted(len(of.files), "file"))
	}
	return out.String()
}

// verdict is the last line.
func verdict(r *Report) string {
	seen := fmt.Sprintf("%s, %s and %s", counted(r.Files, "file"), counted(r.Layers, "layer"), counted(r.Releases, "release"))
	if r.Errors+r.Warnings == 0 {
		return "Nothing is wrong in " + seen + "."
	}
	return counted(r.Errors, "error") + " and " + counted(r.Warnings, "warning") + " in " + seen + "."
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// plain takes out of a text what could move the cursor of a terminal, or begin a
// line of its own.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, text)
}

// fold breaks a line between words, with a margin for what follows.
func fold(text string, width int) string {
	if width <= 0 {
		return text + "\n"
	}
	var out strings.Builder
	length := 0
	for i, word := range strings.Fields(text) {
		size := len([]rune(word))
		switch {
		case i == 0:
		case length+1+size > width:
			out.WriteString("\n  ")
			length = 2
		default:
			out.WriteString(" ")
			length++
		}
		out.WriteString(word)
		length += size
	}
	return out.String() + "\n"
}

// ListRules returns the rules, one on each line, as people read them.
func ListRules(width int) string {
	longest := 0
	for _, rule := range Rules() {
		longest = max(longest, len(rule.Name))
	}
	var out strings.Builder
	for _, rule := range Rules() {
		text := fmt.Sprintf("%-*s  %-7s  %s", longest, rule.Name, rule.Level, rule.Short)
		if width > 0 && len(text) > width {
			out.WriteString(fold(rule.Name+" ("+string(rule.Level)+"): "+rule.Short, width))
			continue
		}
		out.WriteString(text + "\n")
	}
	return out.String()
}
