// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package solver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/strata-project/strata/internal/versions"
)

// catalogue is what the picks can lead to, in an order that does not depend on
// that of the input.
type catalogue struct {
	apps       []app
	index      map[string]int
	kubernetes []string
	// accepted keeps what takes has found.
	accepted map[accepting][]bool
}

// accepting is an application and a range of its versions.
type accepting struct {
	app  int
	text string
}

// takes tells of each version of an application whether it is in a range.
func (c *catalogue) takes(i int, wanted versionRange) []bool {
	key := accepting{app: i, text: wanted.text}
	if found, known := c.accepted[key]; known {
		return found
	}
	found := make([]bool, len(c.apps[i].versions))
	for k := range found {
		found[k] = wanted.takes(c.apps[i].versions[k].number)
	}
	c.accepted[key] = found
	return found
}

// app is one application; one that is not in the catalogue has no versions.
type app struct {
	name  string
	known bool
	// versions from the oldest to the newest.
	versions []version
	picks    []versionRange
	// was is the version that is installed, nil for none, and installed its index in
	// versions, -1 where it is not there.
	was       *semver.Version
	installed int
	upgrade   bool
}

type version struct {
	text   string
	number *semver.Version
	// needs and recommends are sorted by name.
	needs, recommends []need
	kubernetes        string
	// bar says why the version may not be chosen.
	bar             bar
	withdrawn       bool
	withdrawnReason string
	endOfLife       bool
	// hopeless is true where it is plain that no set has it: it needs what no version
	// can be that might be chosen.
	hopeless bool
}

type need struct {
	name string
	versionRange
}

// bar is what keeps a version from being chosen.
type bar int

const (
	unbarred bar = iota
	barKubernetes
	barWithdrawn
	barPreview
)

// reader reads a problem.
type reader struct {
	problem Problem
	entries map[string]*Application
	ranges  map[string]versionRange
}

// read returns what the picks can lead to, or *Invalid.
func read(problem Problem) (*catalogue, error) {
	r := &reader{problem: problem, entries: map[string]*Application{}, ranges: map[string]versionRange{}}
	for i := range problem.Catalogue {
		entry := &problem.Catalogue[i]
		field := fmt.Sprintf("catalogue[%d].name", i)
		if entry.Name == "" {
			return nil, &Invalid{Field: field, Reason: "is empty"}
		}
		if r.entries[entry.Name] != nil {
			return nil, &Invalid{Application: entry.Name, Field: field, Reason: "is in the catalogue twice"}
		}
		r.entries[entry.Name] = entry
	}
	apps := map[string]*app{}
	queue, err := r.picks(apps)
	if err != nil {
		return nil, err
	}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if err := r.versions(apps[name]); err != nil {
			return nil, err
		}
		for _, version := range apps[name].versions {
			for _, need := range slices.Concat(version.needs, version.recommends) {
				if apps[need.name] == nil {
					apps[need.name] = &app{name: need.name, installed: -1}
					queue = append(queue, need.name)
				}
			}
		}
	}
	found := &catalogue{index: map[string]int{}, accepted: map[accepting][]bool{}, kubernetes: problem.Kubernetes}
	for _, name := range slices.Sorted(maps.Keys(apps)) {
		found.index[name] = len(found.apps)
		found.apps = append(found.apps, *apps[name])
	}
	if err := r.installed(found); err != nil {
		return nil, err
	}
	for i := range found.apps {
		found.apps[i].open()
	}
	found.despair()
	return found, nil
}

// picks reads the picks, and returns the names of what they pick.
func (r *reader) picks(apps map[string]*app) ([]string, error) {
	for i, pick := range r.problem.Picks {
		if pick.Name == "" {
			return nil, &Invalid{Field: fmt.Sprintf("picks[%d].name", i), Reason: "is empty"}
		}
		picked, err := r.parseRange(pick.Range)
		if err != nil {
			return nil, &Invalid{Application: pick.Name, Field: fmt.Sprintf("picks[%d].range", i), Reason: err.Error()}
		}
		if apps[pick.Name] == nil {
			apps[pick.Name] = &app{name: pick.Name, installed: -1}
		}
		one := apps[pick.Name]
		if !slices.ContainsFunc(one.picks, func(other versionRange) bool { return other.text == picked.text }) {
			one.picks = append(one.picks, picked)
		}
	}
	for _, one := range apps {
		slices.SortFunc(one.picks, func(a, b versionRange) int { return strings.Compare(a.text, b.text) })
	}
	return slices.Sorted(maps.Keys(apps)), nil
}

func (r *reader) parseRange(text string) (versionRange, error) {
	if found, known := r.ranges[text]; known {
		return found, nil
	}
	found, err := parseRange(text)
	if err == nil {
		r.ranges[text] = found
	}
	return found, err
}

