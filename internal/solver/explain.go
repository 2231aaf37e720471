// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package solver

import (
	"slices"
)

// failure says why no set is allowed.
func (e *encoding) failure() error {
	if e.solve(nil) != nil {
		return &Cycle{Paths: e.circlesInTheWay()}
	}
	e = encode(e.catalogue, true)
	facts := e.fewest(nil, e.facts)
	slices.SortStableFunc(facts, compareFacts)
	return &Unsatisfiable{Facts: e.told(facts), facts: facts}
}

// fewest returns facts that do not hold together with some literals, none of which
// could be left out. It begins from both ends, because one may lead to fewer.
func (e *encoding) fewest(background []int, facts []*fact) []*fact {
	conflict := func(some []*fact) bool {
		literals := slices.Clone(background)
		for _, fact := range some {
			literals = append(literals, fact.literal)
		}
		return e.solve(literals) == nil
	}
	forward := minimise(facts, conflict)
	backward := slices.Clone(facts)
	slices.Reverse(backward)
	backward = minimise(backward, conflict)
	if len(backward) < len(forward) {
		return backward
	}
	return forward
}

// circlesInTheWay returns circles of dependencies that together leave no set, none
// of which could be left out.
func (e *encoding) circlesInTheWay() [][]string {
	again := encode(e.catalogue, false)
	literals := make([]int, len(e.cycles))
	for k, circle := range e.cycles {
		literals[k] = again.fresh()
		again.add(append(again.unclosed(circle), -literals[k])...)
	}
	all := make([]int, len(e.cycles))
	for k := range all {
		all[k] = k
	}
	left := minimise(all, func(some []int) bool {
		var assumed []int
		for _, k := range some {
			assumed = append(assumed, literals[k])
		}
		return again.solve(assumed) == nil
	})
	slices.SortFunc(left, func(a, b int) int { return slices.Compare(e.cycles[a], e.cycles[b]) })
	paths := make([][]string, len(left))
	for n, k := range left {
		paths[n] = e.path(e.cycles[k])
	}
	return paths
}

// path names the applications of a circle.
func (e *encoding) path(circle []int) []string {
	names := make([]string, 0, len(circle)+1)
	for _, i := range circle {
		names = append(names, e.apps[i].name)
	}
	return append(names, e.apps[circle[0]].name)
}

// entangled returns the error for a search that has been given up; nil for others.
func (e *encoding) entangled() error {
	switch {
	case e.rounds <= mostRounds:
		return nil
	case len(e.cycles) == 0:
		return &Entangled{}
	}
	return &Entangled{Path: e.path(slices.MinFunc(e.cycles, slices.Compare))}
}

// minimise returns a part of items that conflicts and of which no smaller part
// does, for items that conflict. It tries to do without whole halves, so that a
// small conflict among many items is found in a few steps (QuickXplain, Junker
// 2004).
func minimise[T any](items []T, conflict func([]T) bool) []T {
	if conflict(nil) {
		return nil
	}
	var within func(background []T, fresh bool, items []T) []T
	within = func(background []T, fresh bool, items []T) []T {
		if fresh && conflict(background) {
			return nil
		}
		if len(items) == 1 {
			return items
		}
		half := len(items) / 2
		first, second := items[:half], items[half:]
		fromSecond := within(slices.Concat(background, first), true, second)
		fromFirst := within(slices.Concat(background, fromSecond), len(fromSecond) > 0, first)
		return slices.Concat(fromFirst, fromSecond)
	}
	return within(nil, false, items)
}
