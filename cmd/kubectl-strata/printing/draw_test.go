// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/strata-project/strata/internal/answers/snapshot/snapshottest"
	"github.com/strata-project/strata/internal/answers/tree"
	"github.com/strata-project/strata/internal/terminal"
)

var painted = regexp.MustCompile("\x1b\\[[0-9;]*m")

// What is drawn fits the screen, loses no word, and is the same text in colour.
func TestDrawFitsAndLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-zé]{1,60}`)
		var node func(depth int) Node
		node = func(depth int) Node {
			n := Node{}
			for range rapid.IntRange(1, 3).Draw(t, "spans") {
				n.Spans = append(n.Spans, Span{strings.Join(rapid.SliceOfN(word, 0, 6).Draw(t, "words"), " "), terminal.Role(rapid.IntRange(0, 6).Draw(t, "role"))})
			}
			if depth > 0 {
				for range rapid.IntRange(0, 3).Draw(t, "children") {
					n.Children = append(n.Children, node(depth-1))
				}
			}
			return n
		}
		root := node(3)
		letters := func(text string) string {
			return strings.NewReplacer(branch, "", corner, "", "│", "", " ", "", "\n", "").Replace(text)
		}
		wide := Draw(terminal.Screen{}, []Node{root})
		narrow := Draw(terminal.Screen{Width: 40}, []Node{root})
		colour := Draw(terminal.Screen{Width: 40, Colour: true}, []Node{root})
		for line := range strings.Lines(narrow) {
			if length := utf8.RuneCountInString(strings.TrimRight(line, "\n")); length > 40 {
				t.Fatalf("a line has %d columns: %q", length, line)
			}
		}
		if letters(wide) != letters(narrow) {
			t.Fatalf("narrow lines lose something:\n%s\n%s", wide, narrow)
		}
		if got := painted.ReplaceAllString(colour, ""); got != narrow {
			t.Fatalf("colours change the text:\n%s\n%s", got, narrow)
		}
	})
}

func TestDrawIsSafe(t *testing.T) {
	got := Draw(terminal.Screen{}, []Node{{Spans: []Span{{"a\x1b[2Jb\nc", terminal.Plain}}}})
	if strings.Contains(got, "\x1b") || strings.Count(got, "\n") != 1 {
		t.Errorf("draws %q", got)
	}
}

// Of a graph in which there are more paths than anybody can count, each layer is
// told once; a circle ends.
func TestTreeOfADenseGraphIsSmall(t *testing.T) {
	var text strings.Builder
	for i := range 60 {
		fmt.Fprintf(&text, "apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: l%02d}\nspec:\n  version: 1.0.0\n  prereqs:\n    dependsOn:\n", i)
		for j := range 60 {
			fmt.Fprintf(&text, "    - l%02d\n", j)
		}
		text.WriteString("---\n")
	}
	s := snapshottest.New(t, text.String())
	drawn := Draw(terminal.Screen{}, []Node{Tree(tree.Of(s, s.Layers[0], nil, 1000), 1000, false)})
	if lines := strings.Count(drawn, "\n"); lines < 60 || lines > 60*60+10 {
		t.Errorf("%d lines", lines)
	}
}
