// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/strata-project/strata/internal/answers/fleet"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/platforms"
	"github.com/strata-project/strata/internal/rollout"
)

// Path is the way from one version of a family to another.
type Path struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Hops are the versions that a cluster goes to one after the other, the last
	// being To; none where there is no way.
	Hops []string `json:"hops"`
	// Blocked says why there is no way, or why a cluster would not get to its end;
	// empty where it would.
	Blocked string `json:"blocked"`
	// Direct says why it cannot go there at once; empty where it can.
	Direct string `json:"notDirect"`
	// Notices are what else is to be known, such as the end of a life.
	Notices []string `json:"notices"`
}

// Route is what somebody asks for.
type Route struct {
	// From and To are versions; empty for all that there are, and for the newest
	// that can be installed where neither is given.
	From, To string
	// Kubernetes is the version that the clusters have; empty for any.
	Kubernetes string
}

// Paths returns the ways between versions of a family that a Platform would go,
// those with the fewest hops first and those that lead nowhere last. An error says
// that there is no such family or version.
func Paths(w fleet.World, family string, route Route) ([]Path, error) {
	releases := platforms.Releases(platforms.Observation{Bundles: w.Bundles, Catalogue: w.Catalogue()}, family)
	if len(releases) == 0 {
		return nil, fmt.Errorf("there is no ApplicationBundle of family %s", family)
	}
	// The newest first.
	slices.SortFunc(releases, func(a, b rollout.Bundle) int { return fleet.Compare(b.Version, a.Version) })
	froms, tos, err := ends(w, family, releases, route)
	if err != nil {
		return nil, err
	}
	found := []Path{}
	for _, from := range froms {
		for _, to := range tos {
			downgrade := fleet.Compare(to, from) < 0 && (route.From == "" || route.To == "")
			if catalogue.Plain(from) != catalogue.Plain(to) && !downgrade {
				found = append(found, pathOf(w, family, releases, from, to, route.Kubernetes))
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Path) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), fleet.Compare(b.To, a.To), fleet.Compare(b.From, a.From))
	})
	return found, nil
}

// rank orders paths: by hops, and those that lead nowhere last.
func (p Path) rank() int {
	switch {
	case len(p.Hops) == 0:
		return 2000
	case p.Blocked != "":
		return 1000 + len(p.Hops)
	}
	return len(p.Hops)
}

// ends returns the versions that paths begin and end at.
func ends(w fleet.World, family string, releases []rollout.Bundle, route Route) (froms, tos []string, err error) {
	var all []string
	for _, release := range releases {
		all = append(all, release.Version)
	}
	froms, tos = all, all
	if route.From != "" {
		if _, err := semver.NewVersion(route.From); err != nil {
			return nil, nil, fmt.Errorf("--from is %q: that is no version such as 1.4.2", route.From)
		}
		// One that is installed need not be there any more.
		froms = []string{written(all, route.From)}
	}
	switch {
	case route.To != "":
		at := slices.IndexFunc(all, func(v string) bool { return catalogue.Plain(v) == catalogue.Plain(route.To) })
		if at < 0 {
			return nil, nil, fmt.Errorf("there is no version %s of family %s; there are %s", route.To, family, strings.Join(all, ", "))
		}
		tos = []string{all[at]}
	case route.From == "":
		newest := rollout.Choose(rollout.Wish{Now: w.Now, Bundles: releases})
		tos = []string{cmp.Or(newest.Target, all[0])}
	}
	return froms, tos, nil
}

// written returns a version as a bundle has it.
func written(all []string, version string) string {
	for _, one := range all {
		if catalogue.Plain(one) == catalogue.Plain(version) {
			return one
		}
	}
	return version
}

// pathOf asks the rules of roll-outs for one way, as a Platform that names the version
// would.
func pathOf(w fleet.World, family string, releases []rollout.Bundle, from, to, kubernetes string) Path {
	wish := rollout.Wish{Now: w.Now, Bundles: releases, Current: from, Requested: catalogue.Plain(to)}
	choice := rollout.Choose(wish)
	p := Path{From: from, To: to, Hops: append([]string{}, choice.Path...), Blocked: choice.Problem, Notices: []string{}}
	for _, notice := range choice.Notices {
		if !rollout.IsOfNewer(notice) {
			p.Notices = append(p.Notices, strings.TrimSuffix(notice, "; "+choice.Reason))
		}
	}
	slices.Sort(p.Notices)
	p.Notices = slices.Compact(p.Notices)
	if len(p.Hops) != 1 {
		p.Direct = notDirect(w, releases, from, to)
	}
	if p.Blocked == "" {
		p.Blocked = outOfRange(w, family, p.Hops, kubernetes)
	}
	return p
}

// notDirect says why one hop does not lead from a version to another: what the rules
// say where there is nothing between them.
func notDirect(w fleet.World, releases []rollout.Bundle, from, to string) string {
	at := slices.IndexFunc(releases, func(r rollout.Bundle) bool { return r.Version == to })
	return rollout.Choose(rollout.Wish{Now: w.Now, Bundles: releases[at : at+1], Current: from, Requested: catalogue.Plain(to)}).Problem
}

// outOfRange says which of some versions does not run on a version of Kubernetes.
func outOfRange(w fleet.World, family string, hops []string, kubernetes string) string {
	if kubernetes == "" {
		return ""
	}
	for _, hop := range hops {
		bundle := w.FindBundle(family + "@" + hop)
		if bundle == nil {
			continue
		}
		if why := bundles.Unfit(bundle, w.Catalogue(), kubernetes); why != "" {
			return fmt.Sprintf("%s %s: no Platform moves it there", hop, why)
		}
	}
	return ""
}

// String returns the versions of the way, or that there is none.
func (p Path) String() string {
	if len(p.Hops) == 0 {
		return p.From + " -/-> " + p.To
	}
	return strings.Join(append([]string{p.From}, p.Hops...), " -> ")
}

// Why says what keeps a cluster from the way, or why it is not one hop.
func (p Path) Why() string {
	why := cmp.Or(p.Blocked, p.Direct)
	if len(p.Notices) > 0 {
		why = strings.TrimPrefix(why+"; "+strings.Join(p.Notices, "; "), "; ")
	}
	return why
}
