// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var (
	now    = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	past   = now.Add(-time.Hour)
	future = now.Add(time.Hour)
)

func bundle(version string, change ...func(*Bundle)) Bundle {
	b := Bundle{Version: version, UpgradesFrom: []string{">=0.0.0"}}
	for _, c := range change {
		c(&b)
	}
	return b
}

func from(ranges ...string) func(*Bundle)    { return func(b *Bundle) { b.UpgradesFrom = ranges } }
func ends(when time.Time) func(*Bundle)      { return func(b *Bundle) { b.EndOfLife = when } }
func preview(b *Bundle)                      { b.Preview = true }
func withdrawn(b *Bundle)                    { b.Withdrawn = true }
func uninstallable(why string) func(*Bundle) { return func(b *Bundle) { b.Uninstallable = why } }

func TestChoose(t *testing.T) {
	for name, test := range map[string]struct {
		reason  string
		bundles []Bundle
		wish    Wish
		target  string
		path    string
		problem string
		notice  string
		forced  bool
	}{
		"first install": {
			reason:  "nothing is installed, so that the newest comes at once, whatever the order of the list",
			bundles: []Bundle{bundle("1.9.0"), bundle("1.10.0", from()), bundle("1.2.0")},
			target:  "1.10.0", path: "1.10.0",
		},
		"first install in a range": {
			bundles: []Bundle{bundle("1.0.0"), bundle("1.5.0"), bundle("2.0.0")}, wish: Wish{Requested: "1.x"},
			target: "1.5.0", path: "1.5.0", notice: "2.0.0 is available and not taken: the specification asks for 1.x",
		},
		"first install leaves out what must not be": {
			bundles: []Bundle{bundle("1.0.0"), bundle("1.1.0", ends(past)), bundle("1.2.0", withdrawn), bundle("1.3.0", preview), bundle("1.4.0", uninstallable("layer base is missing")), bundle("2.0.0-rc.1")},
			target:  "1.0.0", path: "1.0.0", notice: "1.4.0 is newer and cannot be gone to: it cannot be installed: layer base is missing",
		},
		"first install past the end of life": {
			reason:  "where there is nothing else, it is better than nothing",
			bundles: []Bundle{bundle("1.0.0", ends(past)), bundle("1.1.0", ends(past))},
			target:  "1.1.0", path: "1.1.0", notice: "1.1.0 is past its end of life since 2026-05-04T02:02:01Z",
		},
		"nothing to install":     {bundles: []Bundle{bundle("1.0.0", withdrawn)}, problem: "none of 1 bundles can be installed"},
		"no bundles":             {problem: "none of 0 bundles can be installed"},
		"nothing in the range":   {bundles: []Bundle{bundle("1.0.0")}, wish: Wish{Requested: ">=2"}, problem: "none of 1 bundles can be installed as >=2"},
		"an exact first install": {bundles: []Bundle{bundle("1.0.0"), bundle("2.0.0")}, wish: Wish{Requested: "v1.0.0"}, target: "1.0.0", path: "1.0.0", notice: "2.0.0 is available and not taken: the specification names 1.0.0"},
		"an exact version, and a newer one without a path": {
			reason:  "what cannot be gone to is not available",
			bundles: []Bundle{bundle("1.0.0"), bundle("3.0.0", from(">=2 <3"))}, wish: Wish{Current: "1.0.0", Requested: "1.0.0"},
			target: "1.0.0", notice: "3.0.0 is newer and cannot be gone to: no path from 1.0.0 to 3.0.0: 3.0.0 takes upgrades from >=2 <3 only",
		},
		"manual stays": {
			bundles: []Bundle{bundle("1.0.0"), bundle("1.1.0")}, wish: Wish{Current: "1.0.0", Mode: ModeManual},
			target: "1.0.0", notice: "1.1.0 is available and not taken: mode Manual moves nothing by itself",
		},
		"an unknown mode stays": {bundles: []Bundle{bundle("1.0.0"), bundle("1.1.0")}, wish: Wish{Current: "1.0.0"}, target: "1.0.0"},
		"forced stays": {
			bundles: []Bundle{bundle("1.0.0"), bundle("1.1.0")}, wish: Wish{Current: "1.0.0", Force: true},
			target: "1.0.0", notice: "1.1.0 is available and not taken: mode Manual moves nothing by itself",
		},
		"auto within a major version": {
			bundles: []Bundle{bundle("1.0.0"), bundle("1.1.0"), bundle("2.0.0")}, wish: Wish{Current: "1.0.0", Mode: ModeAuto},
			target: "1.1.0", path: "1.1.0", notice: "2.0.0 is available and not taken: it is beyond the bound, Minor",
		},
		"auto within a minor version": {
			bundles: []Bundle{bundle("1.0.0"), bundle("1.0.7"), bundle("1.1.0")}, wish: Wish{Current: "1.0.0", Mode: ModeAuto, Bound: BoundPatch},
			target: "1.0.7", path: "1.0.7", notice: "1.1.0 is available and not taken: it is beyond the bound, Patch",
		},
		"auto without a bound":       {bundles: []Bundle{bundle("1.0.0"), bundle("2.0.0")}, wish: Wish{Current: "1.0.0", Mode: ModeAuto, Bound: BoundMajor}, target: "2.0.0", path: "2.0.0"},
		"auto at the newest":         {bundles: []Bundle{bundle("1.0.0"), bundle("1.1.0")}, wish: Wish{Current: "v1.1.0", Mode: ModeAuto}, target: "v1.1.0"},
		"auto never goes back":       {bundles: []Bundle{bundle("1.0.0")}, wish: Wish{Current: "1.1.0", Mode: ModeAuto}, target: "1.1.0", notice: "1.1.0, which is installed, is not among the bundles any more; there is no newer version to go to within the bound"},
		"a preview is not taken":     {bundles: []Bundle{bundle("1.0.0"), bundle("1.1.0", preview)}, wish: Wish{Current: "1.0.0", Mode: ModeAuto}, target: "1.0.0", notice: "1.1.0 is available and not taken: it is a preview, which is taken only where the specification names it exactly"},
		"not even in a range":        {bundles: []Bundle{bundle("1.0.0"), bundle("1.1.0", preview)}, wish: Wish{Current: "1.0.0", Mode: ModeAuto, Requested: ">=1.1.0"}, target: "1.0.0", problem: "1.0.0 is not what the specification asks for, >=1.1.0, and no newer version that is can be reached; an older one must be named exactly"},
		"a preview that is named":    {bundles: []Bundle{bundle("1.0.0"), bundle("1.1.0", preview)}, wish: Wish{Current: "1.0.0", Requested: "1.1.0"}, target: "1.1.0", path: "1.1.0"},
		"no way over a preview":      {bundles: []Bundle{bundle("1.0.0"), bundle("1.1.0", preview), bundle("1.2.0", from("1.1.0"))}, wish: Wish{Current: "1.0.0", Requested: "1.2.0"}, target: "1.0.0", problem: "no path from 1.0.0 to 1.2.0: 1.2.0 takes upgrades from 1.1.0 only"},
		"an end of life in future":   {reason: "announcing the end of the newest moves nobody back", bundles: []Bundle{bundle("1.0.0"), bundle("1.1.0", ends(future))}, wish: Wish{Current: "1.1.0", Mode: ModeAuto}, target: "1.1.0", notice: "1.1.0 reaches its end of life at 2026-05-04T04:02:01Z"},
		"and still a target":         {bundles: []Bundle{bundle("1.0.0"), bundle("1.1.0", ends(future))}, wish: Wish{Current: "1.0.0", Mode: ModeAuto}, target: "1.1.0", path: "1.1.0", notice: "1.1.0 reaches its end of life at 2026-05-04T04:02:01Z"},
		"past it is no target":       {bundles: []Bundle{bundle("1.0.0"), bundle("1.1.0", ends(past))}, wish: Wish{Current: "1.0.0", Mode: ModeAuto}, target: "1.0.0", notice: "1.1.0 is available and not taken: it is past its end of life"},
		"but a way":                  {bundles: []Bundle{bundle("1.1.0", ends(past)), bundle("1.2.0", from("1.1.x"))}, wish: Wish{Current: "1.0.0", Mode: ModeAuto}, target: "1.2.0", path: "1.1.0 1.2.0"},
		"auto leaves it":             {bundles: []Bundle{bundle("1.0.0", ends(past)), bundle("1.1.0"), bundle("1.2.0")}, wish: Wish{Current: "1.0.0", Mode: ModeAuto}, target: "1.2.0", path: "1.2.0", forced: true},
		"manual is forced":           {bundles: []Bundle{bundle("1.0.0", ends(now)), bundle("1.1.0", ends(past)), bundle("1.2.0", from("1.1.0")), bundle("1.3.0", from("1.2.0"))}, wish: Wish{Current: "1.0.0", Force: true}, target: "1.2.0", path: "1.1.0 1.2.0", forced: true},
		"forced keeps to the bound":  {bundles: []Bundle{bundle("1.0.0", ends(past)), bundle("2.0.0")}, wish: Wish{Current: "1.0.0", Force: true}, target: "1.0.0", notice: "1.0.0 is past its end of life since 2026-05-04T02:02:01Z; mode Manual moves nothing by itself"},
		"forced gains nothing":       {bundles: []Bundle{bundle("1.0.0", ends(past)), bundle("1.1.0", ends(past))}, wish: Wish{Current: "1.0.0", Force: true}, target: "1.0.0"},
		"manual is told":             {bundles: []Bundle{bundle("1.0.0", ends(past)), bundle("1.1.0")}, wish: Wish{Current: "1.0.0", Mode: ModeManual}, target: "1.0.0", notice: "1.0.0 is past its end of life since 2026-05-04T02:02:01Z; mode Manual moves nothing by itself"},
		"a pin is told":              {bundles: []Bundle{bundle("1.0.0", ends(past)), bundle("1.1.0")}, wish: Wish{Current: "1.0.0", Mode: ModeAuto, Requested: "1.0.0"}, target: "1.0.0", notice: "1.0.0 is past its end of life since 2026-05-04T02:02:01Z; the specification names 1.0.0"},
		"withdrawn stays":            {bundles: []Bundle{bundle("1.0.0", withdrawn), bundle("0.9.0")}, wish: Wish{Current: "1.0.0", Mode: ModeAuto}, target: "1.0.0", notice: "1.0.0, which is installed, is withdrawn; there is no newer version to go to within the bound"},
		"withdrawn is left":          {bundles: []Bundle{bundle("1.0.0", withdrawn), bundle("1.1.0", ends(past))}, wish: Wish{Current: "1.0.0", Mode: ModeAuto}, target: "1.1.0", path: "1.1.0", notice: "1.0.0, which is installed, is withdrawn"},
		"withdrawn in manual":        {bundles: []Bundle{bundle("1.0.0", withdrawn), bundle("1.1.0")}, wish: Wish{Current: "1.0.0", Mode: ModeManual}, target: "1.0.0", notice: "1.0.0, which is installed, is withdrawn; mode Manual moves nothing by itself"},
		"withdrawn is never named":   {bundles: []Bundle{bundle("1.0.0"), bundle("1.1.0", withdrawn)}, wish: Wish{Current: "1.0.0", Requested: "1.1.0"}, target: "1.0.0", problem: "1.1.0 is withdrawn"},
		"withdrawn and pinned":       {bundles: []Bundle{bundle("1.0.0", withdrawn), bundle("1.1.0")}, wish: Wish{Current: "1.0.0", Requested: "1.0.0", Mode: ModeAuto}, target: "1.0.0", notice: "1.0.0, which is installed, is withdrawn; the specification names 1.0.0"},
		"uninstallable and named":    {bundles: []Bundle{bundle("1.1.0", uninstallable("no chart"))}, wish: Wish{Requested: "1.1.0"}, problem: "1.1.0 cannot be installed: no chart"},
		"named and missing":          {bundles: []Bundle{bundle("1.0.0")}, wish: Wish{Current: "1.0.0", Requested: "1.1.0"}, target: "1.0.0", problem: "there is no bundle of version 1.1.0"},
		"no path":                    {bundles: []Bundle{bundle("1.0.0"), bundle("3.0.0", from(">=2.0.0"))}, wish: Wish{Current: "1.0.0", Requested: "3.0.0"}, target: "1.0.0", problem: "no path from 1.0.0 to 3.0.0: 3.0.0 takes upgrades from >=2.0.0 only"},
		"no path for auto":           {bundles: []Bundle{bundle("1.0.0"), bundle("1.3.0", from("1.2.x", "1.1.9"))}, wish: Wish{Current: "1.0.0", Mode: ModeAuto}, target: "1.0.0", notice: "1.3.0 is newer and cannot be gone to: no path from 1.0.0 to 1.3.0: 1.3.0 takes upgrades from 1.2.x or 1.1.9 only"},
		"takes none":                 {bundles: []Bundle{bundle("1.0.0"), bundle("2.0.0", from())}, wish: Wish{Current: "1.0.0", Requested: "2.0.0"}, target: "1.0.0", problem: "no path from 1.0.0 to 2.0.0: 2.0.0 takes no upgrades, it can only be installed afresh"},
		"from a pre-release":         {bundles: []Bundle{bundle("1.0.0")}, wish: Wish{Current: "1.0.0-rc.1", Requested: "1.0.0"}, target: "1.0.0-rc.1", problem: "no path from 1.0.0-rc.1 to 1.0.0: 1.0.0 takes upgrades from >=0.0.0 only; 1.0.0-rc.1 is a pre-release, which is taken only by a range that names one"},
		"from one that is taken":     {bundles: []Bundle{bundle("1.0.0", from(">=0.9.0-0"))}, wish: Wish{Current: "1.0.0-rc.1", Mode: ModeAuto}, target: "1.0.0", path: "1.0.0"},
		"a downgrade that is named":  {bundles: []Bundle{bundle("1.0.0", from("1.1.0")), bundle("1.1.0")}, wish: Wish{Current: "1.1.0", Requested: "1.0.0"}, target: "1.0.0", path: "1.0.0"},
		"one that is not permitted":  {bundles: []Bundle{bundle("1.0.0", from("<1.0.0")), bundle("1.1.0")}, wish: Wish{Current: "1.1.0", Requested: "1.0.0"}, target: "1.1.0", problem: "1.0.0 does not come after 1.1.0, and 1.0.0 takes upgrades from <1.0.0 only"},
		"a range is no permission":   {bundles: []Bundle{bundle("1.0.0"), bundle("1.1.0")}, wish: Wish{Current: "1.1.0", Requested: "<1.1.0", Mode: ModeAuto}, target: "1.1.0", problem: "1.1.0 is not what the specification asks for, <1.1.0, and no newer version that is can be reached; an older one must be named exactly"},
		"a range asks":               {reason: "manual moves when the specification changes, no further than it must", bundles: []Bundle{bundle("2.0.0"), bundle("2.1.0", from("2.0.0"))}, wish: Wish{Current: "1.0.0", Requested: ">=2", Mode: ModeManual}, target: "2.0.0", path: "2.0.0", notice: "2.1.0 is available and not taken: mode Manual moves nothing by itself"},
		"a range within the bound":   {reason: "what was asked for is to be had without overstepping the bound", bundles: []Bundle{bundle("1.6.0"), bundle("3.0.0")}, wish: Wish{Current: "1.5.0", Requested: ">=1.6", Mode: ModeAuto}, target: "1.6.0", path: "1.6.0"},
		"and in manual":              {bundles: []Bundle{bundle("1.6.0"), bundle("3.0.0")}, wish: Wish{Current: "1.5.0", Requested: ">=1.6", Mode: ModeManual}, target: "1.6.0", path: "1.6.0"},
		"a range beyond the bound":   {bundles: []Bundle{bundle("2.0.0"), bundle("2.5.0", from("2.0.0"))}, wish: Wish{Current: "1.5.0", Requested: ">=2", Mode: ModeAuto}, target: "2.0.0", path: "2.0.0"},
		"the shortest way":           {bundles: []Bundle{bundle("1.1.0"), bundle("1.2.0", from("1.1.0")), bundle("1.3.0", from("1.2.0", "1.1.0"))}, wish: Wish{Current: "1.0.0", Mode: ModeAuto}, target: "1.3.0", path: "1.1.0 1.3.0"},
		"the newest of them":         {bundles: []Bundle{bundle("1.1.0"), bundle("1.2.0"), bundle("1.3.0", from("1.1.0", "1.2.0"))}, wish: Wish{Current: "1.0.0", Mode: ModeAuto}, target: "1.3.0", path: "1.2.0 1.3.0"},
		"not over what leads away":   {bundles: []Bundle{bundle("1.1.0"), bundle("1.2.0"), bundle("1.3.0", from("1.1.0"))}, wish: Wish{Current: "1.0.0", Mode: ModeAuto}, target: "1.3.0", path: "1.1.0 1.3.0"},
		"a range that is none":       {bundles: []Bundle{bundle("1.0.0")}, wish: Wish{Current: "1.0.0", Requested: "newest"}, target: "1.0.0", problem: `version "newest" is neither a version such as 1.4.2 nor a range such as >=1.4 <2`},
		"an installed that is none":  {bundles: []Bundle{bundle("1.0.0")}, wish: Wish{Current: "main"}, target: "main", problem: `"main", which is installed, is no semantic version, so that nothing can be told of what follows it`},
		"a bundle that is none":      {bundles: []Bundle{bundle("1.0.0"), bundle("latest")}, target: "1.0.0", path: "1.0.0", notice: `bundle "latest" is left out: that is no semantic version`},
		"an upgradesFrom that isn't": {bundles: []Bundle{bundle("1.0.0", from("older"))}, target: "1.0.0", path: "1.0.0", notice: `1.0.0: upgradesFrom has "older", which is no range`},
	} {
		t.Run(name, func(t *testing.T) {
			test.wish.Bundles, test.wish.Now = test.bundles, now
			got := Choose(test.wish)
			if got.Target != test.target || strings.Join(got.Path, " ") != test.path || got.Problem != test.problem || got.Forced != test.forced {
				t.Errorf("%s\ngot  %q by %q, forced %t, problem %q\nwant %q by %q, forced %t, problem %q", test.reason,
					got.Target, got.Path, got.Forced, got.Problem, test.target, test.path, test.forced, test.problem)
			}
			if test.notice != "" && !slices.Contains(got.Notices, test.notice) {
				t.Errorf("notices %q lack %q", got.Notices, test.notice)
			}
			if got.Reason == "" {
				t.Error("no reason")
			}
			slices.Reverse(test.wish.Bundles)
			if diff := cmp.Diff(got, Choose(test.wish)); diff != "" {
				t.Errorf("the order of bundles matters: %s", diff)
			}
		})
	}
}

