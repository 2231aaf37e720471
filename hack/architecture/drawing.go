// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// floorsOf returns how high each room is: one above the highest room that it imports.
// Go allows no circle of imports.
func floorsOf(rooms []*room) map[string]int {
	byName := map[string]*room{}
	for _, r := range rooms {
		byName[r.name] = r
	}
	floors := map[string]int{}
	var floor func(name string) int
	floor = func(name string) int {
		if known, ok := floors[name]; ok {
			return known
		}
		highest := 0
		if r := byName[name]; r != nil {
			for _, imported := range r.imports {
				highest = max(highest, floor(imported)+1)
			}
		}
		floors[name] = highest
		return highest
	}
	for _, r := range rooms {
		floor(r.name)
	}
	return floors
}

// reduced returns what a room imports without what it reaches by way of another one
// that it imports: the drawing would be a thicket.
func reduced(rooms []*room) map[string][]string {
	imports := map[string][]string{}
	for _, r := range rooms {
		imports[r.name] = r.imports
	}
	var reaches func(from, to string) bool
	reaches = func(from, to string) bool {
		return from == to || slices.ContainsFunc(imports[from], func(next string) bool { return reaches(next, to) })
	}
	result := map[string][]string{}
	for name, all := range imports {
		result[name] = slices.DeleteFunc(slices.Clone(all), func(to string) bool {
			return slices.ContainsFunc(all, func(other string) bool { return other != to && reaches(other, to) })
		})
	}
	return result
}

// drawing is a Mermaid graph of the rooms, floor by floor, the highest first.
func drawing(rooms []*room) string {
	floors, arrows := floorsOf(rooms), reduced(rooms)
	highest := 0
	for _, floor := range floors {
		highest = max(highest, floor)
	}
	id := func(name string) string { return strings.NewReplacer("/", "_", "-", "_").Replace(name) }
	var out strings.Builder
	out.WriteString("```mermaid\nflowchart TD\n")
	for floor := highest; floor >= 0; floor-- {
		for _, r := range rooms {
			if floors[r.name] == floor {
				fmt.Fprintf(&out, "  %s[%s]\n", id(r.name), strings.TrimPrefix(r.name, "internal/"))
			}
		}
	}
	for floor := highest; floor >= 0; floor-- {
		for _, r := range rooms {
			if floors[r.name] != floor {
				continue
			}
			for _, to := range arrows[r.name] {
				fmt.Fprintf(&out, "  %s --> %s\n", id(r.name), id(to))
			}
		}
	}
	out.WriteString("```\n")
	return out.String()
}
