// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package solver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// fact is something that the input says and that a choice has to agree with. It
// is also what an explanation is made of. Where a fact is left out, the rest is
// read as somebody would who does not know it: who does not know the versions of
// an application reckons with another one, which has no flaw.
type fact struct {
	kind factKind
	// app that it is about.
	app int
	// versions of it, as indices from the oldest to the newest.
	versions []int
	// every says that it holds for other versions too, because it does for all that
	// the picks allow.
	every bool
	// to is what a dependency leads to.
	to int
	// wanted is the range of a pick or a dependency.
	wanted versionRange
	// detail is the range of Kubernetes, or why versions are withdrawn.
	detail string
	// literal that holds where the fact counts.
	literal int
}

type factKind int

// In the order in which facts are told.
const (
	factPick factKind = iota
	factLocked
	factNeed
	factKubernetes
	factWithdrawn
	factPreview
	factEndOfLife
	factInstalled
	factVersions
)

// gather returns the facts of a catalogue.
func (c *catalogue) gather() []*fact {
	var found []*fact
	for i := range c.apps {
		one := &c.apps[i]
		for _, pick := range one.picks {
			found = append(found, &fact{kind: factPick, app: i, wanted: pick})
		}
		found = append(found, &fact{kind: factVersions, app: i})
		groups := map[string]*fact{}
		group := func(key string, version int, made fact) {
			if groups[key] == nil {
				made.app = i
				groups[key] = &made
				found = append(found, groups[key])
			}
			groups[key].versions = append(groups[key].versions, version)
		}
		for v, version := range one.versions {
			for _, need := range version.needs {
				group("need/"+need.name+"/"+need.text, v, fact{kind: factNeed, to: c.index[need.name], wanted: need.versionRange})
			}
			switch version.bar {
			case barKubernetes:
				group("kubernetes/"+version.kubernetes, v, fact{kind: factKubernetes, detail: version.kubernetes})
			case barWithdrawn:
				group("withdrawn/"+version.withdrawnReason, v, fact{kind: factWithdrawn, detail: version.withdrawnReason})
			case barPreview:
				group("preview", v, fact{kind: factPreview})
			}
		}
	}
	for _, fact := range found {
		fact.every = c.every(fact)
	}
	return found
}

// every tells whether a fact is true of all versions that the picks allow.
func (c *catalogue) every(f *fact) bool {
	allowed := c.apps[f.app].allowed()
	if len(allowed) == 0 || f.kind == factPick || f.kind == factVersions {
		return false
	}
	return !slices.ContainsFunc(allowed, func(v int) bool { return !slices.Contains(f.versions, v) })
}

// allowed returns the versions that the picks allow; all where there is none.
func (a *app) allowed() []int {
	var found []int
	for v := range a.versions {
		if !slices.ContainsFunc(a.picks, func(pick versionRange) bool { return !pick.takes(a.versions[v].number) }) {
			found = append(found, v)
		}
	}
	return found
}

// text says a fact in words.
func (c *catalogue) text(f *fact) string {
	one := &c.apps[f.app]
	subject, plural := c.subject(f)
	verb := func(singular, several string) string {
		if plural {
			return several
		}
		return singular
	}
	switch f.kind {
	case factPick:
		return strings.TrimSpace("the platform picks " + one.name + " " + f.wanted.text)
	case factLocked:
		return fmt.Sprintf("%s is at %s", one.name, one.versions[f.versions[0]].text)
	case factNeed:
		return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", subject, verb("needs", "need"), c.apps[f.to].name, f.wanted.text))
	case factKubernetes:
		return fmt.Sprintf("%s %s Kubernetes %s, %s", subject, verb("needs", "need"), f.detail, c.cluster())
	case factWithdrawn:
		return subject + verb(" is", " are") + " withdrawn" + because(f.detail)
	case factPreview:
		return subject + verb(" is a preview", " are previews") + ", taken only where a pick names that version"
	case factEndOfLife:
		return subject + verb(" is", " are") + " past end of life"
	case factInstalled:
		return fmt.Sprintf("%s stays at %s, which is installed", one.name, one.was.Original())
	default:
		return one.stock()
	}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func (c *catalogue) cluster() string {
	const most = 3
	known := slices.Compact(slices.Sorted(slices.Values(c.kubernetes)))
	switch {
	case len(known) == 0:
		return "and the version of the cluster is not known"
	case len(known) == 1:
		return "the cluster has " + known[0]
	case len(known) > most:
		return fmt.Sprintf("the clusters have %s and %d more versions", strings.Join(known[:most], ", "), len(known)-most)
	}
	return "the clusters have " + strings.Join(known, ", ")
}

// stock says which versions there are.
func (a *app) stock() string {
	switch n := len(a.versions); {
	case !a.known:
		return "application " + a.name + " is not in the catalogue"
	case n == 0:
		return a.name + " has no versions"
	case n == 1:
		return a.name + " has only version " + a.versions[0].text
	}
	all := make([]int, len(a.versions))
	for i := range all {
		all[i] = i
	}
	if len(all) > mostNamed {
		return fmt.Sprintf("%s has %d versions, from %s to %s", a.name, len(all), a.versions[0].text, a.versions[len(all)-1].text)
	}
	return a.name + " has versions " + a.list(all)
}

// mostNamed is how many versions are named one by one.
const mostNamed = 8

// list names versions.
func (a *app) list(versions []int) string {
	names := make([]string, len(versions))
	for i, v := range versions {
		names[i] = a.versions[v].text
	}
	return strings.Join(names, ", ")
}

// subject names the versions that a fact is about, and tells whether they are
// several as grammar sees it.
func (c *catalogue) subject(f *fact) (text string, plural bool) {
	one := &c.apps[f.app]
	allowed := one.allowed()
	ranges := make([]string, 0, len(one.picks))
	exact := false
	for _, pick := range one.picks {
		exact = exact || pick.exact != nil
		if pick.text != "" {
			ranges = append(ranges, pick.text)
		}
	}
	within := strings.Join(ranges, " and ")
	versions := f.versions
	if f.every {
		versions = allowed
	}
	switch n := len(versions); {
	case n == 0:
		return one.name, false
	case n == 1 && (!f.every || exact):
		return one.name + " " + one.list(versions), false
	case n == 1 && len(one.versions) == 1:
		return one.name + " " + one.list(versions) + ", its only version,", false
	case n == 1:
		return fmt.Sprintf("%s %s, the only version in %s,", one.name, one.list(versions), within), false
	case f.every && (within == "" || len(f.versions) == len(one.versions)):
		return "every version of " + one.name, false
	case f.every:
		return fmt.Sprintf("every version of %s in %s", one.name, within), false
	case n > mostNamed:
		return fmt.Sprintf("%d versions of %s from %s to %s", n, one.name, one.versions[versions[0]].text, one.versions[versions[n-1]].text), true
	}
	return one.name + " " + one.list(versions), true
}

// told puts facts into the order in which they are told.
func (c *catalogue) told(facts []*fact) []string {
	facts = slices.Clone(facts)
	slices.SortStableFunc(facts, compareFacts)
	texts := make([]string, len(facts))
	for i, fact := range facts {
		texts[i] = c.text(fact)
	}
	return texts
}

func compareFacts(a, b *fact) int {
	return cmp.Or(
		cmp.Compare(a.kind, b.kind), cmp.Compare(a.app, b.app), cmp.Compare(a.to, b.to),
		cmp.Compare(a.wanted.text, b.wanted.text), slices.Compare(a.versions, b.versions),
	)
}
