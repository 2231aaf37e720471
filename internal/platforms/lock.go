// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/oldwords"
	"github.com/strata-project/strata/internal/rollout"
	"github.com/strata-project/strata/internal/solver"
)

// lock returns the versions of the picked applications: those that were chosen, until
// what was picked is something else or, in mode Auto and within a window, there is
// something newer. Where no versions fit what was chosen stays. It is nil where
// nothing has been chosen.
func (d *decider) lock() *v1alpha1.PlatformLock {
	spec, last := d.Platform.Spec, d.Platform.Status.Lock
	picks := make([]string, 0, len(spec.Applications))
	for _, pick := range spec.Applications {
		picks = append(picks, pick.Name+" "+strings.TrimSpace(pick.Version))
	}
	// What the bundle brings is chosen from as the picks are.
	digest := "sha256:" + digestOf(strings.Join(append(sorted(picks), d.brought.lines()...), "\n"), 64)
	same := last != nil && last.Digest == digest
	if same && !d.upgradesPicks(last) {
		return last
	}
	if old := d.oldPick(last); old != "" {
		d.stall(v1alpha1.ReasonInvalidSpec, old)
		return last
	}
	for _, pick := range spec.Applications {
		if version := d.brought.unmet(pick.Name, pick.Version); version != "" {
			d.stall(v1alpha1.ReasonUnsatisfiable, fmt.Sprintf("spec.applications: %s %s is asked for%s", pick.Name, pick.Version, d.brought.explain(pick.Name)))
			return last
		}
	}
	chosen, err := solver.Solve(d.problem(last, same))
	if err != nil {
		reason := v1alpha1.ReasonInvalidSpec
		var unsatisfiable *solver.Unsatisfiable
		var cycle *solver.Cycle
		var entangled *solver.Entangled
		if errors.As(err, &unsatisfiable) || errors.As(err, &cycle) || errors.As(err, &entangled) {
			reason = v1alpha1.ReasonUnsatisfiable
		}
		if !same {
			d.stall(reason, "spec.applications: "+err.Error()+d.brought.explain(err.Error()))
		}
		return last
	}
	next := &v1alpha1.PlatformLock{Digest: digest}
	if last != nil {
		next.Bundle = last.Bundle
	}
	for _, entry := range chosen {
		if d.brought.everywhere[entry.Name] {
			continue
		}
		next.Applications = append(next.Applications, v1alpha1.LockedApplication{
			Name: entry.Name, Version: entry.Version, Why: cut(strings.Join(entry.Why, "; "), maxReason),
		})
	}
	next.Applications = afterProviders(next.Applications, d.Catalogue)
	return next
}

// oldPick says which application that is picked, or was chosen, has a word of before, so
// that it is not known what it needs; empty for none.
func (d *decider) oldPick(last *v1alpha1.PlatformLock) string {
	var names []string
	for _, pick := range d.Platform.Spec.Applications {
		names = append(names, pick.Name)
	}
	if last != nil {
		for _, locked := range last.Applications {
			names = append(names, locked.Name)
		}
	}
	for _, name := range sorted(names) {
		if app := d.Catalogue[name]; app != nil {
			if old := oldwords.InApplication(app); old != "" {
				return fmt.Sprintf("HelmApplication %s: %s", name, old)
			}
		}
	}
	return ""
}

// upgradesPicks tells whether the chosen versions may be left for newer ones now, and
// there are any.
func (d *decider) upgradesPicks(last *v1alpha1.PlatformLock) bool {
	upgrade := d.Platform.Spec.Upgrade
	offered := upgrade.Mode == v1alpha1.UpgradeAuto && slices.ContainsFunc(last.Applications, func(locked v1alpha1.LockedApplication) bool {
		app := d.Catalogue[locked.Name]
		return app != nil && slices.ContainsFunc(app.Spec.Versions, func(v v1alpha1.HelmApplicationVersion) bool {
			return v.Withdrawn == "" && !v.Preview && newer(v.Version, locked.Version) && within(upgrade.MaxStep, locked.Version, v.Version)
		})
	})
	if !offered {
		return false
	}
	windows := windowsOf(upgrade)
	if len(rollout.Validate(windows)) > 0 {
		return false
	}
	open, until := rollout.Open(windows, d.Now)
	d.until(until)
	return open && !d.Platform.Spec.Hold
}

