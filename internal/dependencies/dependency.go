// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dependencies reads what layers depend on, and finds circles among them.
package dependencies

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/strata-project/strata/internal/versions"
)

// Dependency is a layer that another one waits for.
type Dependency struct {
	Name string
	// Version that the layer must be at: an exact one, compared as a string, or
	// a range; empty where any version will do.
	Version string
	// Range is true where Version is a range of semantic versions.
	Range bool
}

// String returns the dependency as it is written in a specification.
func (d Dependency) String() string {
	if d.Version == "" {
		return d.Name
	}
	return d.Name + "@" + d.Version
}

// Accepts tells whether a layer at a version is what the dependency asks for.
// An exact version accepts itself, character by character. A range accepts
// semantic versions alone, and a pre-release only where it names one itself. No
// version, which is what a layer has that has deployed nothing, is accepted by
// a bare name only.
func (d Dependency) Accepts(version string) bool {
	if !d.Range {
		return d.Version == "" || d.Version == version
	}
	return versions.RangeTakes(d.Version, version)
}

// Explain says what about a version keeps a range from accepting it, beside
// its number; empty where there is nothing to say.
func (d Dependency) Explain(version string) string {
	if !d.Range || version == "" {
		return ""
	}
	have := versions.Semantic(version)
	switch {
	case have == nil:
		return ", which is no semantic version, so that no range takes it"
	case have.Prerelease() != "":
		return ", a pre-release, which is taken only by a range that names one"
	}
	return ""
}

// isLayerName tells whether a text can be the name of a layer: lower case,
// digits, dashes and dots, beginning and ending with a letter or a digit.
func isLayerName(text string) bool {
	for i := range len(text) {
		c := text[i]
		inside := (c == '-' || c == '.') && i > 0 && i < len(text)-1
		if !inside && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return text != ""
}

// Parse reads name@version, name@range, or a bare name for any
// version. The version is whatever follows the first @.
func Parse(text string) (Dependency, error) {
	name, version, versioned := strings.Cut(text, "@")
	switch {
	case !isLayerName(name):
		hint := ""
		if lower := strings.ToLower(name); lower != name && isLayerName(lower) {
			hint = ": names of layers have no capitals"
		}
		return Dependency{}, fmt.Errorf("%q does not begin with the name of a layer%s: write name@version", text, hint)
	case versioned && strings.TrimSpace(version) == "":
		return Dependency{}, fmt.Errorf("%q has no version behind the @: write name@version, or the name alone for any version", text)
	}
	dependency := Dependency{Name: name, Version: version, Range: versions.IsRange(version)}
	if dependency.Range {
		if _, err := semver.NewConstraint(version); err != nil {
			return Dependency{}, fmt.Errorf("%q asks for a range that cannot be understood: write one such as %s@>=1.1 <2, %s@^2, %s@~1.4 or %s@1.x",
				text, name, name, name, name)
		}
		return dependency, nil
	}
	if strings.ContainsAny(version, ", \t\r\n") {
		return Dependency{}, fmt.Errorf("%q has blanks or commas in its version: write name@version with one exact version, or a range such as %s@>=1.1 <2",
			text, name)
	}
	return dependency, nil
}

// ParseAll reads every dependency of a layer. It returns those that can be
// understood, and an error naming the field for the first that cannot.
func ParseAll(dependsOn []string) ([]Dependency, error) {
	var found []Dependency
	var first error
	for i, text := range dependsOn {
		dependency, err := Parse(text)
		if err != nil {
			if first == nil {
				first = fmt.Errorf("spec.prereqs.dependsOn[%d]: %w", i, err)
			}
			continue
		}
		found = append(found, dependency)
	}
	return found, first
}
