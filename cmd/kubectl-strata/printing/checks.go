// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"strings"

	"github.com/strata-project/strata/internal/answers/checks"
	"github.com/strata-project/strata/internal/terminal"
)

// marks begin a line: a sign on a terminal, a word elsewhere.
var marks = map[checks.Result]struct {
	sign string
	role terminal.Role
}{
	checks.OK: {"✔", terminal.Good}, checks.Warn: {"!", terminal.Warning}, checks.Fail: {"✗", terminal.Bad},
}

// Checks returns findings as lines for a screen, each with what to do below it.
func Checks(screen terminal.Screen, findings []checks.Finding) string {
	var text strings.Builder
	for _, finding := range findings {
		mark, indent := string(finding.Result)+strings.Repeat(" ", 6-len(finding.Result)), "      "
		if screen != (terminal.Screen{}) {
			mark, indent = marks[finding.Result].sign+" ", "  "
		}
		narrow := screen
		if screen.Width > 0 {
			narrow.Width = max(1, screen.Width-len(indent))
		}
		for i, line := range narrow.Wrap(terminal.Safe(finding.What), "") {
			if i == 0 {
				text.WriteString(screen.Paint(marks[finding.Result].role, mark) + narrow.Clip(line) + "\n")
				continue
			}
			text.WriteString(indent + narrow.Clip(line) + "\n")
		}
		if finding.Do == "" {
			continue
		}
		for _, line := range narrow.Wrap("-> "+terminal.Safe(finding.Do), "   ") {
			text.WriteString(indent + screen.Paint(terminal.Dim, narrow.Clip(line)) + "\n")
		}
	}
	return text.String()
}
