// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package solver

import (
	"fmt"
	"slices"
	"strings"
)

// lock says what was chosen, and why.
func (c *choice) lock() Lock {
	chosen := c.setOf(c.model)
	order, _ := c.installOrder(chosen)
	why := c.why(chosen)
	lock := make(Lock, 0, len(order))
	for _, i := range order {
		entry := Entry{Name: c.apps[i].name, Version: c.apps[i].versions[chosen[i]].text, Why: why[i]}
		for _, to := range c.needs(chosen, i) {
			entry.DependsOn = append(entry.DependsOn, c.apps[to].name)
		}
		entry.Notes = append(c.oddities(chosen, i), c.leftOut(chosen, i)...)
		lock = append(lock, entry)
	}
	return lock
}

// why says of each application what brought it into a set.
func (c *choice) why(chosen set) [][]string {
	why := make([][]string, len(chosen))
	note := func(reason string, leadsTo func(set, int) []int) {
		for i, version := range chosen {
			for _, to := range leadsTo(chosen, i) {
				why[to] = append(why[to], fmt.Sprintf("%s %s %s", reason, c.apps[i].name, c.apps[i].versions[version].text))
			}
		}
	}
	for i := range chosen {
		if len(c.apps[i].picks) > 0 {
			why[i] = append(why[i], "picked")
		}
	}
	note("needed by", c.needs)
	note("recommended by", c.takenBy)
	return why
}

// oddities says what is odd about the version of an application.
func (c *choice) oddities(chosen set, i int) []string {
	one := &c.apps[i]
	version := one.versions[chosen[i]]
	var notes []string
	if version.withdrawn {
		notes = append(notes, fmt.Sprintf("%s is withdrawn and stays because it is installed%s", version.text, because(version.withdrawnReason)))
	}
	switch {
	case version.endOfLife && chosen[i] == one.installed:
		notes = append(notes, version.text+" is past its end of life and stays because it is installed")
	case version.endOfLife:
		notes = append(notes, version.text+" is past its end of life; no version that is not fits")
	}
	if one.was != nil && one.installed < 0 {
		notes = append(notes, fmt.Sprintf("%s, which is installed, is not in the catalogue any more", one.was.Original()))
	}
	return notes
}

// leftOut says which recommendations of an application were left out, and why.
func (c *choice) leftOut(chosen set, i int) []string {
	var notes []string
	for _, need := range c.apps[i].versions[chosen[i]].recommends {
		to := c.index[need.name]
		if slices.Contains(c.takenBy(chosen, i), to) {
			continue
		}
		text := strings.TrimSpace(need.name + " " + need.text)
		notes = append(notes, fmt.Sprintf("recommends %s, which is left out: %s", text, c.unmet(chosen, i, to)))
	}
	return notes
}

// unmet says why a recommendation is not met.
func (c *choice) unmet(chosen set, i, to int) string {
	if chosen[to] >= 0 {
		return fmt.Sprintf("%s is at %s", c.apps[to].name, c.apps[to].versions[chosen[to]].text)
	}
	if c.separable == nil {
		c.separable = encode(c.catalogue, true)
	}
	e := c.separable
	var met int
	for _, one := range e.recommendations {
		if one.from == i && one.to == to && holdsAny(one.groups, chosen[i]) {
			met = one.met
		}
	}
	facts := c.relevant(e, chosen, to)
	literals := []int{met}
	for _, fact := range facts {
		literals = append(literals, fact.literal)
	}
	if e.solve(literals) != nil {
		return "it does not go together with other recommendations, or closes a circle of dependencies"
	}
	return strings.Join(c.told(e.fewest([]int{met}, facts)), "; ")
}

func holdsAny(groups []recommended, version int) bool {
	return slices.ContainsFunc(groups, func(group recommended) bool { return slices.Contains(group.versions, version) })
}

// relevant returns what may stand against an application that is not in a set: the
// facts about it and what it may depend on, what else is chosen, and the wishes
// that were granted.
func (c *choice) relevant(e *encoding, chosen set, to int) []*fact {
	leadsTo := make([][]int, len(c.apps))
	for i := range c.edges {
		for other := range c.edges[i] {
			leadsTo[i] = append(leadsTo[i], other)
		}
	}
	about := closure([]int{to}, leadsTo)
	var facts []*fact
	for _, fact := range e.facts {
		if about[fact.app] && chosen[fact.app] < 0 {
			facts = append(facts, fact)
		}
	}
	for i, version := range chosen {
		if !about[i] {
			continue
		}
		if version >= 0 {
			facts = append(facts, &fact{kind: factLocked, app: i, versions: []int{version}, literal: e.of[i].at[version]})
			continue
		}
		if literal := c.of[i].supported; literal != 0 && slices.Contains(c.held, literal) {
			ended := c.endOfLife(i)
			ended.literal = e.of[i].supported
			facts = append(facts, ended)
		}
		if literal := c.of[i].kept; literal != 0 && slices.Contains(c.held, literal) {
			facts = append(facts, &fact{kind: factInstalled, app: i, literal: e.of[i].kept})
		}
	}
	return facts
}
