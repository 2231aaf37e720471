// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/solver"
)

// brought are the applications that the platform's bundle brings to its clusters, whatever
// is picked: what is there counts as chosen.
type brought struct {
	// versions of each application, the newest first.
	versions map[string][]string
	// by names a bundle that brings an application at a version.
	by map[string]string
	// everywhere tells of an application whether all clusters have it.
	everywhere map[string]bool
}

// broughtByBundle finds what the bundle brings to each cluster at the version that this was
// sent to, and notes it there.
func (d *decider) broughtByBundle() brought {
	b := brought{versions: map[string][]string{}, by: map[string]string{}, everywhere: map[string]bool{}}
	on := map[string]int{}
	for _, m := range d.members {
		m.brought = map[string]bool{}
		for _, one := range m.plan {
			if one.presence == absent || one.place != m.target {
				continue
			}
			for _, application := range one.Applications {
				name := cmp.Or(application.Application, application.Name)
				if !m.brought[name] {
					on[name]++
				}
				m.brought[name] = true
				if !slices.Contains(b.versions[name], application.Version) {
					b.versions[name] = append(b.versions[name], application.Version)
				}
				if bundle := d.family.find(m.sent); bundle != nil {
					b.by[name+" "+application.Version] = bundle.Name
				}
			}
		}
	}
	for name, versions := range b.versions {
		slices.SortFunc(versions, func(x, y string) int {
			switch {
			case newer(x, y):
				return -1
			case newer(y, x):
				return 1
			}
			return cmp.Compare(x, y)
		})
		b.everywhere[name] = on[name] == len(d.members)
	}
	return b
}

// lines says what is brought, and whether to all clusters, sorted.
func (b brought) lines() []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(b.versions)) {
		lines = append(lines, fmt.Sprintf("= %s %s %t", name, strings.Join(b.versions[name], " "), b.everywhere[name]))
	}
	return lines
}

// fix takes away from an application all versions but the one that is brought, which needs
// nothing more.
func (b brought) fix(app *solver.Application) {
	if versions := b.versions[app.Name]; len(versions) > 0 {
		app.Versions = []solver.Version{{Version: versions[0]}}
	}
}

// allows tells whether a version of an application can be beside what is brought, where
// clusters have several versions of that. Of one alone the solver tells.
func (b brought) allows(version solver.Version) bool {
	for _, requirement := range version.Dependencies {
		if b.unmet(requirement.Name, requirement.Range) != "" {
			return false
		}
	}
	return true
}

// unmet returns a version that is brought beside the newest, and that is not within a
// range; empty for none.
func (b brought) unmet(name, within string) string {
	versions := b.versions[name]
	for _, have := range versions[min(1, len(versions)):] {
		if meets, err := catalogue.Meets(v1alpha1.ApplicationRequirement{Name: name, Range: within}, have); err != nil || !meets {
			return have
		}
	}
	return ""
}

// explain says which of the applications that a message names are brought, and by what.
func (b brought) explain(message string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(b.versions)) {
		if !strings.Contains(message, name) {
			continue
		}
		for _, version := range b.versions[name] {
			all = append(all, fmt.Sprintf("; bundle %s brings %s %s", b.by[name+" "+version], name, version))
		}
	}
	return strings.Join(all, "")
}
