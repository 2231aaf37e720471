// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package solver

import (
	"fmt"
	"slices"
	"strings"
)

// reference is the slow and obvious solver: it lists every set of versions, drops
// those that are not allowed, and then drops by one wish after the other.
type reference struct {
	problem Problem
	apps    []*app
	index   map[string]int
}

const absent = -1

// newReference takes valid problems only. It keeps every application of the
// catalogue, also what no pick leads to.
func newReference(problem Problem) *reference {
	all := problem
	for _, one := range problem.Catalogue {
		all.Picks = append(slices.Clone(all.Picks), Pick{Name: one.Name})
	}
	c, err := read(all)
	if err != nil {
		panic(err)
	}
	r := &reference{problem: problem, index: c.index}
	for i := range c.apps {
		r.apps = append(r.apps, &c.apps[i])
		c.apps[i].picks = nil
		for _, pick := range problem.Picks {
			if pick.Name == c.apps[i].name {
				picked, _ := parseRange(pick.Range)
				c.apps[i].picks = append(c.apps[i].picks, picked)
			}
		}
	}
	return r
}

// every calls visit with each set: a version by application, or absent.
func (r *reference) every(others int, visit func([]int)) {
	current := make([]int, len(r.apps))
	var step func(int)
	step = func(i int) {
		if i == len(r.apps) {
			visit(current)
			return
		}
		for v := absent; v < len(r.apps[i].versions)+others; v++ {
			current[i] = v
			step(i + 1)
		}
	}
	step(0)
}

func (r *reference) needs(s []int, i int) []need {
	if s[i] == absent {
		return nil
	}
	return r.apps[i].versions[s[i]].needs
}

func (r *reference) recommends(s []int, i int) []need {
	if s[i] == absent {
		return nil
	}
	return r.apps[i].versions[s[i]].recommends
}

func (r *reference) met(s []int, n need) bool {
	to := r.index[n.name]
	return s[to] != absent && n.takes(r.apps[to].versions[s[to]].number)
}

// mayBe tells whether a version may be in a set at all.
func (r *reference) mayBe(i, v int) bool {
	one, version := r.apps[i], r.apps[i].versions[v]
	if version.bar == barKubernetes {
		return false
	}
	installed := one.was != nil && one.was.Equal(version.number)
	named := slices.ContainsFunc(one.picks, func(p versionRange) bool { return p.names(version.number) })
	entry := r.entry(one.name, version.text)
	preview := entry.Preview || version.number.Prerelease() != ""
	return installed || !entry.Withdrawn && (!preview || named)
}

func (r *reference) entry(name, version string) Version {
	for _, one := range r.problem.Catalogue {
		for _, entry := range one.Versions {
			if one.Name == name && entry.Version == version {
				return entry
			}
		}
	}
	panic(name + " " + version)
}

// fits tells whether a set has what it needs and nothing that may not be.
func (r *reference) fits(s []int) bool {
	for i, v := range s {
		for _, pick := range r.apps[i].picks {
			if v == absent || !pick.takes(r.apps[i].versions[v].number) {
				return false
			}
		}
		if v != absent && !r.mayBe(i, v) {
			return false
		}
		for _, n := range r.needs(s, i) {
			if !r.met(s, n) {
				return false
			}
		}
	}
	return true
}

// reached returns what a pick leads to, or with dependencies alone what one
// application does.
func (r *reference) reached(s, start []int, recommended bool) map[int]bool {
	seen := map[int]bool{}
	var visit func(int)
	visit = func(i int) {
		for _, n := range r.needs(s, i) {
			if to := r.index[n.name]; !seen[to] {
				seen[to] = true
				visit(to)
			}
		}
		for _, n := range r.recommends(s, i) {
			if to := r.index[n.name]; recommended && r.met(s, n) && !seen[to] {
				seen[to] = true
				visit(to)
			}
		}
	}
	for _, i := range start {
		visit(i)
	}
	return seen
}

// lean tells whether something wants everything in a set.
func (r *reference) lean(s []int) bool {
	var picked []int
	for i, one := range r.apps {
		if len(one.picks) > 0 {
			picked = append(picked, i)
		}
	}
	reached := r.reached(s, picked, true)
	for i, v := range s {
		if v != absent && !reached[i] && !slices.Contains(picked, i) {
			return false
		}
	}
	return true
}

func (r *reference) circular(s []int) bool {
	for i := range s {
		if r.reached(s, []int{i}, false)[i] {
			return true
		}
	}
	return false
}

// possible tells whether a recommendation could be met by any version.
func (r *reference) possible(n need) bool {
	to := r.index[n.name]
	for v, version := range r.apps[to].versions {
		if n.takes(version.number) && r.mayBe(to, v) {
			return true
		}
	}
	return false
}

// recommendation returns whether i recommends to in a set, and whether it has it.
func (r *reference) recommendation(s []int, i, to int) (made, met bool) {
	for _, n := range r.recommends(s, i) {
		if r.index[n.name] == to && r.possible(n) {
			return true, r.met(s, n)
		}
	}
	return false, false
}

func (r *reference) wanted(s []int, i int) bool {
	for from := range s {
		if made, _ := r.recommendation(s, from, i); made {
			return true
		}
	}
	return s[i] != absent
}

// filtered keeps the sets that grant a wish, or all where none does.
func filtered(sets [][]int, grants func([]int) bool) [][]int {
	var kept [][]int
	for _, s := range sets {
		if grants(s) {
			kept = append(kept, s)
		}
	}
	if len(kept) == 0 {
		return sets
	}
	return kept
}

