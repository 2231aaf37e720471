// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/strata-project/strata/internal/answers/lint"
)

// maxDetails is how many findings the text shows.
const maxDetails = 50

// Lint returns a report as people read it: a line for each of the first 50 findings,
// by file, how many there are beside them, and a verdict. width is that of the
// terminal, on which lines are folded; 0 folds none.
func Lint(r *lint.Report, width int) string {
	var out strings.Builder
	file := ""
	for i, finding := range r.Findings[:min(len(r.Findings), maxDetails)] {
		if i > 0 && finding.File != file {
			out.WriteString("\n")
		}
		file = finding.File
		out.WriteString(fold(finding.String(), width))
	}
	if len(r.Findings) > maxDetails {
		out.WriteString("\n" + more(r.Findings[maxDetails:]))
	}
	if len(r.Findings) > 0 {
		out.WriteString("\n")
	}
	out.WriteString(fold(r.Verdict(), width))
	return out.String()
}

// more says what is not shown.
func more(rest []lint.Finding) string {
	type tally struct {
		rule     string
		findings int
		files    map[string]bool
	}
	counts := map[string]*tally{}
	for _, finding := range rest {
		of := counts[finding.Rule]
		if of == nil {
			of = &tally{rule: finding.Rule, files: map[string]bool{}}
			counts[finding.Rule] = of
		}
		of.findings++
		of.files[finding.File] = true
	}
	sorted := make([]*tally, 0, len(counts))
	for _, of := range counts {
		sorted = append(sorted, of)
	}
	slices.SortFunc(sorted, func(a, b *tally) int {
		return cmp.Or(cmp.Compare(b.findings, a.findings), cmp.Compare(a.rule, b.rule))
	})
	var out strings.Builder
	fmt.Fprintf(&out, "and %d more, all of them with -o json:\n", len(rest))
	for _, of := range sorted {
		fmt.Fprintf(&out, "  %d %s in %s\n", of.findings, of.rule, count(len(of.files), "file"))
	}
	return out.String()
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

// LintRules returns the rules, one on each line, as people read them.
func LintRules(width int) string {
	longest := 0
	for _, rule := range lint.Rules() {
		longest = max(longest, len(rule.Name))
	}
	var out strings.Builder
	for _, rule := range lint.Rules() {
		text := fmt.Sprintf("%-*s  %-7s  %s", longest, rule.Name, rule.Level, rule.Short)
		if width > 0 && len(text) > width {
			out.WriteString(fold(rule.Name+" ("+string(rule.Level)+"): "+rule.Short, width))
			continue
		}
		out.WriteString(text + "\n")
	}
	return out.String()
}
