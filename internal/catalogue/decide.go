// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalogue holds the rules of a HelmApplication as pure functions: which
// of its versions can be used, and what is wrong with the others. It reads no
// clock, no cluster and no file.
package catalogue

import (
	"fmt"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/conditions"
	"github.com/strata-project/strata/internal/oldwords"
)

const (
	// maxProblems bounds what a status tells of one application.
	maxProblems = 10
	// maxPublished bounds how many versions are remembered, those that were
	// removed from the entry included.
	maxPublished = 200
)

// Observation is everything that Decide decides from.
type Observation struct {
	Now time.Time
	// Application as it was read, with its last status.
	Application *v1alpha1.HelmApplication
	// Catalogue holds all applications by name, this one among them.
	Catalogue map[string]*v1alpha1.HelmApplication
	// BundlesUsing is how many ApplicationBundles name the application.
	BundlesUsing int32
}

// Decision is what to say of a HelmApplication.
type Decision struct {
	Status v1alpha1.HelmApplicationStatus
	// Until is the next moment at which the decision may differ although nothing
	// else has changed; zero where there is none.
	Until time.Time
}

// Decide says how a catalogue entry fares. It is deterministic.
func Decide(o Observation) Decision {
	app := o.Application
	status := v1alpha1.HelmApplicationStatus{ObservedGeneration: app.Generation, Bundles: o.BundlesUsing, MAC: app.Status.MAC}
	var changed []string
	status.Published, changed = published(app)
	problems := append(slices.Clone(changed), o.problems()...)
	latest, until := o.latest(changedVersions(app, status.Published))
	status.Latest = latest
	status.Problems = FirstOf(problems)
	set := conditions.New(app.Status.Conditions, app.Generation, o.Now)
	switch {
	case len(changed) > 0:
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonContentChanged, Summary(problems))
		set.Put(v1alpha1.StalledCondition, metav1.ConditionTrue, v1alpha1.ReasonContentChanged, Summary(changed))
	case len(problems) > 0:
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonProblems, Summary(problems))
		set.Put(v1alpha1.StalledCondition, metav1.ConditionTrue, v1alpha1.ReasonProblems, Summary(problems))
	case latest == "":
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonPublished, count(app)+", and none that is chosen by itself")
	default:
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonPublished, fmt.Sprintf("%s, the latest is %s", count(app), latest))
	}
	status.Conditions = set.List
	return Decision{Status: status, Until: until}
}

func count(app *v1alpha1.HelmApplication) string {
	if len(app.Spec.Versions) == 1 {
		return "1 version"
	}
	return fmt.Sprintf("%d versions", len(app.Spec.Versions))
}

// published returns what was published, with the versions that are new, and what
// is wrong with those that came with other content. A version that was removed is
// remembered, so that it does not come back as something else.
func published(app *v1alpha1.HelmApplication) (all []v1alpha1.PublishedVersion, problems []string) {
	known, listed := map[string]string{}, map[string]bool{}
	for _, version := range app.Status.Published {
		known[Plain(version.Version)] = version.Digest
	}
	for _, version := range app.Spec.Versions {
		digest, err := DigestOf(version)
		was, seen := known[Plain(version.Version)]
		listed[Plain(version.Version)] = true
		switch {
		case err != nil:
			problems = append(problems, fmt.Sprintf("version %s: %v", version.Version, err))
			continue
		case seen && was != digest:
			problems = append(problems, fmt.Sprintf("version %s was published with other content: put that back, and publish a new version", version.Version))
			digest = was
		}
		all = append(all, v1alpha1.PublishedVersion{Version: version.Version, Digest: digest})
	}
	for _, version := range app.Status.Published {
		if !listed[Plain(version.Version)] && len(all) < maxPublished {
			all = append(all, version)
		}
	}
	slices.SortFunc(all, func(a, b v1alpha1.PublishedVersion) int { return compare(b.Version, a.Version) })
	return all, problems
}

// changedVersions returns the versions whose content is not what was published.
func changedVersions(app *v1alpha1.HelmApplication, all []v1alpha1.PublishedVersion) map[string]bool {
	changed := map[string]bool{}
	for _, version := range app.Spec.Versions {
		changed[version.Version] = !isPublished(version, all)
	}
	return changed
}

// isPublished tells whether a version is what was published under its number.
func isPublished(version v1alpha1.HelmApplicationVersion, all []v1alpha1.PublishedVersion) bool {
	digest, err := DigestOf(version)
	return err == nil && slices.ContainsFunc(all, func(p v1alpha1.PublishedVersion) bool {
		return Plain(p.Version) == Plain(version.Version) && p.Digest == digest
	})
}

// latest returns the newest version that anybody may be given, and when that may
// be another one because this one's life ends.
func (o Observation) latest(changed map[string]bool) (latest string, until time.Time) {
	var newest *v1alpha1.HelmApplicationVersion
	for i := range o.Application.Spec.Versions {
		version := &o.Application.Spec.Versions[i]
		parsed, err := semver.NewVersion(version.Version)
		if err != nil || parsed.Prerelease() != "" || version.Preview || version.Withdrawn != "" || oldwords.InVersion(*version) != "" || changed[version.Version] {
			continue
		}
		if end := version.EndOfLife; end != nil && !o.Now.Before(end.Time) {
			continue
		}
		if newest == nil || compare(newest.Version, version.Version) < 0 {
			newest = version
		}
	}
	if newest == nil {
		return "", time.Time{}
	}
	if newest.EndOfLife != nil {
		until = newest.EndOfLife.Time
	}
	return newest.Version, until
}

// compare orders versions, the older first; one that cannot be understood is older
// than all others.
func compare(a, b string) int {
	left, errLeft := semver.NewVersion(a)
	right, errRight := semver.NewVersion(b)
	switch {
	case errLeft != nil && errRight != nil:
		return 0
	case errLeft != nil:
		return -1
	case errRight != nil:
		return 1
	default:
		return left.Compare(right)
	}
}

// FirstOf bounds a list of problems to what a status tells: ten.
func FirstOf(problems []string) []string {
	if len(problems) <= maxProblems {
		return problems
	}
	bounded := slices.Clone(problems[:maxProblems-1])
	return append(bounded, fmt.Sprintf("and %d more", len(problems)-maxProblems+1))
}

// Summary says the first of some problems, and how many more there are.
func Summary(problems []string) string {
	switch more := len(problems) - 1; more {
	case 0:
		return problems[0]
	case 1:
		return problems[0] + ", and one more problem"
	default:
		return fmt.Sprintf("%s, and %d more problems", problems[0], more)
	}
}
