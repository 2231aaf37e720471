// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package versions reads versions and ranges of them, and tells which version
// meets which range. It is pure, and imports no other package of Strata.
package versions

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// KubernetesSatisfied tells whether a cluster's version meets what somebody
// asks for. A plain version is a minimum; anything with an operator is a
// range; nothing is always met. The cluster's version counts as
// major.minor.patch, so that a provider's suffix never makes it a pre-release;
// one that cannot be understood meets nothing. An error means that wanted
// cannot be understood.
func KubernetesSatisfied(wanted, cluster string) (bool, error) {
	wanted = strings.TrimSpace(wanted)
	if wanted == "" {
		return true, nil
	}
	have, unreadable := semver.NewVersion(leadingVersion.FindString(cluster))
	if minimum, err := semver.NewVersion(wanted); err == nil {
		return unreadable == nil && !have.LessThan(minimum), nil
	}
	constraint, err := semver.NewConstraint(wanted)
	if err != nil {
		return false, fmt.Errorf("%q is neither a version such as 1.30 nor a range such as >=1.30 <2", wanted)
	}
	return unreadable == nil && constraint.Check(have), nil
}

// leadingVersion is major.minor.patch at the beginning of a version.
var leadingVersion = regexp.MustCompile(`^v?[0-9]+(\.[0-9]+){0,2}`)

// Semantic reads a version as ranges see it, or returns nil where it is none. A
// leading v and missing numbers, as in v1.2, do not matter. Leading zeros do:
// 0.1.01 is no semantic version.
func Semantic(text string) *semver.Version {
	if !semanticNumbers.MatchString(text) {
		return nil
	}
	version, err := semver.NewVersion(text)
	if err != nil {
		return nil
	}
	return version
}

var semanticNumbers = regexp.MustCompile(`^v?(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){0,2}([-+]|$)`)

// What makes a version a range: an operator anywhere, two versions with a dash
// between blanks, or numbers that end in an x. Any other text is exact, also
// one that has an x elsewhere.
const rangeOperators = "<>=^~*|"

var (
	rangeDash     = regexp.MustCompile(`\s-\s`)
	rangeWildcard = regexp.MustCompile(`(^|[\s,])v?[0-9]+(\.[0-9]+\.[xX]|\.[xX](\.[xX])?)([\s,]|$)`)
)

// IsRange tells whether a text is meant as a range, also where it cannot be
// understood as one.
func IsRange(text string) bool {
	return strings.ContainsAny(text, rangeOperators) || rangeDash.MatchString(text) || rangeWildcard.MatchString(text)
}

// RangeTakes tells whether a range takes a version: semantic versions alone,
// and a pre-release only where the range names one itself.
func RangeTakes(text, version string) bool {
	constraint, err := semver.NewConstraint(text)
	have := Semantic(version)
	return err == nil && have != nil && constraint.Check(have)
}
