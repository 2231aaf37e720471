// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestGuardLetsThroughWhatIsShown(t *testing.T) {
	painted := Screen{Colour: true}.Paint(Bad, "no") + Screen{Colour: true}.Paint(Strong, "yes") + Screen{Colour: true}.Paint(Dim, "perhaps")
	for _, c := range []struct{ reason, text, want string }{
		{"lines", "a\tb\nü…\n", "a\tb\nü…\n"},
		{"what is painted", painted, painted},
		{"the cursor", "\x1b[2J\x1b[1;1H", "^[[2J^[[1;1H"},
		{"the title", "\x1b]0;x\a", `^[]0;x\u0007`},
		{"hidden text", "\x1b[8mx", "^[[8mx"},
		{"the line", "good\rbad\b\b", `good\u000dbad\u0008\u0008`},
		{"controls of eight bits", "\u009b2J\u0085", `\u009b2J\u0085`},
		{"controls that are no UTF-8", "\x9b2J", "\ufffd2J"},
		{"the direction", "a\u202eb\u2066c\u200f", `a\u202eb\u2066c\u200f`},
		{"half a sequence", "\x1b[3", "^[[3"},
		{"a sequence that goes on", "\x1b[0;0;8m", "^[[0;0;8m"},
	} {
		var out strings.Builder
		if _, err := Guard(&out).Write([]byte(c.text)); err != nil || out.String() != c.want {
			t.Errorf("%s: %q, %v, want %q", c.reason, out.String(), err, c.want)
		}
		// Byte by byte nothing else comes through.
		out.Reset()
		slow := Guard(&out)
		for i := range len(c.text) {
			if n, err := slow.Write([]byte{c.text[i]}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if got := out.String(); strings.ContainsAny(got, "\x1b\r\b\a\u009b\u202e") || !utf8.ValidString(got) {
			t.Errorf("%s, byte by byte: %q", c.reason, got)
		}
	}
}
