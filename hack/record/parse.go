// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"
)

// style is how a piece of text looks.
type style struct {
	colour      int // of the ANSI palette, 0 to 15; none for -1
	bold, faint bool
}

var plain = style{colour: -1}

// span is a piece of text in one style.
type span struct {
	text string
	style
}

// line is what a terminal shows in one line.
type line []span

// prompt is the line in which a command is given.
func prompt(command string) line {
	return line{{"$ ", style{colour: 2}}, {command, style{colour: -1, bold: true}}}
}

// parse returns the lines that a terminal would show for an output: colours are
// kept, a line that is begun again is replaced, and everything else that begins
// with an escape is left out.
func parse(output string) []line {
	var lines []line
	var current line
	now := plain
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			current = append(current, span{text.String(), now})
			text.Reset()
		}
	}
	for i := 0; i < len(output); {
		switch c := output[i]; {
		case c == '\n':
			flush()
			lines, current = append(lines, current), nil
			i++
		case c == '\r':
			// Before a line feed it says nothing; elsewhere the line begins again.
			if i+1 < len(output) && output[i+1] != '\n' {
				text.Reset()
				current = nil
			}
			i++
		case c == '\x1b':
			flush()
			length, codes := escapeAt(output[i:])
			now = now.apply(codes)
			i += length
		case c == '\t':
			text.WriteString("    ")
			i++
		case c < ' ' || c == 0x7f:
			i++
		default:
			text.WriteByte(c)
			i++
		}
	}
	flush()
	if len(current) > 0 {
		lines = append(lines, current)
	}
	return lines
}

// escapeAt returns how long an escape sequence at the beginning of a text is, and
// its codes where it sets a style.
func escapeAt(text string) (length int, codes []int) {
	if strings.HasPrefix(text, "\x1b]") {
		// A title, for example, goes on until a bell or another escape.
		if end := strings.IndexAny(text[2:], "\x07\x1b"); end >= 0 {
			return 2 + end, nil
		}
		return len(text), nil
	}
	if len(text) < 2 || text[1] != '[' {
		return min(2, len(text)), nil
	}
	for end := 2; end < len(text); end++ {
		if text[end] < '@' || text[end] > '~' {
			continue
		}
		if text[end] != 'm' {
			return end + 1, nil
		}
		for part := range strings.SplitSeq(text[2:end], ";") {
			code, err := strconv.Atoi(part)
			if err != nil && part != "" {
				return end + 1, nil
			}
			codes = append(codes, code)
		}
		return end + 1, codes
	}
	return len(text), nil
}

// apply returns the style after the codes of an escape sequence. Backgrounds, and
// colours beyond the palette, do not change it.
func (s style) apply(codes []int) style {
	for i := 0; i < len(codes); i++ {
		switch code := codes[i]; {
		case code == 0:
			s = plain
		case code == 1:
			s.bold = true
		case code == 2:
			s.faint = true
		case code == 22:
			s.bold, s.faint = false, false
		case code >= 30 && code <= 37:
			s.colour = code - 30
		case code == 38 || code == 48:
			return s
		case code == 39:
			s.colour = -1
		case code >= 90 && code <= 97:
			s.colour = code - 90 + 8
		}
	}
	return s
}
