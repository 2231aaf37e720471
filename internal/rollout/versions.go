// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/strata-project/strata/internal/moments"
)

// ended tells whether the end of life has come. One in the future changes nothing.
func (b Bundle) ended(now time.Time) bool { return !b.EndOfLife.IsZero() && !now.Before(b.EndOfLife) }

// Mode says what happens when there is a newer version.
type Mode string

const (
	// ModeManual moves nothing but for a change of the specification, and only
	// tells of newer versions. It is also what an unknown mode does.
	ModeManual Mode = "Manual"
	// ModeAuto goes to the newest version within the bound.
	ModeAuto Mode = "Auto"
)

// Bound says how far a version may be from the installed one to be gone to without
// somebody asking.
type Bound string

const (
	// BoundPatch stays within a minor version.
	BoundPatch Bound = "Patch"
	// BoundMinor stays within a major version; an empty Bound does too.
	BoundMinor Bound = "Minor"
	// BoundMajor has no bound.
	BoundMajor Bound = "Major"
)

// Wish is everything that Choose chooses from.
type Wish struct {
	Now     time.Time
	Bundles []Bundle
	// Current is the version that a cluster is at; empty where it has none.
	Current string
	// Requested is the version of the specification: an exact one of three
	// numbers, which pins, or a range; empty for any that is no pre-release.
	Requested string
	Mode      Mode
	Bound     Bound
	// Force has ModeManual leave a version that is past its end of life, too.
	Force bool
}

// Choice says which version a cluster is to have, and how it gets there.
type Choice struct {
	// Target is the version to be at in the end; that of now where nothing is to
	// be done, and empty where nothing can be installed.
	Target string
	// Path are the versions to go to one after the other, the last being Target;
	// empty where nothing is to be done.
	Path []string
	// Forced is true where it moves because of an end of life.
	Forced bool
	// Reason says why this one.
	Reason string
	// Problem says why what was asked for cannot be had; empty where it can. Unfit is true
	// where another version of Kubernetes would mend it.
	Problem string
	Unfit   bool
	// Notices are what somebody should know although nothing fails.
	Notices []string
	// Until is when the choice may differ although nothing else has changed; zero
	// where that will not be.
	Until time.Time
}

// Next returns the version to go to now; empty where nothing is to be done.
func (c Choice) Next() string {
	if len(c.Path) == 0 {
		return ""
	}
	return c.Path[0]
}

// family is a wish that has been understood.
type family struct {
	Wish
	releases []*release
	// have is the version that is installed, and at its release; nil for none.
	have *semver.Version
	at   *release
	// pin and within are what was requested; at most one of them is set.
	pin    *semver.Version
	within *semver.Constraints
	ways   paths
}

// Choose says which version a cluster is to have. That is the same for all
// clusters that are at one version, so that it need be asked only once for them.
//
// It goes along upgradesFrom only, over versions that are neither withdrawn nor
// previews, and never to an older version unless the specification names that
// exactly and its upgradesFrom takes the installed one. A withdrawn version is
// left by ModeAuto as soon as there is somewhere to go.
//
// Past the end of life of the installed version ModeAuto moves, and with Force ModeManual,
// the latter as few steps as lead to one that is supported. Without it ModeManual does not:
// it was chosen so that nothing moves without a person, and a move at a bad moment
// can be worse than a version that nobody mends. Nor does a pin, which says the
// same of one version. Neither is the bound overstepped: a major version may break
// what runs, and whoever set the bound asked to be there for it.
func Choose(wish Wish) Choice {
	f, wrong, problem := understand(wish)
	choice := Choice{Target: wish.Current, Reason: "what was asked for cannot be understood", Problem: problem}
	switch {
	case problem != "":
	case f.pin != nil:
		choice = f.pinned()
	case f.have == nil:
		choice = f.first()
	default:
		choice = f.further()
	}
	if r := f.barred(); problem == "" && choice.Problem != "" && r != nil {
		choice.Unfit = true
		why := r.Version + " " + r.Unfit + f.wouldFit()
		if f.pin == nil {
			why = choice.Problem + ": " + why
		}
		choice.Problem = why
	}
	if problem == "" {
		choice.Notices = append(f.tellInstalled(choice), f.tellNewer(choice)...)
	}
	choice.Notices = append(choice.Notices, wrong...)
	for _, r := range f.releases {
		if r.EndOfLife.After(wish.Now) {
			choice.Until = moments.Earlier(choice.Until, r.EndOfLife)
		}
	}
	return choice
}

