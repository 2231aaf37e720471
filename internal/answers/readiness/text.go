// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"fmt"
	"io"
	"strings"

	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/internal/terminal"
)

// Text writes a report for people: a line for each layer, its reasons below it, and
// the verdict at the end.
func (r Report) Text(out io.Writer, screen terminal.Screen) error {
	if len(r.Layers) == 0 {
		_, err := fmt.Fprintln(out, "No layers found.")
		return err
	}
	longest := len("LAYER")
	for _, layer := range r.Layers {
		longest = max(longest, len([]rune(terminal.Safe(layer.Name))))
	}
	if screen.Width > 0 {
		// The verdict is what is asked for.
		longest = min(longest, max(len("LAYER"), screen.Width-len("   UPGRADE")))
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%-*s   UPGRADE\n", longest, "LAYER")
	for _, layer := range r.Layers {
		name := (terminal.Screen{Width: longest}).Clip(terminal.Safe(layer.Name))
		fmt.Fprintf(&text, "%-*s   %s\n", longest, name, screen.Paint(terminal.RoleOf(summary.Standing(layer.Upgrade)), layer.Upgrade))
		for _, reason := range layer.Reasons {
			mark := map[string]string{No: "- ", Unknown: "? "}[reason.Upgrade]
			for _, line := range (terminal.Screen{Width: max(0, screen.Width-len("  "))}).Wrap(mark+terminal.Safe(reason.Message), "  ") {
				text.WriteString(screen.Clip("  "+line) + "\n")
			}
		}
	}
	text.WriteString("\n" + strings.Join(screen.Wrap(r.Verdict(), "  "), "\n") + "\n")
	_, err := io.WriteString(out, text.String())
	return err
}

// Verdict returns the report in one sentence.
func (r Report) Verdict() string {
	no, unknown := 0, 0
	for _, layer := range r.Layers {
		switch layer.Upgrade {
		case No:
			no++
		case Unknown:
			unknown++
		}
	}
	switch of := fmt.Sprintf("of %s", count(len(r.Layers), "layer")); {
	case no > 0 && unknown > 0:
		return fmt.Sprintf("No: %d %s %s not ready for Kubernetes %s, and of %d it is not known.", no, of, isOrAre(no), r.Kubernetes, unknown)
	case no > 0:
		return fmt.Sprintf("No: %d %s %s not ready for Kubernetes %s.", no, of, isOrAre(no), r.Kubernetes)
	case unknown > 0:
		return fmt.Sprintf("Unknown: %d %s may not be ready for Kubernetes %s.", unknown, of, r.Kubernetes)
	}
	return fmt.Sprintf("Yes: %s %s ready for Kubernetes %s.", count(len(r.Layers), "layer"), isOrAre(len(r.Layers)), r.Kubernetes)
}

func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
