// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
)

// release is a bundle that has been understood.
type release struct {
	Bundle
	version *semver.Version
	from    []*semver.Constraints
}

// enters tells whether the release may be entered from a version: whether one of
// its ranges takes that. A pre-release is taken only by a range that names one.
func (r *release) enters(from *semver.Version) bool {
	return slices.ContainsFunc(r.from, func(c *semver.Constraints) bool { return c.Check(from) })
}

// newer tells whether the release comes after a version. Build metadata does not
// count, as in every comparison of semantic versions.
func (r *release) newer(than *semver.Version) bool { return r.version.GreaterThan(than) }

// takes says in words what the release may be entered from.
func (r *release) takes() string {
	if len(r.UpgradesFrom) == 0 {
		return r.Version + " takes no upgrades, it can only be installed afresh"
	}
	return fmt.Sprintf("%s takes upgrades from %s only", r.Version, strings.Join(r.UpgradesFrom, " or "))
}

// understood returns the bundles that can be understood, the newest first and each
// version once, and what is wrong with the others.
func understood(bundles []Bundle) (releases []*release, wrong []string) {
	for _, bundle := range bundles {
		version, err := semver.NewVersion(bundle.Version)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("bundle %q is left out: that is no semantic version", bundle.Version))
			continue
		}
		r := &release{Bundle: bundle, version: version}
		for _, text := range bundle.UpgradesFrom {
			constraint, err := semver.NewConstraint(text)
			if err != nil {
				wrong = append(wrong, fmt.Sprintf("%s: upgradesFrom has %q, which is no range", bundle.Version, text))
				continue
			}
			r.from = append(r.from, constraint)
		}
		releases = append(releases, r)
	}
	slices.SortFunc(releases, func(a, b *release) int {
		if order := b.version.Compare(a.version); order != 0 {
			return order
		}
		// Without a meaning, but the same whatever the order they come in.
		return strings.Compare(b.Version, a.Version)
	})
	releases = slices.CompactFunc(releases, func(a, b *release) bool { return same(a.version, b.version) })
	slices.Sort(wrong)
	return releases, wrong
}

// same tells whether two versions are one, however they are written: 1.0.0 and
// v1.0.0 are, and two builds of 1.0.0 are not.
func same(a, b *semver.Version) bool { return a.String() == b.String() }

// paths are the shortest ways from a version to the releases that can be reached
// from it by upgrades alone: each step goes to a newer version.
type paths struct {
	from *semver.Version
	// levels[n] are the releases that n+1 steps lead to and no fewer, the newest
	// first.
	levels [][]*release
}

// pathsFrom returns the ways from a version over some releases, which are sorted.
func pathsFrom(from *semver.Version, over []*release) paths {
	p := paths{from: from}
	left := slices.Clone(over)
	frontier := []*semver.Version{from}
	for len(frontier) > 0 {
		var level, rest []*release
		for _, r := range left {
			if slices.ContainsFunc(frontier, func(at *semver.Version) bool { return r.newer(at) && r.enters(at) }) {
				level = append(level, r)
			} else {
				rest = append(rest, r)
			}
		}
		frontier, left = nil, rest
		for _, r := range level {
			frontier = append(frontier, r.version)
		}
		if len(level) > 0 {
			p.levels = append(p.levels, level)
		}
	}
	return p
}

// steps returns how many steps lead to a release; 0 where none do.
func (p paths) steps(to *release) int {
	for n, level := range p.levels {
		if slices.Contains(level, to) {
			return n + 1
		}
	}
	return 0
}

// to returns the shortest way to a release, and of several the one with the newest
// versions, the first step counting most; nil where there is none.
func (p paths) to(target *release) []string {
	steps := p.steps(target)
	if steps == 0 {
		return nil
	}
	// From the end: what of each level leads on to the target.
	on := make([][]*release, steps)
	on[steps-1] = []*release{target}
	for n := steps - 2; n >= 0; n-- {
		for _, r := range p.levels[n] {
			if slices.ContainsFunc(on[n+1], func(next *release) bool { return next.newer(r.version) && next.enters(r.version) }) {
				on[n] = append(on[n], r)
			}
		}
	}
	var path []string
	at := p.from
	for _, level := range on {
		i := slices.IndexFunc(level, func(r *release) bool { return r.newer(at) && r.enters(at) })
		path = append(path, level[i].Version)
		at = level[i].version
	}
	return path
}

// Bundle is one version of the family that a Platform installs.
type Bundle struct {
	// Version is a semantic one; a leading v does not matter.
	Version string
	// Preview is true where it is taken only by who names it exactly.
	Preview bool
	// EndOfLife is when nobody should be on it any more; zero where that has not
	// been announced.
	EndOfLife time.Time
	// Withdrawn is true where it must not be installed any more.
	Withdrawn bool
	// UpgradesFrom are the ranges of versions that it may be entered from; empty
	// where it can only be installed afresh.
	UpgradesFrom []string
	// Uninstallable says why it cannot be installed; empty where it can.
	Uninstallable string
	// Unfit says why it does not run on the cluster that is asked about, by the version
	// of Kubernetes there; empty where it does.
	Unfit string
}

func newest(releases []*release) *release {
	if len(releases) == 0 {
		return nil
	}
	return releases[0]
}
