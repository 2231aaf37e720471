// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package solver

import (
	"fmt"
	"maps"
	"slices"
)

// encoding says in clauses which sets of versions are allowed.
type encoding struct {
	*catalogue
	engine
	of []appVariables
	// facts that can be left out one by one; none where all of them always count,
	// which makes for fewer and shorter clauses.
	facts []*fact
	// strict holds where dependencies lead nowhere back, and nothing is in the set
	// that nothing wants.
	strict int
	groups map[string]int
	// edges are the dependencies between applications, by the one that depends.
	edges           []map[int]int
	recommendations []*recommendation
	// cycles are the circles of dependencies that were met and excluded.
	cycles [][]int
	// rounds in which some were.
	rounds int
}

// appVariables are the literals about one application.
type appVariables struct {
	// present holds where the application is in the set.
	present int
	// atLeast holds, by index, where it is at that version or a newer one. The
	// first holds where it is at any version of the catalogue; where it is present
	// and that does not hold, it is at another version.
	atLeast []int
	// at holds, by index, where it is at that version.
	at []int
	// kept and notBelow hold only where it is at the installed version, or not below
	// it, and supported only where it is not past its end of life. They are 0 where
	// there is no such question.
	kept, notBelow, supported int
}

// recommendation is what the versions of one application recommend of another.
type recommendation struct {
	from, to int
	// possible is false for the versions that recommend what nothing in the
	// catalogue can be.
	possible bool
	groups   []recommended
	// made holds where the recommending application is at such a version, kept only
	// where none of them goes unmet, and met only where it is made and met.
	made, kept, met int
}

// recommended is a range, and the versions that recommend it.
type recommended struct {
	versions []int
	wanted   versionRange
}

// encode makes the clauses; separable says that facts can be left out.
func encode(c *catalogue, separable bool) *encoding {
	e := &encoding{catalogue: c, groups: map[string]int{}}
	e.of = make([]appVariables, len(c.apps))
	e.edges = make([]map[int]int, len(c.apps))
	e.strict = e.fresh()
	for i := range c.apps {
		e.encodeApp(i)
	}
	for _, fact := range c.gather() {
		if separable {
			fact.literal = e.fresh()
			e.facts = append(e.facts, fact)
			e.encodeFact(fact, -fact.literal)
		} else {
			e.encodeFact(fact)
		}
	}
	for i := range c.apps {
		e.encodeEdges(i)
		e.encodeRecommendations(i)
	}
	for i := range c.apps {
		e.encodeSupport(i)
		e.encodeInstalled(i)
		e.encodeEndOfLife(i)
	}
	return e
}

// encodeApp makes an application be at one version at most. The library tries
// false first: so the variables are made such that this is absence, and else the
// newest version.
func (e *encoding) encodeApp(i int) {
	n := len(e.apps[i].versions)
	v := appVariables{present: e.fresh(), atLeast: make([]int, n), at: make([]int, n)}
	for k := range v.atLeast {
		v.atLeast[k] = e.fresh()
		if k > 0 {
			v.atLeast[k] = -v.atLeast[k]
			e.add(-v.atLeast[k], v.atLeast[k-1])
		}
	}
	if n > 0 {
		e.add(-v.atLeast[0], v.present)
	}
	for k := range v.at {
		if k == n-1 {
			v.at[k] = v.atLeast[k]
			continue
		}
		v.at[k] = e.fresh()
		e.add(-v.at[k], v.atLeast[k])
		e.add(-v.at[k], -v.atLeast[k+1])
		e.add(v.at[k], -v.atLeast[k], v.atLeast[k+1])
	}
	e.of[i] = v
}

// listed returns a literal that holds where an application is at a version of the
// catalogue.
func (e *encoding) listed(i int) (literal int, possible bool) {
	if v := e.of[i]; len(v.atLeast) > 0 {
		return v.atLeast[0], true
	}
	return 0, false
}