// best returns the set to be chosen; nil where none is allowed.
func (r *reference) best() []int {
	var sets [][]int
	r.every(0, func(s []int) {
		if r.fits(s) && r.lean(s) && !r.circular(s) {
			sets = append(sets, slices.Clone(s))
		}
	})
	if len(sets) == 0 {
		return nil
	}
	order := r.order()
	for _, i := range order {
		one := r.apps[i]
		mayMove := r.problem.UpgradeAll || slices.Contains(r.problem.Upgrade, one.name)
		if one.was != nil && one.installed >= 0 && !mayMove {
			sets = filtered(sets, func(s []int) bool { return !r.wanted(s, i) || s[i] == one.installed })
		}
	}
	for _, i := range order {
		if was := r.apps[i].was; was != nil {
			sets = filtered(sets, func(s []int) bool {
				return !r.wanted(s, i) || s[i] != absent && !r.apps[i].versions[s[i]].number.LessThan(was)
			})
		}
	}
	for _, i := range order {
		sets = filtered(sets, func(s []int) bool {
			return s[i] == absent || s[i] == r.apps[i].installed || !r.apps[i].versions[s[i]].endOfLife
		})
	}
	for _, i := range order {
		for to := range r.apps {
			if slices.ContainsFunc(sets, func(s []int) bool { _, met := r.recommendation(s, i, to); return met }) {
				sets = filtered(sets, func(s []int) bool { made, met := r.recommendation(s, i, to); return !made || met })
			}
		}
	}
	return r.newest(sets, order)
}

func (r *reference) order() []int {
	var picked, others []int
	for i, one := range r.apps {
		if len(one.picks) > 0 {
			picked = append(picked, i)
		} else {
			others = append(others, i)
		}
	}
	return slices.Concat(picked, others)
}

func (r *reference) newest(sets [][]int, order []int) []int {
	decided := map[int]bool{}
	decide := func(i int) {
		top := absent
		for _, s := range sets {
			top = max(top, s[i])
		}
		sets = filtered(sets, func(s []int) bool { return s[i] == top })
		decided[i] = true
	}
	for _, i := range order {
		if len(r.apps[i].picks) > 0 {
			decide(i)
		}
	}
	for {
		next := -1
		for _, recommended := range []bool{false, true} {
			for i := range r.apps {
				if next >= 0 || decided[i] {
					continue
				}
				for from := range decided {
					for _, n := range r.needs(sets[0], from) {
						if r.index[n.name] == i {
							next = i
						}
					}
					for _, n := range r.recommends(sets[0], from) {
						if recommended && r.index[n.name] == i && r.met(sets[0], n) {
							next = i
						}
					}
				}
			}
		}
		if next < 0 {
			break
		}
		decide(next)
	}
	if len(sets) != 1 {
		panic(fmt.Sprintf("%d sets are left", len(sets)))
	}
	return sets[0]
}

// satisfiable tells whether facts leave a choice to somebody who knows nothing
// else. One index beyond the versions stands for another version, without a flaw.
func (r *reference) satisfiable(facts []*fact, apps []app) bool {
	r = &reference{}
	used := map[int]int{}
	local := func(i int) int {
		if _, known := used[i]; !known {
			used[i] = len(r.apps)
			r.apps = append(r.apps, &apps[i])
		}
		return used[i]
	}
	for _, f := range facts {
		local(f.app)
		if f.kind == factNeed {
			local(f.to)
		}
	}
	found := false
	r.every(1, func(s []int) {
		found = found || !slices.ContainsFunc(facts, func(f *fact) bool { return !r.agrees(s, f, used) })
	})
	return found
}

func (r *reference) agrees(s []int, f *fact, local map[int]int) bool {
	i := local[f.app]
	one := r.apps[i]
	other := s[i] == len(one.versions)
	about := slices.Contains(f.versions, s[i]) || f.every && other
	in := func(i int) bool {
		versions := r.apps[i].versions
		return s[i] == len(versions) || s[i] != absent && f.wanted.takes(versions[s[i]].number)
	}
	switch f.kind {
	case factPick:
		return in(i)
	case factVersions:
		return !other
	case factNeed:
		return !about || in(local[f.to])
	default:
		return !about
	}
}

// isTrue tells whether the problem really says what a fact does.
func (r *reference) isTrue(f *fact, apps []app) bool {
	one := apps[f.app]
	for v, version := range one.versions {
		listed := slices.Contains(f.versions, v)
		allowed := !slices.ContainsFunc(one.picks, func(p versionRange) bool { return !p.takes(version.number) })
		if f.every && allowed && !listed {
			return false
		}
		if !listed {
			continue
		}
		entry := r.entry(one.name, version.text)
		switch f.kind {
		case factNeed:
			wanted := Requirement{Name: apps[f.to].name, Range: f.wanted.text}
			if !slices.Contains(entry.Dependencies, wanted) {
				return false
			}
		case factKubernetes:
			if entry.Kubernetes != f.detail {
				return false
			}
		case factWithdrawn, factPreview:
			if r.mayBe(r.index[one.name], v) {
				return false
			}
		default:
			return false
		}
	}
	if f.kind == factPick {
		return slices.Contains(r.problem.Picks, Pick{Name: one.name, Range: f.wanted.text})
	}
	return true
}

// lines says a lock in short.
func (l Lock) lines() string {
	var lines []string
	for _, entry := range l {
		lines = append(lines, fmt.Sprintf("%s %s [%s] (%s)", entry.Name, entry.Version, strings.Join(entry.DependsOn, " "), strings.Join(entry.Why, ", ")))
	}
	return strings.Join(lines, "\n")
}
