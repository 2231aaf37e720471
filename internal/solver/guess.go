// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package solver

import "slices"

// guessed is a version that an application has in a guess.
type guessed struct{ app, version int }

// guess says in which order applications are decided, and the newest version that
// each can have, for all that can be seen without a search: none has a newer one
// in any set that agrees with the guess so far. What is decided is as in the
// model. Where nothing is left to be decided, it is empty.
func (c *choice) guess(decided map[int]bool) []guessed {
	g := &guessing{choice: c, chosen: make(set, len(c.apps)), queue: make([]rank, len(c.apps)), ranges: make([][]versionRange, len(c.apps))}
	current := c.setOf(c.model)
	for i := range g.chosen {
		g.chosen[i] = -1
		if len(c.apps[i].picks) > 0 {
			g.queue[i] = rankPicked
		}
	}
	for i := range decided {
		g.settle(i, current[i])
	}
	var guess []guessed
	for {
		next := g.next()
		if next < 0 {
			return guess
		}
		version := g.newest(next)
		if version < 0 {
			return guess
		}
		guess = append(guess, guessed{app: next, version: version})
		g.settle(next, version)
	}
}

// guessing is a guess in the making.
type guessing struct {
	*choice
	chosen set
	// queue says of each application why it has to be decided.
	queue []rank
	// ranges that what is chosen asks for.
	ranges [][]versionRange
}

// rank says how soon an application is decided.
type rank int

const (
	rankNone rank = iota
	rankRecommended
	rankNeeded
	rankPicked
)

// settle chooses a version.
func (g *guessing) settle(i, version int) {
	g.chosen[i] = version
	follow := func(n need, why rank) {
		to := g.index[n.name]
		g.ranges[to] = append(g.ranges[to], n.versionRange)
		g.queue[to] = max(g.queue[to], why)
	}
	for _, n := range g.apps[i].versions[version].needs {
		follow(n, rankNeeded)
	}
	for _, n := range g.apps[i].versions[version].recommends {
		to := g.index[n.name]
		if g.kept[between{from: i, to: to}] && g.choosable(to, n.versionRange) {
			follow(n, rankRecommended)
		}
	}
}

// next returns the application that is decided next; -1 where there is none.
func (g *guessing) next() int {
	next, why := -1, rankNone
	for i, rank := range g.queue {
		if g.chosen[i] < 0 && rank > why {
			next, why = i, rank
		}
	}
	return next
}

// newest returns the newest version of an application that agrees with what is
// chosen, -1 where there is none.
func (g *guessing) newest(i int) int {
	agrees := func(v int) bool {
		version := g.apps[i].versions[v]
		if version.bar != unbarred || version.hopeless {
			return false
		}
		out := func(wanted versionRange) bool { return !g.takes(i, wanted)[v] }
		if slices.ContainsFunc(g.apps[i].picks, out) || slices.ContainsFunc(g.ranges[i], out) {
			return false
		}
		return !slices.ContainsFunc(version.needs, func(n need) bool {
			to := g.index[n.name]
			return g.chosen[to] >= 0 && !g.takes(to, n.versionRange)[g.chosen[to]]
		})
	}
	for v := len(g.apps[i].versions) - 1; v >= 0; v-- {
		if agrees(v) {
			return v
		}
	}
	return -1
}
