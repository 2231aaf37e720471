// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Guard returns a writer that hands on to another one what can be printed, in lines,
// and the colours that Paint gives. Whatever else texts of others' making hold is
// escaped: what moves the cursor, speaks to the terminal, hides text or turns its
// direction around. Safe makes single texts safe and keeps them in their line; this is
// for what comes by without.
func Guard(out io.Writer) io.Writer { return &guard{out: out} }

type guard struct {
	out io.Writer
	// rest is the beginning of a character that is yet to be written to its end.
	rest []byte
}

// painted are the sequences that Paint writes.
var painted = regexp.MustCompile(`^\x1b\[(?:(?:0|1|2|22|31|32|33|36|39)(?:;(?:0|1|2|22|39))*)m`)

// Write writes a piece of text.
func (g *guard) Write(data []byte) (int, error) {
	text := slices.Concat(g.rest, data)
	g.rest = nil
	var safe strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1 && !utf8.FullRune(text):
			g.rest = append([]byte{}, text...)
			size = len(text)
		case r == utf8.RuneError && size == 1:
			safe.WriteRune(utf8.RuneError)
		case r == '\x1b':
			if sequence := painted.Find(text); sequence != nil {
				safe.Write(sequence)
				size = len(sequence)
				break
			}
			safe.WriteString("^[")
		case r == '\n' || r == '\t' || !isControl(r):
			safe.Write(text[:size])
		default:
			fmt.Fprintf(&safe, `\u%04x`, r)
		}
		text = text[size:]
	}
	if _, err := io.WriteString(g.out, safe.String()); err != nil {
		return 0, err
	}
	return len(data), nil
}

// isControl tells what a terminal does something else about than showing it.
func isControl(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}
