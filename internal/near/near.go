// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package near finds the names that somebody may have meant who wrote another one.
package near

import (
	"cmp"
	"slices"
	"strings"
)

// maxNear bounds how many names Near returns.
const maxNear = 3

// Near returns up to three of the names that somebody may have meant who wrote
// another, the nearest first.
func Near(wrote string, names []string) []string {
	type candidate struct {
		name  string
		edits int
	}
	limit := min(1, len(wrote)-1)
	if len(wrote) > 3 {
		limit = max(2, len(wrote)/3)
	}
	var candidates []candidate
	for _, name := range names {
		edits := distance(strings.ToLower(wrote), strings.ToLower(name))
		contained := len(wrote) >= 2 && (strings.Contains(name, wrote) || len(name) >= 2 && strings.Contains(wrote, name))
		if edits <= limit || contained {
			candidates = append(candidates, candidate{name, edits})
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.edits, b.edits), strings.Compare(a.name, b.name))
	})
	var near []string
	for _, c := range candidates[:min(len(candidates), maxNear)] {
		near = append(near, c.name)
	}
	return near
}

// distance is how many letters must be added, removed or replaced to make one
// word of another.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// Either lists what somebody may choose from.
func Either(choices []string) string {
	last := len(choices) - 1
	if last < 1 {
		return strings.Join(choices, "")
	}
	return strings.Join(choices[:last], ", ") + " or " + choices[last]
}

// Meant asks whether somebody means one of the names who wrote another, as the end of a
// message; it is empty where none is near.
func Meant(wrote string, names []string) string {
	near := Near(wrote, names)
	if len(near) == 0 {
		return ""
	}
	return ": do you mean " + strings.Join(near, " or ") + "?"
}