func TestNoticesAreBounded(t *testing.T) {
	wish := Wish{Now: now, Current: "1.0.0"}
	for i := range 300 {
		wish.Bundles = append(wish.Bundles, bundle(fmt.Sprintf("1.%d.0", i)))
	}
	notices := Choose(wish).Notices
	if len(notices) != mostNewer+1 || !slices.Contains(notices, "294 more versions are newer and not taken") {
		t.Errorf("%q", notices)
	}
}

func TestUntilIsTheNextEndOfLife(t *testing.T) {
	wish := Wish{Now: now, Current: "1.0.0", Bundles: []Bundle{bundle("1.0.0", ends(past)), bundle("1.1.0", ends(future.Add(1))), bundle("1.2.0", ends(future))}}
	if got := Choose(wish).Until; !got.Equal(future) {
		t.Errorf("until %s", got)
	}
}

// drawWish draws a family with gaps in what may be entered from what.
func drawWish(t *rapid.T) Wish {
	version := rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprintf("%d.%d.%d", rapid.IntRange(1, 3).Draw(t, "major"), rapid.IntRange(0, 2).Draw(t, "minor"), rapid.IntRange(0, 1).Draw(t, "patch"))
	})
	w := Wish{
		Now: now, Mode: rapid.SampledFrom([]Mode{ModeManual, ModeAuto}).Draw(t, "mode"), Force: rapid.Bool().Draw(t, "force"),
		Bound:     rapid.SampledFrom([]Bound{BoundPatch, BoundMinor, BoundMajor, ""}).Draw(t, "bound"),
		Current:   rapid.OneOf(version, rapid.Just("")).Draw(t, "current"),
		Requested: rapid.OneOf(version, rapid.SampledFrom([]string{"", "1.x", ">=2", ">=1.1 <3"})).Draw(t, "requested"),
	}
	for _, v := range rapid.SliceOfNDistinct(version, 0, 12, rapid.ID[string]).Draw(t, "versions") {
		b := Bundle{
			Version: v, Preview: rapid.IntRange(0, 5).Draw(t, "preview") == 0, Withdrawn: rapid.IntRange(0, 5).Draw(t, "withdrawn") == 0,
			EndOfLife:    rapid.SampledFrom([]time.Time{{}, {}, past, future}).Draw(t, "end"),
			UpgradesFrom: rapid.SliceOfN(rapid.OneOf(version, rapid.SampledFrom([]string{">=1.0.0", "1.x", "~2.0"})), 0, 3).Draw(t, "from"),
		}
		if rapid.IntRange(0, 5).Draw(t, "uninstallable") == 0 {
			b.Uninstallable = "why"
		}
		w.Bundles = append(w.Bundles, b)
	}
	return w
}

