// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"
	"unicode"
)

// String returns a finding in one line, with the place as an editor finds it.
func (f Finding) String() string {
	text := place{f.File, f.Line}.String() + ": " + string(f.Level) + " " + f.Rule + ": "
	if f.Field != "" {
		text += f.Field + ": "
	}
	return plain(text + f.Message)
}

// Verdict says in one line what was found, and in how much.
func (r *Report) Verdict() string {
	seen := fmt.Sprintf("%s, %s and %s", counted(r.Files, "file"), counted(r.Layers, "layer"), counted(r.Releases, "release"))
	switch clean := r.Errors+r.Warnings == 0; {
	case r.Files == 0 && clean:
		return "There is no manifest to look at."
	case r.Layers == 0 && r.Releases > 0 && clean:
		return "Nothing is wrong in " + seen + ", but no layer was looked at: what the controller says of a layer's directory is not known."
	case clean:
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
