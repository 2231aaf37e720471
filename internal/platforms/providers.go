// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"slices"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/dependencies"
)

// afterProviders puts applications behind those that have a capability which they require,
// unless these need them in turn. Otherwise they could wait in one layer for what only the
// next layer brings. What depends on what is said by their order until now, and by the
// catalogue.
func afterProviders(chosen []v1alpha1.LockedApplication, entries map[string]*v1alpha1.HelmApplication) []v1alpha1.LockedApplication {
	before := map[string][]string{}
	has := map[string][]string{}
	versions := map[string]*v1alpha1.HelmApplicationVersion{}
	for _, one := range chosen {
		app := entries[one.Name]
		if app == nil {
			continue
		}
		version := catalogue.VersionOf(app, one.Version)
		if version == nil {
			continue
		}
		versions[one.Name] = version
		for _, requirement := range version.DependsOn {
			before[one.Name] = append(before[one.Name], requirement.Name)
		}
		for _, provided := range version.Provides {
			capability := strings.ToLower(provided.Capability)
			has[capability] = append(has[capability], one.Name)
		}
	}
	for _, one := range chosen {
		if versions[one.Name] == nil {
			continue
		}
		for _, requirement := range versions[one.Name].Requires {
			for _, provider := range has[strings.ToLower(requirement.Capability)] {
				needs := before[one.Name]
				before[one.Name] = append(slices.Clone(needs), provider)
				if dependencies.Cycle(one.Name, func(name string) []string { return before[name] }) != nil {
					before[one.Name] = needs
				}
			}
		}
	}
	return inOrderOf(chosen, before)
}

// inOrderOf moves applications behind those that go before them, and changes their order no
// more than that. before has no circle.
func inOrderOf(chosen []v1alpha1.LockedApplication, before map[string][]string) []v1alpha1.LockedApplication {
	done := map[string]bool{}
	ordered := make([]v1alpha1.LockedApplication, 0, len(chosen))
	var put func(name string)
	put = func(name string) {
		at := slices.IndexFunc(chosen, func(l v1alpha1.LockedApplication) bool { return l.Name == name })
		if at < 0 || done[name] {
			return
		}
		done[name] = true
		for _, earlier := range before[name] {
			put(earlier)
		}
		ordered = append(ordered, chosen[at])
	}
	for _, one := range chosen {
		put(one.Name)
	}
	return ordered
}