// problem puts together what the versions are chosen from. What is there stays, but
// for a newer version within the bound where upgrade says so.
func (d *decider) problem(last *v1alpha1.PlatformLock, upgrade bool) solver.Problem {
	problem := solver.Problem{Installed: map[string]string{}, UpgradeAll: upgrade}
	if last != nil {
		for _, locked := range last.Applications {
			problem.Installed[locked.Name] = locked.Version
		}
	}
	for _, pick := range d.Platform.Spec.Applications {
		problem.Picks = append(problem.Picks, solver.Pick{Name: pick.Name, Range: pick.Version})
	}
	for _, name := range slices.Sorted(maps.Keys(d.Catalogue)) {
		app := solver.Application{Name: name}
		for _, version := range d.Catalogue[name].Spec.Versions {
			has := problem.Installed[name]
			if upgrade && has != "" && newer(version.Version, has) && !within(d.Platform.Spec.Upgrade.MaxStep, has, version.Version) {
				continue
			}
			if offered := d.offer(version); d.brought.allows(offered) {
				app.Versions = append(app.Versions, offered)
			}
		}
		d.brought.fix(&app)
		if len(d.brought.versions[name]) > 0 {
			problem.Installed[name] = app.Versions[0].Version
		}
		problem.Catalogue = append(problem.Catalogue, app)
	}
	for _, m := range d.members {
		if version := factsOf(d.Observation, m.target).Version; version != "" {
			problem.Kubernetes = append(problem.Kubernetes, version)
		}
	}
	return problem
}

func (d *decider) offer(version v1alpha1.HelmApplicationVersion) solver.Version {
	return solver.Version{
		Version: version.Version, Dependencies: requirements(version.DependsOn), Recommends: requirements(version.Recommends),
		Kubernetes: version.KubeVersion, Preview: version.Preview,
		Withdrawn: version.Withdrawn != "" || oldwords.InVersion(version) != "", WithdrawnReason: version.Withdrawn,
		EndOfLife: version.EndOfLife != nil && !d.Now.Before(version.EndOfLife.Time),
	}
}

func requirements(of []v1alpha1.ApplicationRequirement) []solver.Requirement {
	var all []solver.Requirement
	for _, requirement := range of {
		all = append(all, solver.Requirement{Name: requirement.Name, Range: requirement.Range})
	}
	return all
}

// within tells whether a version is within the bound of another.
func within(bound v1alpha1.UpgradeBound, from, to string) bool {
	a, errA := semver.NewVersion(from)
	b, errB := semver.NewVersion(to)
	switch {
	case bound == v1alpha1.UpgradeMajor:
		return true
	case errA != nil || errB != nil || a.Major() != b.Major():
		return false
	}
	return bound != v1alpha1.UpgradePatch || a.Minor() == b.Minor()
}

// dependenciesOf returns which applications of a lock each depends on: as the bundle
// that was made of it says, so that a catalogue that has forgotten a version changes
// nothing, and otherwise as the catalogue does.
func (d *decider) dependenciesOf(lock *v1alpha1.PlatformLock) map[string][]string {
	all := map[string][]string{}
	for _, locked := range lock.Applications {
		app := d.Catalogue[locked.Name]
		if app == nil {
			continue
		}
		for _, version := range app.Spec.Versions {
			if version.Version != locked.Version {
				continue
			}
			for _, requirement := range version.DependsOn {
				if slices.ContainsFunc(lock.Applications, func(l v1alpha1.LockedApplication) bool { return l.Name == requirement.Name }) {
					all[locked.Name] = append(all[locked.Name], requirement.Name)
				}
			}
			all[locked.Name] = sorted(all[locked.Name])
		}
	}
	last := d.Platform.Status.Lock
	if last == nil || !equality.Semantic.DeepEqual(last.Applications, lock.Applications) {
		return all
	}
	for _, made := range d.Bundles {
		if made.Name == lock.Bundle && made.Labels[v1alpha1.PlatformLabel] == d.Platform.Name {
			return edgesOf(made)
		}
	}
	return all
}