// bestPath tries every path of newer and newer versions, and returns the best by
// the rule: the shortest, then the one with the newest versions from the front.
func bestPath(w Wish, at, target string) []string {
	var best []string
	var walk func(at string, path []string)
	walk = func(at string, path []string) {
		if at == target {
			better := best == nil || len(path) < len(best)
			for i := 0; !better && len(path) == len(best) && i < len(path); i++ {
				if path[i] != best[i] {
					better = semver.MustParse(path[i]).GreaterThan(semver.MustParse(best[i]))
					break
				}
			}
			if better {
				best = slices.Clone(path)
			}
			return
		}
		for _, b := range w.Bundles {
			if b.Withdrawn || b.Uninstallable != "" || b.Preview && b.Version != w.Requested || !semver.MustParse(b.Version).GreaterThan(semver.MustParse(at)) {
				continue
			}
			for _, text := range b.UpgradesFrom {
				if c, err := semver.NewConstraint(text); err == nil && c.Check(semver.MustParse(at)) {
					walk(b.Version, append(slices.Clone(path), b.Version))
					break
				}
			}
		}
	}
	walk(at, nil)
	return best
}

// TestChoiceAgainstEveryPath checks the rules on random families, with a search
// over all paths where the choice uses levels.
func TestChoiceAgainstEveryPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWish(t)
		c := Choose(w)
		_, err := semver.StrictNewVersion(w.Requested)
		exact := err == nil
		if len(c.Path) == 0 {
			if c.Target != w.Current {
				t.Fatalf("no path to %+v", c)
			}
			if exact && w.Current != "" && w.Requested != w.Current && bestPath(w, w.Current, w.Requested) != nil {
				t.Fatalf("%s can be reached: %+v", w.Requested, c)
			}
			if exact && w.Requested != w.Current && c.Problem == "" {
				t.Fatalf("says nothing: %+v", c)
			}
			return
		}
		i := slices.IndexFunc(w.Bundles, func(b Bundle) bool { return b.Version == c.Target })
		target := w.Bundles[i]
		if target.Withdrawn || target.Uninstallable != "" || target.Preview && w.Requested != target.Version {
			t.Fatalf("never: %+v", c)
		}
		if w.Current == "" {
			return
		}
		best := bestPath(w, w.Current, c.Target)
		switch newer := semver.MustParse(c.Target).GreaterThan(semver.MustParse(w.Current)); {
		case newer && cmp.Diff(best, c.Path) != "":
			t.Fatalf("path %v, want %v", c.Path, best)
		case !newer && (c.Target != w.Requested || len(c.Path) != 1):
			t.Fatalf("a downgrade: %+v", c)
		}
		if w.Mode != ModeAuto && !exact && !c.Forced && (w.Requested == "" || mustFit(w.Requested, w.Current)) {
			t.Fatalf("mode %s moved by itself: %+v", w.Mode, c)
		}
		asked := w.Requested != "" && !mustFit(w.Requested, w.Current)
		if !exact && (w.Mode != ModeAuto || asked) || len(c.Path) == 1 {
			return
		}
		// On the way it does not change its mind. Only a range that takes it out of
		// its bound may end at what fits and is past its end of life.
		later := w
		later.Current = c.Path[0]
		again := Choose(later)
		if again.Target != c.Target || cmp.Diff(c.Path[1:], again.Path) != "" {
			t.Fatalf("went to %v by %v, then to %v by %v", c.Target, c.Path, again.Target, again.Path)
		}
	})
}

func mustFit(text, version string) bool {
	c, err := semver.NewConstraint(text)
	return err == nil && c.Check(semver.MustParse(version))
}

// TestAutoTakesTheNewest compares with all candidates, one by one.
func TestAutoTakesTheNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWish(t)
		w.Mode, w.Bound, w.Requested = ModeAuto, BoundMajor, ""
		if w.Current == "" {
			w.Current = "1.0.0"
		}
		want := w.Current
		for _, b := range w.Bundles {
			if bestPath(w, w.Current, b.Version) != nil && b.EndOfLife != past && semver.MustParse(b.Version).GreaterThan(semver.MustParse(want)) {
				want = b.Version
			}
		}
		if got := Choose(w); want != w.Current && got.Target != want {
			t.Fatalf("%s, want %s", got.Target, want)
		}
	})
}

func BenchmarkChoose(b *testing.B) {
	wish := Wish{Now: now, Current: "1.0.0", Mode: ModeAuto}
	for i := range 100 {
		wish.Bundles = append(wish.Bundles, bundle(fmt.Sprintf("1.%d.0", i), from(fmt.Sprintf(">=1.%d.0 <1.%d.0", max(0, i-2), i))))
	}
	for b.Loop() {
		Choose(wish)
	}
}
