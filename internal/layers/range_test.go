// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/strata-project/strata/internal/dependencies"
)

// triple is a version as the slow reference sees it.
type triple [3]int

func (v triple) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

func (v triple) less(w triple) bool { return slices.Compare(v[:], w[:]) < 0 }

func drawTriple(t *rapid.T, what string) triple {
	var v triple
	for i := range v {
		v[i] = rapid.IntRange(0, 4).Draw(t, what)
	}
	return v
}

// term is one part of a range, and the obvious test of it.
type term struct {
	text  string
	takes func(triple) bool
}

func drawTerm(t *rapid.T) term {
	v := drawTriple(t, "bound")
	terms := []term{
		{">=" + v.String(), func(w triple) bool { return !w.less(v) }},
		{">" + v.String(), func(w triple) bool { return v.less(w) }},
		{"<" + v.String(), func(w triple) bool { return w.less(v) }},
		{"<=" + v.String(), func(w triple) bool { return !v.less(w) }},
		{"=" + v.String(), func(w triple) bool { return w == v }},
		{"!=" + v.String(), func(w triple) bool { return w != v }},
		// As everywhere where these ranges are used, ~0.0.0 means any version.
		{"~" + v.String(), func(w triple) bool { return v == triple{} || !w.less(v) && w[0] == v[0] && w[1] == v[1] }},
		{fmt.Sprintf("~%d", v[0]), func(w triple) bool { return w[0] == v[0] }},
		{fmt.Sprintf("%d.x", v[0]), func(w triple) bool { return w[0] == v[0] }},
		{fmt.Sprintf("%d.%d.x", v[0], v[1]), func(w triple) bool { return w[0] == v[0] && w[1] == v[1] }},
		{"*", func(triple) bool { return true }},
		{"^" + v.String(), func(w triple) bool {
			first := slices.IndexFunc(v[:], func(n int) bool { return n > 0 })
			if first < 0 {
				first = 2
			}
			return !w.less(v) && slices.Equal(w[:first+1], v[:first+1])
		}},
	}
	return terms[rapid.IntRange(0, len(terms)-1).Draw(t, "term")]
}

// Random ranges take what the reference takes: some alternative of which every
// term does. The order of terms and alternatives does not matter, nor do blanks,
// commas and a leading v, and what is written is what comes back.
func TestRangesAgainstTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var alternatives []string
		var all [][]term
		for range rapid.IntRange(1, 3).Draw(t, "alternatives") {
			var terms []term
			var texts []string
			for range rapid.IntRange(1, 3).Draw(t, "terms") {
				drawn := drawTerm(t)
				terms, texts = append(terms, drawn), append(texts, drawn.text)
			}
			all = append(all, terms)
			alternatives = append(alternatives, strings.Join(texts, rapid.SampledFrom([]string{" ", ", ", ","}).Draw(t, "comma")))
		}
		text := "base@" + strings.Join(alternatives, rapid.SampledFrom([]string{"||", " || "}).Draw(t, "or"))
		dependency, err := dependencies.Parse(text)
		if err != nil || !dependency.Range || dependency.String() != text {
			t.Fatalf("%q: %+v, %v", text, dependency, err)
		}
		slices.Reverse(alternatives)
		turned, err := dependencies.Parse("base@" + strings.Join(alternatives, " || "))
		if err != nil {
			t.Fatal(err)
		}
		for range 6 {
			version := drawTriple(t, "version")
			want := slices.ContainsFunc(all, func(terms []term) bool {
				return !slices.ContainsFunc(terms, func(one term) bool { return !one.takes(version) })
			})
			for _, got := range []bool{dependency.Accepts(version.String()), dependency.Accepts("v" + version.String()), turned.Accepts(version.String())} {
				if got != want {
					t.Fatalf("%q and %s: got %t, want %t", text, version, got, want)
				}
			}
			for _, other := range []string{version.String() + "-rc.1", "0" + version.String(), version.String() + ".0", "release-" + version.String()} {
				if dependency.Accepts(other) {
					t.Fatalf("%q takes %s", text, other)
				}
			}
		}
	})
}
