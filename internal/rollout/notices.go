// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
)

// mostNewer is how many newer versions a notice is given of; the others are
// counted.
const mostNewer = 5

// tellInstalled says what is wrong, or will be, with the installed version and
// with the one that is gone to.
func (f *family) tellInstalled(choice Choice) []string {
	var notices []string
	stays := ""
	if len(choice.Path) == 0 {
		stays = "; " + choice.Reason
	}
	if f.have != nil && f.at == nil {
		notices = append(notices, f.Current+", which is installed, is not among the bundles any more"+stays)
	}
	if f.at != nil && f.at.Withdrawn {
		notices = append(notices, f.Current+", which is installed, is withdrawn"+stays)
	}
	if f.at != nil {
		notices = append(notices, tellEnd(f.at, f.Now, stays)...)
	}
	for _, r := range f.releases {
		if r.Version == choice.Target && r != f.at {
			notices = append(notices, tellEnd(r, f.Now, "")...)
		}
	}
	return notices
}

// tellEnd tells of the end of a release's life, if there is one.
func tellEnd(r *release, now time.Time, stays string) []string {
	end := r.EndOfLife.UTC().Format(time.RFC3339)
	switch {
	case r.EndOfLife.IsZero():
		return nil
	case r.ended(now):
		return []string{fmt.Sprintf("%s is past its end of life since %s%s", r.Version, end, stays)}
	}
	return []string{fmt.Sprintf("%s reaches its end of life at %s", r.Version, end)}
}

// tellNewer names the versions that are newer than the one that is chosen, and why
// they are not.
func (f *family) tellNewer(choice Choice) []string {
	var notices []string
	more := 0
	chosen, err := semver.NewVersion(choice.Target)
	for _, r := range f.releases {
		switch {
		case r.Withdrawn || err == nil && !r.newer(chosen):
		case len(notices) < mostNewer:
			said := "is available and not taken"
			if f.cannot(r) != "" {
				said = "is newer and cannot be gone to"
			}
			notices = append(notices, fmt.Sprintf("%s %s: %s", r.Version, said, cmp.Or(f.cannot(r), f.notTaken(r))))
		default:
			more++
		}
	}
	if more > 0 {
		notices = append(notices, fmt.Sprintf("%d more versions are newer and not taken", more))
	}
	return notices
}

// IsOfNewer tells whether a notice is about versions that are newer than the one that was chosen.
func IsOfNewer(notice string) bool {
	return slices.ContainsFunc([]string{"is available and not taken", "is newer and cannot be gone to", "more versions are newer"}, func(words string) bool {
		return strings.Contains(notice, words)
	})
}

// cannot says why a newer release could not be gone to, whatever the specification asked for;
// empty where it could.
func (f *family) cannot(r *release) string {
	switch unusable := f.unusable(r); {
	case unusable != "" && !r.Preview:
		return "it " + unusable
	case f.have != nil && !r.Preview && f.ways.steps(r) == 0:
		return f.noPath(r)
	}
	return ""
}

// notTaken says why a newer release that could be gone to is not, the reason first that would
// have to be dealt with first.
func (f *family) notTaken(r *release) string {
	switch unusable := f.unusable(r); {
	case unusable != "":
		return "it " + unusable
	case f.pin != nil:
		return "the specification names " + f.pin.String()
	case !f.fits(r.version) && f.within == nil:
		return "it is a pre-release, which is taken only where the specification asks for one"
	case !f.fits(r.version):
		return "the specification asks for " + f.Requested
	case r.ended(f.Now):
		return "it is past its end of life"
	case f.have != nil && !f.bounded(r.version) && f.Mode == ModeAuto:
		return fmt.Sprintf("it is beyond the bound, %s", f.bound())
	}
	return fmt.Sprintf("mode %s moves nothing by itself", f.mode())
}

func (f *family) bound() Bound {
	if f.Bound == BoundPatch || f.Bound == BoundMajor {
		return f.Bound
	}
	return BoundMinor
}
