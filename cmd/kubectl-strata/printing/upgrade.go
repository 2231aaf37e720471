// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"fmt"
	"io"
	"strings"

	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/internal/answers/upgrade"
	"github.com/strata-project/strata/internal/terminal"
)

// Upgrade writes a report for people: a line for each layer, its reasons below it, and
// the verdict at the end.
func Upgrade(out io.Writer, screen terminal.Screen, report upgrade.Report) error {
	if len(report.Layers) == 0 {
		_, err := fmt.Fprintln(out, "No layers found.")
		return err
	}
	longest := len("LAYER")
	for _, layer := range report.Layers {
		longest = max(longest, len([]rune(terminal.Safe(layer.Name))))
	}
	if screen.Width > 0 {
		// The verdict is what is asked for.
		longest = min(longest, max(len("LAYER"), screen.Width-len("   UPGRADE")))
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%-*s   UPGRADE\n", longest, "LAYER")
	for _, layer := range report.Layers {
		name := (terminal.Screen{Width: longest}).Clip(terminal.Safe(layer.Name))
		fmt.Fprintf(&text, "%-*s   %s\n", longest, name, screen.Paint(terminal.RoleOf(summary.Standing(layer.Upgrade)), layer.Upgrade))
		for _, reason := range layer.Reasons {
			mark := map[string]string{upgrade.No: "- ", upgrade.Unknown: "? "}[reason.Upgrade]
			for _, line := range (terminal.Screen{Width: max(0, screen.Width-len("  "))}).Wrap(mark+terminal.Safe(reason.Message), "  ") {
				text.WriteString(screen.Clip("  "+line) + "\n")
			}
		}
	}
	text.WriteString("\n" + strings.Join(screen.Wrap(report.Verdict(), "  "), "\n") + "\n")
	_, err := io.WriteString(out, text.String())
	return err
}