// group returns a literal that holds where an application is at one of some
// versions.
func (e *encoding) group(i int, versions []int) int {
	v := e.of[i]
	first, last := versions[0], versions[len(versions)-1]
	switch {
	case len(versions) == 1:
		return v.at[first]
	case len(versions) == last-first+1 && last == len(v.at)-1:
		return v.atLeast[first]
	}
	key := fmt.Sprint(i, versions)
	if found := e.groups[key]; found != 0 {
		return found
	}
	group := e.fresh()
	e.groups[key] = group
	clause := []int{-group}
	for _, version := range versions {
		e.add(-v.at[version], group)
		clause = append(clause, v.at[version])
	}
	e.add(clause...)
	return group
}

// within adds that an application is present and not at a version out of range,
// wherever none of the other literals holds.
func (e *encoding) within(i int, wanted versionRange, unless ...int) {
	clause := func(more ...int) { e.add(slices.Concat(unless, more)...) }
	v := e.of[i]
	clause(v.present)
	listed, possible := e.listed(i)
	if !possible {
		return
	}
	takes := e.takes(i, wanted)
	first := slices.Index(takes, true)
	if first < 0 {
		clause(-listed)
		return
	}
	last := len(takes) - 1
	for !takes[last] {
		last--
	}
	if first > 0 {
		clause(-listed, v.atLeast[first])
	}
	if last < len(takes)-1 {
		clause(-v.atLeast[last+1])
	}
	for k := first; k < last; k++ {
		if !takes[k] {
			clause(-v.at[k])
		}
	}
}

// encodeFact adds what a fact says, wherever none of the other literals holds.
func (e *encoding) encodeFact(f *fact, unless ...int) {
	clause := func(more ...int) { e.add(slices.Concat(unless, more)...) }
	within := func(to int, more ...int) { e.within(to, f.wanted, slices.Concat(unless, more)...) }
	v := e.of[f.app]
	listed, possible := e.listed(f.app)
	switch f.kind {
	case factPick:
		within(f.app)
	case factVersions:
		if possible {
			clause(-v.present, listed)
		} else {
			clause(-v.present)
		}
	case factNeed:
		switch {
		case f.every && len(f.versions) == len(v.at):
			within(f.to, -v.present)
		case f.every:
			depends := e.fresh()
			e.add(-e.group(f.app, f.versions), depends)
			e.add(-v.present, listed, depends)
			within(f.to, -depends)
		default:
			within(f.to, -e.group(f.app, f.versions))
		}
	default:
		for _, version := range f.versions {
			clause(-v.at[version])
		}
		if f.every {
			clause(-v.present, listed)
		}
	}
}

// encodeEdges notes which applications an application may depend on.
func (e *encoding) encodeEdges(i int) {
	to := map[int][]int{}
	for v, version := range e.apps[i].versions {
		for _, need := range version.needs {
			to[e.index[need.name]] = append(to[e.index[need.name]], v)
		}
	}
	e.edges[i] = map[int]int{}
	for _, other := range slices.Sorted(maps.Keys(to)) {
		e.edges[i][other] = e.group(i, to[other])
	}
}

// encodeRecommendations adds the recommendations of one application, apart for
// those that can be met and those that cannot.
func (e *encoding) encodeRecommendations(i int) {
	type key struct {
		to         int
		impossible bool
	}
	found := map[key]*recommendation{}
	var order []*recommendation
	for v, version := range e.apps[i].versions {
		for _, need := range version.recommends {
			to := e.index[need.name]
			possible := e.choosable(to, need.versionRange)
			made := found[key{to, !possible}]
			if made == nil {
				made = &recommendation{from: i, to: to, possible: possible}
				found[key{to, !possible}] = made
				order = append(order, made)
			}
			same := func(other recommended) bool { return other.wanted.text == need.text }
			if at := slices.IndexFunc(made.groups, same); at >= 0 {
				made.groups[at].versions = append(made.groups[at].versions, v)
			} else {
				made.groups = append(made.groups, recommended{versions: []int{v}, wanted: need.versionRange})
			}
		}
	}
	slices.SortStableFunc(order, func(a, b *recommendation) int { return a.to - b.to })
	for _, one := range order {
		e.encodeRecommendation(one)
	}
	e.recommendations = append(e.recommendations, order...)
}

