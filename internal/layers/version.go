// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// K8sVersionSatisfied tells whether a cluster's version meets what a layer
// asks for. A plain version is a minimum; anything with an operator is a
// range; nothing is always met. The cluster's version counts as
// major.minor.patch, so that a provider's suffix never makes it a pre-release;
// one that cannot be understood meets nothing. An error means that wanted
// cannot be understood.
func K8sVersionSatisfied(wanted, cluster string) (bool, error) {
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

// Dependency is a layer that another one waits for.
type Dependency struct {
	Name string
	// Version that the layer must be at, compared as a string; empty where any
	// version will do.
	Version string
}

// String returns the dependency as it is written in a specification.
func (d Dependency) String() string {
	if d.Version == "" {
		return d.Name
	}
	return d.Name + "@" + d.Version
}

var layerName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// ParseDependency reads name@version, or a bare name for any version. The
// version is whatever follows the first @; a range is refused.
func ParseDependency(text string) (Dependency, error) {
	name, version, versioned := strings.Cut(text, "@")
	switch {
	case !layerName.MatchString(name):
		return Dependency{}, fmt.Errorf("%q does not begin with the name of a layer: write name@version", text)
	case versioned && version == "":
		return Dependency{}, fmt.Errorf("%q has no version behind the @: write name@version", text)
	case strings.ContainsAny(version, "<>=^~*|, "):
		return Dependency{}, fmt.Errorf("%q asks for a range, which is not supported: write name@version with one exact version", text)
	}
	return Dependency{Name: name, Version: version}, nil
}

// Dependencies reads every dependency of a layer. It returns those that can be
// understood, and an error naming the field for the first that cannot.
func Dependencies(dependsOn []string) ([]Dependency, error) {
	var found []Dependency
	var first error
	for i, text := range dependsOn {
		dependency, err := ParseDependency(text)
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

// Cycle returns the path from a layer back to itself along its dependencies,
// beginning and ending with its name, or nil where there is none. The path is
// a shortest one. next returns the names a layer depends on.
func Cycle(name string, next func(string) []string) []string {
	from := map[string]string{}
	queue := []string{name}
	for len(queue) > 0 {
		current := queue[0]
		queue = queue[1:]
		for _, dependency := range next(current) {
			if dependency == name {
				path := []string{name}
				for step := current; step != name; step = from[step] {
					path = append([]string{step}, path...)
				}
				return append([]string{name}, path...)
			}
			if _, seen := from[dependency]; !seen {
				from[dependency] = current
				queue = append(queue, dependency)
			}
		}
	}
	return nil
}
