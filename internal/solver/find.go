// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package solver

import (
	"maps"
	"slices"
)

// set is one version of some applications: an index by application, -1 for those
// that are not in it.
type set []int

// setOf reads a model.
func (e *encoding) setOf(model []bool) set {
	found := make(set, len(e.apps))
	for i := range found {
		found[i] = slices.IndexFunc(e.of[i].at, func(literal int) bool { return holds(model, literal) })
	}
	return found
}

// find returns a model of an allowed set in which the literals hold, or nil where
// there is none. They are expected to have strict among them. Circles, and what only
// holds itself in the set, are excluded when they are met: there are too many to
// exclude them all. Past mostRounds it finds nothing, and what it did not find says
// nothing.
func (e *encoding) find(assumed []int) []bool {
	for e.rounds <= mostRounds {
		model := e.solve(assumed)
		if model == nil {
			return nil
		}
		chosen := e.setOf(model)
		circles, idle := e.circles(chosen), e.idle(chosen)
		if len(circles) == 0 && len(idle) == 0 {
			return model
		}
		e.rounds++
		for _, circle := range circles {
			e.cycles = append(e.cycles, circle)
			e.add(append(e.unclosed(circle), -e.strict)...)
		}
		for _, group := range idle {
			e.excludeIdle(group)
		}
	}
	return nil
}

// mostRounds bounds how often circles are met and excluded. Catalogues that people
// keep need a few rounds; one of hundreds of applications that depend on each other
// at random would never end.
const mostRounds = 200

// unclosed returns the clause that one dependency of a circle is not there.
func (e *encoding) unclosed(circle []int) []int {
	var clause []int
	for k, from := range circle {
		clause = append(clause, -e.edges[from][circle[(k+1)%len(circle)]])
	}
	return clause
}

// excludeIdle adds that of some applications none is there unless one is wanted
// from outside.
func (e *encoding) excludeIdle(group map[int]bool) {
	members := slices.Sorted(maps.Keys(group))
	var outside []int
	for _, member := range members {
		outside = append(outside, e.supporters(member, group)...)
	}
	for _, member := range members {
		e.add(append([]int{-e.strict, -e.of[member].present}, outside...)...)
	}
}

// needs returns what an application of a set depends on, as indices.
func (e *encoding) needs(chosen set, i int) []int {
	if chosen[i] < 0 {
		return nil
	}
	wanted := e.apps[i].versions[chosen[i]].needs
	found := make([]int, len(wanted))
	for k, need := range wanted {
		found[k] = e.index[need.name]
	}
	return found
}

// takenBy returns what an application of a set recommends and has.
func (e *encoding) takenBy(chosen set, i int) []int {
	var found []int
	if chosen[i] < 0 {
		return nil
	}
	for _, need := range e.apps[i].versions[chosen[i]].recommends {
		to := e.index[need.name]
		if chosen[to] >= 0 && need.takes(e.apps[to].versions[chosen[to]].number) {
			found = append(found, to)
		}
	}
	return found
}

// installOrder returns the applications of a set, each behind what it depends on
// and otherwise by name, and those that are left because they lie on a circle of
// dependencies or behind one.
func (e *encoding) installOrder(chosen set) (order, left []int) {
	placed := make([]bool, len(chosen))
	for i, version := range chosen {
		if version >= 0 {
			left = append(left, i)
		}
	}
	ready := func(i int) bool {
		return !slices.ContainsFunc(e.needs(chosen, i), func(to int) bool { return !placed[to] })
	}
	for len(left) > 0 {
		next := slices.IndexFunc(left, ready)
		if next < 0 {
			break
		}
		placed[left[next]] = true
		order = append(order, left[next])
		left = slices.Delete(left, next, next+1)
	}
	return order, left
}

// circles returns shortest circles of dependencies in a set, no two of which share
// an application. Each begins with its first application by name.
func (e *encoding) circles(chosen set) [][]int {
	_, left := e.installOrder(chosen)
	used := map[int]bool{}
	var found [][]int
	for _, start := range left {
		if used[start] {
			continue
		}
		if circle := e.circle(chosen, start, used); circle != nil {
			for _, i := range circle {
				used[i] = true
			}
			found = append(found, rotated(circle))
		}
	}
	return found
}

// circle returns a shortest way from an application back to it that avoids some.
func (e *encoding) circle(chosen set, start int, avoid map[int]bool) []int {
	from := map[int]int{}
	queue := []int{start}
	for len(queue) > 0 {
		current := queue[0]
		queue = queue[1:]
		for _, next := range e.needs(chosen, current) {
			if next == start {
				path := []int{current}
				for current != start {
					current = from[current]
					path = append(path, current)
				}
				slices.Reverse(path)
				return path
			}
			if _, seen := from[next]; !seen && !avoid[next] {
				from[next] = current
				queue = append(queue, next)
			}
		}
	}
	return nil
}

func rotated(circle []int) []int {
	at := slices.Index(circle, slices.Min(circle))
	return slices.Concat(circle[at:], circle[:at])
}

// idle returns groups of applications of a set that no pick leads to. Each group
// has everything in the set that leads to one of its members.
func (e *encoding) idle(chosen set) []map[int]bool {
	leadsTo := make([][]int, len(chosen))
	ledFrom := make([][]int, len(chosen))
	var reached []int
	for i, version := range chosen {
		if version < 0 {
			continue
		}
		leadsTo[i] = slices.Concat(e.needs(chosen, i), e.takenBy(chosen, i))
		for _, to := range leadsTo[i] {
			ledFrom[to] = append(ledFrom[to], i)
		}
		if len(e.apps[i].picks) > 0 {
			reached = append(reached, i)
		}
	}
	wanted := closure(reached, leadsTo)
	handled := map[int]bool{}
	var found []map[int]bool
	for i, version := range chosen {
		if version < 0 || wanted[i] || handled[i] {
			continue
		}
		group := closure([]int{i}, ledFrom)
		maps.Copy(handled, group)
		found = append(found, group)
	}
	return found
}

// closure returns what edges lead to, with where they begin.
func closure(start []int, edges [][]int) map[int]bool {
	found := map[int]bool{}
	for queue := slices.Clone(start); len(queue) > 0; queue = queue[1:] {
		if !found[queue[0]] {
			found[queue[0]] = true
			queue = append(queue, edges[queue[0]]...)
		}
	}
	return found
}