func understand(wish Wish) (f *family, wrong []string, problem string) {
	f = &family{Wish: wish}
	f.releases, wrong = understood(wish.Bundles)
	requested := strings.TrimSpace(wish.Requested)
	if pin, err := semver.StrictNewVersion(strings.TrimPrefix(requested, "v")); err == nil {
		f.pin = pin
	} else if requested != "" {
		if f.within, err = semver.NewConstraint(requested); err != nil {
			return f, wrong, fmt.Sprintf("version %q is neither a version such as 1.4.2 nor a range such as >=1.4 <2", wish.Requested)
		}
	}
	if wish.Current == "" {
		return f, wrong, ""
	}
	have, err := semver.NewVersion(wish.Current)
	if err != nil {
		return f, wrong, fmt.Sprintf("%q, which is installed, is no semantic version, so that nothing can be told of what follows it", wish.Current)
	}
	f.have, f.at = have, f.find(have)
	f.ways = pathsFrom(have, slices.DeleteFunc(slices.Clone(f.releases), func(r *release) bool { return f.unusable(r) != "" }))
	return f, wrong, ""
}

func (f *family) find(version *semver.Version) *release {
	for _, r := range f.releases {
		if same(r.version, version) {
			return r
		}
	}
	return nil
}

// unusable says why a release is never gone to; empty where it may be.
func (f *family) unusable(r *release) string {
	switch {
	case r.Withdrawn:
		return "is withdrawn"
	case r.Uninstallable != "":
		return "cannot be installed: " + r.Uninstallable
	case r.Unfit != "":
		return r.Unfit
	case r.Preview && (f.pin == nil || !same(r.version, f.pin)):
		return "is a preview, which is taken only where the specification names it exactly"
	}
	return ""
}

// fits tells whether a version is what the specification asks for. No range takes
// pre-releases that does not name one, and neither does having none.
func (f *family) fits(version *semver.Version) bool {
	if f.within == nil {
		return version.Prerelease() == ""
	}
	return f.within.Check(version)
}

// bounded tells whether a version is within the bound of the installed one.
func (f *family) bounded(version *semver.Version) bool {
	sameMajor := version.Major() == f.have.Major()
	switch f.Bound {
	case BoundMajor:
		return true
	case BoundPatch:
		return sameMajor && version.Minor() == f.have.Minor()
	default:
		return sameMajor
	}
}

// stay is the choice to leave things as they are.
func (f *family) stay(reason, problem string) Choice {
	return Choice{Target: f.Current, Reason: reason, Problem: problem}
}

// pinned chooses the one version that the specification names.
func (f *family) pinned() Choice {
	name := f.pin.String()
	r := f.find(f.pin)
	switch {
	case f.have != nil && same(f.have, f.pin):
		return f.stay("the specification names "+f.Current, "")
	case r == nil:
		return f.stay("what the specification names does not exist", "there is no bundle of version "+name)
	case f.unusable(r) != "":
		return f.stay("what the specification names cannot be used", r.Version+" "+f.unusable(r))
	}
	choice := Choice{Target: r.Version, Path: []string{r.Version}, Reason: "the specification names " + r.Version}
	if f.have == nil {
		return choice
	}
	if !r.newer(f.have) {
		if !r.enters(f.have) {
			return f.stay("what the specification names cannot be reached",
				fmt.Sprintf("%s does not come after %s, and %s%s", r.Version, f.Current, r.takes(), f.hint()))
		}
		return choice
	}
	if choice.Path = f.ways.to(r); choice.Path == nil {
		return f.stay("what the specification names cannot be reached", f.noPath(r))
	}
	return choice
}

func (f *family) noPath(to *release) string {
	return fmt.Sprintf("no path from %s to %s: %s%s", f.Current, to.Version, to.takes(), f.hint())
}

// hint says what is special about the installed version where ranges are at issue.
func (f *family) hint() string {
	if f.have.Prerelease() == "" {
		return ""
	}
	return fmt.Sprintf("; %s is a pre-release, which is taken only by a range that names one", f.Current)
}

// barred returns the newest version that is asked for, and that only the cluster's version
// of Kubernetes keeps from being gone to; nil for none.
func (f *family) barred() *release {
	for _, r := range f.releases {
		asked := f.pin != nil && same(r.version, f.pin) || f.pin == nil && f.fits(r.version) && !r.Preview
		if asked && r.Unfit != "" && !r.Withdrawn && r.Uninstallable == "" && (f.have == nil || !same(r.version, f.have)) {
			return r
		}
	}
	return nil
}

