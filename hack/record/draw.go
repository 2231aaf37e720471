// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// Sizes in the units of the SVG.
const (
	letter     = 8.43 // of a monospaced text of the size below
	fontSize   = 14
	lineHeight = 20
	bar        = 34
	padding    = 16
)

const (
	fonts      = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
	background = "#0d1117"
	foreground = "#e6edf3"
)

// palette are the colours of a terminal, which can be read on its background.
var palette = [16]string{
	"#6e7681", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
	"#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff",
}

// draw returns lines as an SVG that looks like a terminal, and refers to nothing
// outside it. Lines are folded as a terminal does it.
func draw(title string, columns int, lines []line) string {
	lines = fold(lines, columns)
	width := 2*padding + float64(columns)*letter
	height := bar + 2*padding + len(lines)*lineHeight
	var text strings.Builder
	fmt.Fprintf(&text, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" font-family="%s" font-size="%d">`+"\n",
		width, height, width, height, fonts, fontSize)
	fmt.Fprintf(&text, "<title>%s</title>\n", escape(title))
	fmt.Fprintf(&text, `<rect width="%.0f" height="%d" rx="8" fill="%s"/>`+"\n", width, height, background)
	for i, colour := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&text, `<circle cx="%d" cy="%d" r="6" fill="%s"/>`+"\n", padding+6+i*20, bar/2, colour)
	}
	fmt.Fprintf(&text, `<text x="%.0f" y="%d" text-anchor="middle" fill="#8b949e">%s</text>`+"\n", width/2, bar/2+5, escape(title))
	for i, line := range lines {
		if len(line) == 0 {
			continue
		}
		fmt.Fprintf(&text, `<text x="%d" y="%d" fill="%s" xml:space="preserve">`, padding, bar+padding+i*lineHeight+fontSize, foreground)
		for _, span := range line {
			text.WriteString(drawn(span))
		}
		text.WriteString("</text>\n")
	}
	text.WriteString("</svg>\n")
	return text.String()
}

// fold breaks lines that are longer than a terminal is wide.
func fold(lines []line, columns int) []line {
	var folded []line
	for _, whole := range lines {
		var current line
		room := columns
		for _, piece := range whole {
			for runes := []rune(piece.text); len(runes) > 0; {
				if room == 0 {
					folded, current, room = append(folded, current), nil, columns
				}
				length := min(room, len(runes))
				current = append(current, span{string(runes[:length]), piece.style})
				runes, room = runes[length:], room-length
			}
		}
		folded = append(folded, current)
	}
	return folded
}

// drawn returns a piece of text in its style.
func drawn(span span) string {
	attributes := ""
	if span.colour >= 0 {
		attributes += ` fill="` + palette[span.colour] + `"`
	}
	if span.bold {
		attributes += ` font-weight="bold"`
	}
	if span.faint {
		attributes += ` fill-opacity="0.6"`
	}
	if attributes == "" {
		return escape(span.text)
	}
	return "<tspan" + attributes + ">" + escape(span.text) + "</tspan>"
}

// escape returns a text as XML. What no XML may hold is replaced.
func escape(text string) string {
	var escaped strings.Builder
	_ = xml.EscapeText(&escaped, []byte(text)) // a Builder takes everything
	return escaped.String()
}