// versions reads the catalogue's entry of an application.
func (r *reader) versions(one *app) error {
	entry := r.entries[one.name]
	if entry == nil {
		return nil
	}
	one.known = true
	for i := range entry.Versions {
		read, err := r.version(one.name, &entry.Versions[i], i)
		if err != nil {
			return err
		}
		one.versions = append(one.versions, read)
	}
	slices.SortStableFunc(one.versions, func(a, b version) int { return a.number.Compare(b.number) })
	for i := 1; i < len(one.versions); i++ {
		if before, after := one.versions[i-1], one.versions[i]; before.number.Equal(after.number) {
			return &Invalid{
				Application: one.name, Version: after.text, Field: "version",
				Reason: fmt.Sprintf("is the same version as %s", before.text),
			}
		}
	}
	return nil
}

// runsOn tells whether all clusters have the Kubernetes that is asked for. Where no
// version is known only what asks for none does.
func runsOn(wanted string, clusters []string) (bool, error) {
	if len(clusters) == 0 {
		return versions.KubernetesSatisfied(wanted, "")
	}
	for _, cluster := range clusters {
		if satisfied, err := versions.KubernetesSatisfied(wanted, cluster); !satisfied || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (r *reader) version(name string, entry *Version, index int) (version, error) {
	number, err := parseVersion(entry.Version)
	if err != nil {
		return version{}, &Invalid{Application: name, Field: fmt.Sprintf("versions[%d].version", index), Reason: err.Error()}
	}
	read := version{
		text: entry.Version, number: number, kubernetes: entry.Kubernetes,
		withdrawn: entry.Withdrawn, withdrawnReason: entry.WithdrawnReason, endOfLife: entry.EndOfLife,
	}
	satisfied, err := runsOn(entry.Kubernetes, r.problem.Kubernetes)
	if err != nil {
		return version{}, &Invalid{Application: name, Version: entry.Version, Field: "kubernetes", Reason: err.Error()}
	}
	switch {
	case !satisfied:
		read.bar = barKubernetes
	case entry.Withdrawn:
		read.bar = barWithdrawn
	case entry.Preview || number.Prerelease() != "":
		read.bar = barPreview
	}
	if read.needs, err = r.requirements(name, entry.Version, "dependsOn", entry.Dependencies); err != nil {
		return version{}, err
	}
	read.recommends, err = r.requirements(name, entry.Version, "recommends", entry.Recommends)
	return read, err
}

// requirements reads what a version depends on or recommends.
func (r *reader) requirements(name, version, field string, wanted []Requirement) ([]need, error) {
	var found []need
	for i, requirement := range wanted {
		invalid := func(below, reason string) error {
			return &Invalid{Application: name, Version: version, Field: fmt.Sprintf("%s[%d].%s", field, i, below), Reason: reason}
		}
		same := func(other need) bool { return other.name == requirement.Name }
		switch {
		case requirement.Name == "":
			return nil, invalid("name", "is empty")
		case requirement.Name == name:
			return nil, invalid("name", "is the application itself")
		case slices.ContainsFunc(found, same):
			return nil, invalid("name", fmt.Sprintf("names %s a second time: write one range", requirement.Name))
		}
		parsed, err := r.parseRange(requirement.Range)
		if err != nil {
			return nil, invalid("range", err.Error())
		}
		found = append(found, need{name: requirement.Name, versionRange: parsed})
	}
	slices.SortFunc(found, func(a, b need) int { return strings.Compare(a.name, b.name) })
	return found, nil
}

// installed notes what is installed of the applications that are looked at.
func (r *reader) installed(found *catalogue) error {
	for _, name := range slices.Sorted(maps.Keys(r.problem.Installed)) {
		number, err := parseVersion(r.problem.Installed[name])
		if err != nil {
			return &Invalid{Application: name, Field: "installed", Reason: err.Error()}
		}
		index, known := found.index[name]
		if !known {
			continue
		}
		one := &found.apps[index]
		one.was = number
		one.installed = slices.IndexFunc(one.versions, func(v version) bool { return v.number.Equal(number) })
		one.upgrade = r.problem.UpgradeAll || slices.Contains(r.problem.Upgrade, name)
	}
	return nil
}

// open takes away the bars of what is installed or picked by name, as far as
// that counts.
func (a *app) open() {
	for i := range a.versions {
		version := &a.versions[i]
		named := slices.ContainsFunc(a.picks, func(pick versionRange) bool { return pick.names(version.number) })
		if i == a.installed && version.bar != barKubernetes || named && version.bar == barPreview {
			version.bar = unbarred
		}
	}
}

// despair finds the versions that are hopeless.
func (c *catalogue) despair() {
	for again := true; again; {
		again = false
		for i := range c.apps {
			for v := range c.apps[i].versions {
				version := &c.apps[i].versions[v]
				if !version.hopeless && slices.ContainsFunc(version.needs, c.hopeless) {
					version.hopeless, again = true, true
				}
			}
		}
	}
}

func (c *catalogue) hopeless(n need) bool {
	to := c.index[n.name]
	for v, takes := range c.takes(to, n.versionRange) {
		if version := c.apps[to].versions[v]; takes && version.bar == unbarred && !version.hopeless {
			return false
		}
	}
	return true
}
