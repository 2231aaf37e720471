// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package solver

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/strata-project/strata/internal/versions"
)

// versionRange is a range of versions; its zero value takes any.
type versionRange struct {
	// text as it was written, with single blanks.
	text string
	// releases takes pre-releases only where the range names one; all takes them
	// by precedence.
	releases, all *semver.Constraints
	// exact is the only version that the range names; nil where it is not one
	// version written in full.
	exact *semver.Version
	// plain is the range where it is nothing but >= and <: the library words an
	// error for every version that it does not take.
	plain []bound
}

// bound is one side of a range.
type bound struct {
	below  bool
	number *semver.Version
}

var plainRange = regexp.MustCompile(`^((>=|<) ?v?[0-9]+(\.[0-9]+){0,2}(, ?| |$))+$`)

// plainBounds reads a range that is nothing but >= and <; nil for others.
func plainBounds(text string) []bound {
	if !plainRange.MatchString(text) {
		return nil
	}
	var bounds []bound
	for part := range strings.FieldsFuncSeq(strings.NewReplacer(">= ", ">=", "< ", "<").Replace(text), func(r rune) bool { return r == ' ' || r == ',' }) {
		number, err := semver.NewVersion(strings.TrimLeft(part, ">=<"))
		if err != nil {
			return nil
		}
		bounds = append(bounds, bound{below: part[0] == '<', number: number})
	}
	return bounds
}

func parseRange(text string) (versionRange, error) {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return versionRange{}, nil
	}
	constraint, err := semver.NewConstraint(text)
	if err != nil {
		return versionRange{}, fmt.Errorf("%q is no range of versions: write one such as >=1.1 <2, ^2, ~1.4, 1.x or 1.4.2", text)
	}
	all := *constraint
	all.IncludePrerelease = true
	found := versionRange{text: text, releases: constraint, all: &all, plain: plainBounds(text)}
	number := strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(text, "=")), "v")
	if exact, err := semver.StrictNewVersion(number); err == nil {
		found.exact = exact
	}
	return found, nil
}

// takes tells whether a version is in the range.
func (r versionRange) takes(version *semver.Version) bool {
	if r.plain != nil && version.Prerelease() == "" {
		return !slices.ContainsFunc(r.plain, func(b bound) bool { return version.LessThan(b.number) != b.below })
	}
	if r.releases == nil || r.releases.Check(version) {
		return true
	}
	if version.Prerelease() == "" || !r.all.Check(version) {
		return false
	}
	// By precedence alone 4.0.0-rc.1 would be in <4.
	release, err := version.SetPrerelease("")
	return err == nil && r.releases.Check(&release)
}

// names tells whether the range is that very version.
func (r versionRange) names(version *semver.Version) bool {
	return r.exact != nil && r.exact.Equal(version)
}

// parseVersion reads a version as the rest of Strata does.
func parseVersion(text string) (*semver.Version, error) {
	version := versions.Semantic(text)
	if version == nil {
		return nil, fmt.Errorf("%q is no semantic version such as 1.4.2", text)
	}
	return version, nil
}
