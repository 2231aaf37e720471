// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package printable makes texts of others' making fit for a status, an event, a
// log, a metric or a terminal. It reads nothing.
package printable

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// more stands for what was cut off.
const more = "..."

// Line returns a text in one line of at most limit bytes, without what would move
// a cursor, change the direction of writing, or hide. A limit of 0 is none. What is
// cut ends with three dots. It is its own fixed point.
func Line(text string, limit int) string {
	if isPlain(text) && (limit <= 0 || len(text) <= limit) {
		return text
	}
	var line strings.Builder
	space := false
	for i := 0; i < len(text); {
		char, size := utf8.DecodeRuneInString(text[i:])
		i += size
		switch {
		case isSpace(char):
			space = line.Len() > 0
			continue
		case char == utf8.RuneError && size == 1, isHidden(char):
			continue
		}
		if space {
			line.WriteByte(' ')
			space = false
		}
		line.WriteRune(char)
		if limit > 0 && line.Len() > limit {
			return cut(line.String(), limit)
		}
	}
	return line.String()
}

// escaping shows what speaks to a terminal, as kubectl does.
var escaping = strings.NewReplacer("\x1b", "^[", "\r", "\\r")

// Escaped returns a text as Line does, without a limit. What speaks to a terminal is
// shown instead of left out.
func Escaped(text string) string { return Line(escaping.Replace(text), 0) }

// Texts returns what JSON holds with every text in it as Line would leave it; its
// names stay. It changes nothing in place.
func Texts(value any, limit int) any {
	switch value := value.(type) {
	case string:
		return Line(value, limit)
	case []any:
		texts := make([]any, len(value))
		for i, item := range value {
			texts[i] = Texts(item, limit)
		}
		return texts
	case map[string]any:
		texts := make(map[string]any, len(value))
		for name, item := range value {
			texts[name] = Texts(item, limit)
		}
		return texts
	}
	return value
}

// cut bounds a text to a number of bytes, and leaves whole what it keeps.
func cut(text string, limit int) string {
	if limit <= len(more) {
		return more[:limit]
	}
	end := limit - len(more)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.TrimRight(text[:end], " ") + more
}

// Clip returns at most so many characters of a text, of which the last is an ellipsis where
// it has more. A limit of zero or less is none.
func Clip(text string, limit int) string {
	if limit <= 0 || len(text) <= limit {
		return text
	}
	end, characters := 0, 0
	for at := range text {
		switch characters {
		case limit - 1:
			end = at
		case limit:
			return text[:end] + "…"
		}
		characters++
	}
	return text
}

// isPlain tells whether a text is as Line would leave it, but for its length.
func isPlain(text string) bool {
	last := byte(' ')
	for i := range len(text) {
		char := text[i]
		if char < ' ' || char > '~' || char == ' ' && last == ' ' {
			return false
		}
		last = char
	}
	return text == "" || last != ' '
}

// isSpace tells whether a character separates words, or controls a terminal.
func isSpace(char rune) bool {
	return unicode.IsSpace(char) || unicode.IsControl(char) || unicode.In(char, unicode.Zl, unicode.Zp)
}

// isHidden tells whether a character is not seen itself: it joins, orders or tags
// others, or means what each reader agrees on.
func isHidden(char rune) bool {
	return unicode.In(char, unicode.Cf, unicode.Co, unicode.Cs, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// Shorten bounds what is repeated of a message of somebody else.
func Shorten(message string) string {
	const limit = 300
	if len(message) <= limit {
		return message
	}
	return strings.ToValidUTF8(message[:limit], "") + "..."
}