func (e *encoding) encodeRecommendation(r *recommendation) {
	r.kept, r.met = e.fresh(), e.fresh()
	var all []int
	for _, group := range r.groups {
		e.within(r.to, group.wanted, -r.kept, -e.group(r.from, group.versions))
		all = append(all, group.versions...)
	}
	slices.Sort(all)
	r.made = e.group(r.from, all)
	e.add(-r.met, r.kept)
	e.add(-r.met, r.made)
}

// choosable tells whether some version in a range may be chosen at all.
func (e *encoding) choosable(i int, wanted versionRange) bool {
	for v, takes := range e.takes(i, wanted) {
		if takes && e.apps[i].versions[v].bar == unbarred {
			return true
		}
	}
	return false
}

// encodeSupport adds that an application is there for a reason.
func (e *encoding) encodeSupport(i int) {
	if len(e.apps[i].picks) == 0 {
		e.add(e.support(i, nil)...)
	}
}

// support returns the clause that an application that is present is wanted by
// another one, leaving out some of the others.
func (e *encoding) support(i int, without map[int]bool) []int {
	clause := []int{-e.strict, -e.of[i].present}
	return append(clause, e.supporters(i, without)...)
}

func (e *encoding) supporters(i int, without map[int]bool) []int {
	var found []int
	for from := range e.edges {
		if literal, depends := e.edges[from][i]; depends && !without[from] {
			found = append(found, literal)
		}
	}
	for _, one := range e.recommendations {
		if one.to == i && one.possible && !without[one.from] {
			found = append(found, one.met)
		}
	}
	return found
}

// encodeInstalled makes the literals that hold only where an application keeps
// its version, or does not go below it. One that is recommended and left out has
// not kept it.
func (e *encoding) encodeInstalled(i int) {
	one := &e.apps[i]
	if one.was == nil {
		return
	}
	v := &e.of[i]
	if one.installed >= 0 && !one.upgrade {
		v.kept = e.fresh()
		e.stays(i, v.kept, v.at[one.installed])
	}
	v.notBelow = e.fresh()
	from := slices.IndexFunc(one.versions, func(other version) bool { return !other.number.LessThan(one.was) })
	if from < 0 {
		e.stays(i, v.notBelow)
	} else {
		e.stays(i, v.notBelow, v.atLeast[from])
	}
}

// stays adds that where a literal holds, an application that is wanted is where
// another literal says.
func (e *encoding) stays(i, where int, is ...int) {
	e.add(append([]int{-where, -e.of[i].present}, is...)...)
	for _, one := range e.recommendations {
		if one.to == i && one.possible {
			e.add(append([]int{-where, -one.made}, is...)...)
		}
	}
}

// encodeEndOfLife makes the literal that holds only where an application is not
// past its end of life, or is at the installed version.
func (e *encoding) encodeEndOfLife(i int) {
	if ended := e.endOfLife(i); len(ended.versions) > 0 {
		e.of[i].supported = e.fresh()
		e.encodeFact(ended, -e.of[i].supported)
	}
}

// endOfLife returns the fact that versions are past their end of life; the installed
// one does not count.
func (c *catalogue) endOfLife(i int) *fact {
	found := &fact{kind: factEndOfLife, app: i}
	for k, version := range c.apps[i].versions {
		if version.endOfLife && k != c.apps[i].installed {
			found.versions = append(found.versions, k)
		}
	}
	found.every = c.every(found)
	return found
}
