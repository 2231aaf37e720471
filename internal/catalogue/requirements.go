// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/oldwords"
	"github.com/strata-project/strata/internal/versions"
)

// problems returns what is wrong with the versions of the application, in the
// order in which they are written. Of withdrawn versions, which nobody is given,
// nothing is said.
func (o Observation) problems() []string {
	var problems []string
	if old := oldwords.InEntry(o.Application); old != "" {
		problems = append(problems, old)
	}
	loops := o.loops()
	for _, version := range o.Application.Spec.Versions {
		if old := oldwords.InVersion(version); old != "" {
			problems = append(problems, old)
			continue
		}
		if version.Withdrawn != "" {
			continue
		}
		say := func(format string, args ...any) {
			problems = append(problems, "version "+version.Version+": "+fmt.Sprintf(format, args...))
		}
		if _, err := versions.KubernetesSatisfied(version.KubeVersion, "1.0.0"); err != nil {
			say("kubeVersion: %v", err)
		}
		for _, of := range []struct {
			field        string
			requirements []v1alpha1.ApplicationRequirement
		}{{"dependsOn", version.DependsOn}, {"recommends", version.Recommends}} {
			for _, requirement := range of.requirements {
				if wrong := o.unmet(requirement); wrong != "" {
					say("%s: %s", of.field, wrong)
				}
			}
		}
		for _, wrong := range wrongRequires(version.ApplicationContent) {
			say("%s", wrong)
		}
		if loop := loops[version.Version]; loop != "" {
			say("it needs itself: %s", loop)
		}
	}
	return problems
}

// unmet says why no version of the catalogue is what is required; empty where one
// is.
func (o Observation) unmet(requirement v1alpha1.ApplicationRequirement) string {
	app := o.Catalogue[requirement.Name]
	if app == nil {
		return fmt.Sprintf("there is no HelmApplication %s", requirement.Name)
	}
	if _, err := rangeOf(requirement); err != nil {
		return err.Error()
	}
	if len(fitting(app, requirement)) > 0 {
		return ""
	}
	return fmt.Sprintf(
		"HelmApplication %s has no version in %s that may be chosen, it has %s",
		requirement.Name,
		cmp.Or(requirement.Range, "any range"),
		choice(app),
	)
}

// choice names the newest versions of an application, and why they may not be
// chosen.
func choice(app *v1alpha1.HelmApplication) string {
	const most = 5
	var names []string
	for i, version := range app.Spec.Versions {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(app.Spec.Versions)-most))
			break
		}
		name := version.Version
		switch {
		case version.Withdrawn != "":
			name += " (withdrawn)"
		case version.Preview:
			name += " (a preview)"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// rangeOf returns a requirement's range; nil for any version.
func rangeOf(requirement v1alpha1.ApplicationRequirement) (*semver.Constraints, error) {
	if strings.TrimSpace(requirement.Range) == "" {
		return nil, nil
	}
	constraint, err := semver.NewConstraint(requirement.Range)
	if err != nil {
		return nil, fmt.Errorf("%s: %q is no range of versions such as >=1.2 <2 or ^1.4", requirement.Name, requirement.Range)
	}
	return constraint, nil
}

// fitting returns the versions of an application that meet a requirement and may
// be chosen by whoever does not name them.
func fitting(app *v1alpha1.HelmApplication, requirement v1alpha1.ApplicationRequirement) []v1alpha1.HelmApplicationVersion {
	constraint, err := rangeOf(requirement)
	if err != nil {
		return nil
	}
	var found []v1alpha1.HelmApplicationVersion
	for _, version := range app.Spec.Versions {
		parsed, err := semver.NewVersion(version.Version)
		if err != nil || version.Withdrawn != "" || version.Preview {
			continue
		}
		if constraint == nil && parsed.Prerelease() == "" || constraint != nil && constraint.Check(parsed) {
			found = append(found, version)
		}
	}
	return found
}

// loops returns the versions of the application that cannot be installed without
// something that needs them, each with the way back, whatever versions are chosen
// on it. A loop that another choice of versions avoids is none.
func (o Observation) loops() map[string]string {
	target := o.Application.Name
	// through says by what way a version of an application needs the target.
	through := map[string]string{}
	key := func(app, version string) string { return app + " " + version }
	way := func(version v1alpha1.HelmApplicationVersion) string {
		for _, requirement := range version.DependsOn {
			if requirement.Name == target {
				return target
			}
			app := o.Catalogue[requirement.Name]
			if app == nil {
				continue
			}
			candidates, first := fitting(app, requirement), ""
			for _, candidate := range candidates {
				back := through[key(app.Name, candidate.Version)]
				if back == "" {
					first = ""
					break
				}
				first = cmp.Or(first, app.Name+" -> "+back)
			}
			if first != "" {
				return first
			}
		}
		return ""
	}
	names := o.onTheWay()
	for grows := len(names) > 0; grows; {
		grows = false
		for _, name := range names {
			for _, version := range o.Catalogue[name].Spec.Versions {
				if through[key(name, version.Version)] != "" {
					continue
				}
				if back := way(version); back != "" {
					through[key(name, version.Version)], grows = back, true
				}
			}
		}
	}
	loops := map[string]string{}
	for _, version := range o.Application.Spec.Versions {
		if back := way(version); back != "" {
			loops[version.Version] = target + " -> " + back
		}
	}
	return loops
}

// onTheWay returns the names of the other applications that the application needs,
// at any version, and of which some version needs it. There are none in a sound
// catalogue.
func (o Observation) onTheWay() []string {
	needs, neededBy := map[string][]string{}, map[string][]string{}
	for name, app := range o.Catalogue {
		for _, version := range app.Spec.Versions {
			for _, requirement := range version.DependsOn {
				needs[name] = append(needs[name], requirement.Name)
				neededBy[requirement.Name] = append(neededBy[requirement.Name], name)
			}
		}
	}
	below, above := reach(needs, o.Application.Name), reach(neededBy, o.Application.Name)
	var names []string
	for _, name := range slices.Sorted(maps.Keys(below)) {
		if above[name] && name != o.Application.Name && o.Catalogue[name] != nil {
			names = append(names, name)
		}
	}
	return names
}

// reach returns what edges lead to, directly or not.
func reach(edges map[string][]string, from string) map[string]bool {
	seen := map[string]bool{}
	for queue := slices.Clone(edges[from]); len(queue) > 0; queue = queue[1:] {
		if !seen[queue[0]] {
			seen[queue[0]] = true
			queue = append(queue, edges[queue[0]]...)
		}
	}
	return seen
}

// Dependants returns, in order, the applications of which some version needs or
// recommends an application, directly or not.
func Dependants(catalogue map[string]*v1alpha1.HelmApplication, name string) []string {
	neededBy := map[string][]string{}
	for dependant, app := range catalogue {
		for _, version := range app.Spec.Versions {
			for _, requirement := range slices.Concat(version.DependsOn, version.Recommends) {
				neededBy[requirement.Name] = append(neededBy[requirement.Name], dependant)
			}
		}
	}
	return slices.Sorted(maps.Keys(reach(neededBy, name)))
}

// Meets tells whether a version that somebody has named is what is required. The
// error says that the range is none.
func Meets(requirement v1alpha1.ApplicationRequirement, version string) (bool, error) {
	constraint, err := rangeOf(requirement)
	if err != nil {
		return false, err
	}
	parsed, unreadable := semver.NewVersion(version)
	return unreadable == nil && (constraint == nil || constraint.Check(parsed)), nil
}