// wouldFit names the newest version that runs on the cluster and can be had there.
func (f *family) wouldFit() string {
	for _, r := range f.releases {
		if r.version.Prerelease() == "" && f.unusable(r) == "" && (f.have == nil || same(r.version, f.have) || f.ways.steps(r) > 0) {
			return fmt.Sprintf("; %s is the newest that fits", r.Version)
		}
	}
	return "; no version fits"
}

// first chooses where nothing is installed: the newest that fits, at once.
func (f *family) first() Choice {
	fitting := f.candidates(func(r *release) bool { return f.unusable(r) == "" })
	r := newest(f.preferred(fitting))
	if r == nil {
		return f.stay("nothing can be installed", fmt.Sprintf("none of %d bundles can be installed%s", len(f.releases), f.asked(" as ")))
	}
	return Choice{Target: r.Version, Path: []string{r.Version}, Reason: "the newest version that can be installed" + f.asked(" of ")}
}

// asked repeats the range of the specification behind a word.
func (f *family) asked(word string) string {
	if f.within == nil {
		return ""
	}
	return word + f.Requested
}

// candidates returns the releases that fit the specification and are something,
// the newest first.
func (f *family) candidates(are func(*release) bool) []*release {
	var found []*release
	for _, r := range f.releases {
		if f.fits(r.version) && are(r) {
			found = append(found, r)
		}
	}
	return found
}

// living returns those that are not past their end of life.
func (f *family) living(releases []*release) []*release {
	return slices.DeleteFunc(slices.Clone(releases), func(r *release) bool { return r.ended(f.Now) })
}

// preferred returns those that are not past their end of life, or all where every
// one is.
func (f *family) preferred(releases []*release) []*release {
	if living := f.living(releases); len(living) > 0 {
		return living
	}
	return releases
}

// nearest returns what the fewest steps lead to, and of those the newest.
func (f *family) nearest(releases []*release) *release {
	var best *release
	for _, r := range releases {
		if best == nil || f.ways.steps(r) < f.ways.steps(best) {
			best = r
		}
	}
	return best
}

// further chooses where something is installed and no exact version is asked for.
//
// A move that the mode would not make goes as few steps as it must: what lies
// behind it is then again for the mode to say.
func (f *family) further() Choice {
	reachable := f.candidates(func(r *release) bool { return f.ways.steps(r) > 0 })
	bounded := slices.DeleteFunc(slices.Clone(reachable), func(r *release) bool { return !f.bounded(r.version) })
	ended := f.at != nil && f.at.ended(f.Now)
	withdrawn := f.at != nil && f.at.Withdrawn
	outside := f.within != nil && !f.fits(f.have)
	auto := f.Mode == ModeAuto
	switch {
	case auto && len(f.living(bounded)) > 0, auto && len(bounded) > 0 && (ended || withdrawn || outside):
		choice := f.moveTo(newest(f.preferred(bounded)), "the newest version that can be reached within the bound"+f.asked(" of "))
		choice.Forced = ended
		return choice
	case outside && len(bounded) > 0:
		return f.moveTo(f.nearest(f.preferred(bounded)), fmt.Sprintf("the specification asks for %s, which %s is not", f.Requested, f.Current))
	case outside && len(reachable) > 0:
		return f.moveTo(f.nearest(f.preferred(reachable)), fmt.Sprintf("the specification asks for %s, which %s is not", f.Requested, f.Current))
	case outside:
		return f.stay(
			"no version that the specification asks for can be reached",
			fmt.Sprintf(
				"%s is not what the specification asks for, %s, and no newer version that is can be reached; an older one must be named exactly",
				f.Current,
				f.Requested,
			),
		)
	case f.Force && !auto && ended && len(f.living(bounded)) > 0:
		choice := f.moveTo(f.nearest(f.living(bounded)), f.Current+" is past its end of life, and this is the nearest version that is not")
		choice.Forced = true
		return choice
	case auto:
		return f.stay("there is no newer version to go to within the bound", "")
	}
	return f.stay(fmt.Sprintf("mode %s moves nothing by itself", f.mode()), "")
}

func (f *family) mode() Mode {
	if f.Mode == ModeAuto {
		return f.Mode
	}
	return ModeManual
}

func (f *family) moveTo(to *release, reason string) Choice {
	return Choice{Target: to.Version, Path: f.ways.to(to), Reason: reason}
}
