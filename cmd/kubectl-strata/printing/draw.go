// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"strings"

	"github.com/strata-project/strata/internal/terminal"
)

// Span is a piece of a line that looks one way.
type Span struct {
	Text string
	Role terminal.Role
}

// Node is a line, and what hangs below it.
type Node struct {
	Spans    []Span
	Children []Node
}

// The glyphs before what hangs below a line.
const (
	branch = "├─ "
	corner = "└─ "
	trunk  = "│  "
	space  = "   "
	// leastText is how much room a text has however deep it hangs.
	leastText = 12
)

// Draw returns trees as lines that fit the screen. Texts are of others' making
// and are made safe.
func Draw(screen terminal.Screen, roots []Node) string {
	var text strings.Builder
	for _, root := range roots {
		root.draw(screen, &text, "", "")
	}
	return text.String()
}

// draw writes a node; first begins its first line, rest the others.
func (n Node) draw(screen terminal.Screen, into *strings.Builder, first, rest string) {
	below := "  "
	if len(n.Children) > 0 {
		below = trunk
	}
	for i, line := range n.lines(screen, len([]rune(first))) {
		indent := rest + below
		if i == 0 {
			indent = first
		}
		into.WriteString(screen.Paint(terminal.Dim, indent) + line + "\n")
	}
	for i, child := range n.Children {
		if i == len(n.Children)-1 {
			child.draw(screen, into, rest+corner, rest+space)
			continue
		}
		child.draw(screen, into, rest+branch, rest+trunk)
	}
}

// lines breaks the spans of a node where the screen ends.
func (n Node) lines(screen terminal.Screen, used int) []string {
	room := 0
	if screen.Width > 0 {
		// What is continued has an indent of its own.
		room = max(leastText, screen.Width-used-len([]rune(trunk)))
	}
	w := wrapping{screen: screen, room: room}
	for i, span := range n.Spans {
		gap := "  "
		if i == 0 {
			gap = ""
		}
		for _, word := range strings.Fields(terminal.Safe(span.Text)) {
			w.add(gap, word, span.Role)
			gap = " "
		}
	}
	return w.text()
}

// wrapping is a text that is being broken into lines.
type wrapping struct {
	screen terminal.Screen
	room   int
	done   []string
	line   strings.Builder
	used   int
	// piece is the end of the line, as far as it looks one way.
	piece string
	role  terminal.Role
}

// add adds a word to the line, or to the next one where the screen ends. A word
// that is longer than a line is cut into several.
func (w *wrapping) add(gap, word string, role terminal.Role) {
	letters := []rune(word)
	if w.room > 0 && w.used > 0 && w.used+len(gap)+len(letters) > w.room {
		w.end()
	}
	if w.used == 0 {
		gap = ""
	}
	if role != w.role {
		w.piece += gap
		w.used += len(gap)
		w.paint()
		gap, w.role = "", role
	}
	for w.room > 0 && len(letters) > w.room {
		w.piece += string(letters[:w.room])
		letters = letters[w.room:]
		w.end()
	}
	w.piece += gap + string(letters)
	w.used += len(gap) + len(letters)
}

// paint ends what looks one way.
func (w *wrapping) paint() {
	text := strings.TrimRight(w.piece, " ")
	w.line.WriteString(w.screen.Paint(w.role, text) + w.piece[len(text):])
	w.piece = ""
}

func (w *wrapping) end() {
	w.paint()
	w.done = append(w.done, strings.TrimRight(w.line.String(), " "))
	w.line.Reset()
	w.used = 0
}

// text returns all lines.
func (w *wrapping) text() []string {
	if w.used > 0 || len(w.done) == 0 {
		w.end()
	}
	return w.done
}
