// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/strata-project/strata/internal/printable"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/acts"
	"github.com/strata-project/strata/internal/answers/events"
	"github.com/strata-project/strata/internal/answers/fleet"
	"github.com/strata-project/strata/internal/answers/platforms"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/verdict"
	"github.com/strata-project/strata/internal/near"
	"github.com/strata-project/strata/internal/objects"
	rules "github.com/strata-project/strata/internal/platforms"
	"github.com/strata-project/strata/internal/rollout"
)

const (
	// mostPlatforms is how many Platforms are shown beside each other, those in trouble first.
	mostPlatforms = 30
	// mostClusters is how many clusters of one Platform are listed, those in trouble first,
	// and how many layers of a plan, in their order.
	mostClusters = 100
	// mostVersions is how many versions of a bundle may be chosen, the newest.
	mostVersions = 30
	// planNow is the plan of what would be done as everything is.
	planNow = "now"
)

// platformView is one Platform with its roll-out.
type platformView struct {
	Name string `json:"name"`
	// Missing is true where there is no such Platform, and Near are the names that may be
	// meant.
	Missing  bool                `json:"missing,omitempty"`
	Near     []string            `json:"near,omitempty"`
	Standing *platforms.Standing `json:"standing,omitempty"`
	// States counts the clusters by their states, the worst first, and More those that are
	// not listed.
	States []stateCount `json:"states"`
	More   int          `json:"more,omitempty"`
	// Versions are those that a plan may be made for, the newest first.
	Versions []versionView `json:"versions"`
	Happened happened      `json:"happened"`
	// Approve is true where stages may be approved.
	Approve bool `json:"approve,omitempty"`
	// Lacking says what the answer is made without.
	Lacking  []string `json:"lacking,omitempty"`
	Commands []string `json:"commands"`
}

type stateCount struct {
	State string        `json:"state"`
	Fares verdict.State `json:"fares"`
	Count int           `json:"count"`
}

// versionView is a version of the bundle.
type versionView struct {
	Version string `json:"version"`
	// Note says that it is withdrawn, a preview, or cannot be installed.
	Note string `json:"note,omitempty"`
}

// rolloutPlan is what would be done for a Platform.
type rolloutPlan struct {
	// Of is what was asked for: a version, or now.
	Of    string `json:"of"`
	Error string `json:"error,omitempty"`
	// Plan has the clusters that begin first.
	Plan platforms.Plan `json:"plan"`
	// Writes and Deletes count layers, and More those that are not listed.
	Writes  int    `json:"writes"`
	Deletes int    `json:"deletes"`
	More    int    `json:"more,omitempty"`
	Command string `json:"command"`
}

// addPlatforms adds what the view of roll-outs shows.
func addPlatforms(all map[string]any, o Options, s *snapshot.Snapshot, q query) {
	if q.platform != "" {
		addPlatform(all, o, s, q)
		return
	}
	var briefs []platforms.Brief
	for _, platform := range shownPlatforms(s, o.Cluster.Wanted()) {
		briefs = append(briefs, platforms.BriefOf(platform))
	}
	slices.SortStableFunc(briefs, func(a, b platforms.Brief) int {
		return cmp.Or(verdict.Compare(a.Fares, b.Fares), strings.Compare(a.Name, b.Name))
	})
	names := []string{}
	for _, brief := range briefs[:min(len(briefs), mostPlatforms)] {
		brief.Why = clip(brief.Why)
		names = append(names, brief.Name)
		all["platform/"+brief.Name] = brief
	}
	all["platforms"] = listed[string]{names, len(briefs) - len(names)}
}

// worstRollout says how the Platform fares that fares worst, whatever view is shown: a stage
// that waits for approval is no layer's fault.
func worstRollout(s *snapshot.Snapshot, wanted labels.Selector) verdict.State {
	worst := verdict.Well
	for _, platform := range shownPlatforms(s, wanted) {
		if fares := platforms.BriefOf(platform).Fares; verdict.Compare(fares, worst) < 0 {
			worst = fares
		}
	}
	return worst
}

// shownPlatforms returns the Platforms that are chosen, or of which a chosen layer is.
func shownPlatforms(s *snapshot.Snapshot, wanted labels.Selector) []*v1alpha1.Platform {
	if wanted == nil {
		return s.Platforms
	}
	of := map[string]bool{}
	for _, layer := range s.Layers {
		if wanted.Matches(labels.Set(layer.Labels)) {
			of[layer.Labels[v1alpha1.PlatformLabel]] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(s.Platforms), func(platform *v1alpha1.Platform) bool {
		return !of[platform.Name] && !wanted.Matches(labels.Set(platform.Labels))
	})
}

func addPlatform(all map[string]any, o Options, s *snapshot.Snapshot, q query) {
	at := slices.IndexFunc(s.Platforms, func(platform *v1alpha1.Platform) bool { return platform.Name == q.platform })
	if at < 0 {
		var names []string
		for _, platform := range s.Platforms {
			names = append(names, platform.Name)
		}
		all["rollout"] = platformView{Name: q.platform, Missing: true, Near: near.Near(q.platform, names)}
		return
	}
	platform := s.Platforms[at]
	observed, lacking := o.Cluster.Observe(s, platform, s.Now)
	all["rollout"] = platformOf(o, observed, lacking)
	all["platform/"+platform.Name] = platforms.BriefOf(platform)
	if q.plan != "" {
		all["rolloutplan"] = planOf(o, observed, lacking, q.plan)
	}
}

func platformOf(o Options, observed rules.Observation, lacking []string) platformView {
	name := observed.Platform.Name
	standing := platforms.Of(observed)
	view := platformView{Name: name, Standing: &standing, Lacking: clipped(lacking), States: []stateCount{}, Versions: versionsOf(observed)}
	slices.SortStableFunc(standing.Clusters, func(a, b platforms.Cluster) int { return verdict.Compare(a.Fares(), b.Fares()) })
	for _, cluster := range standing.Clusters {
		known := slices.IndexFunc(view.States, func(c stateCount) bool { return c.State == cluster.State })
		if known < 0 {
			known = len(view.States)
			view.States = append(view.States, stateCount{State: cluster.State, Fares: cluster.Fares()})
		}
		view.States[known].Count++
	}
	standing.Clusters, view.More = listedClusters(standing.Clusters)
	standing.Why = clip(standing.Why)
	// The page shows each cluster, and not its versions or the worst once more.
	standing.From, standing.Worst = []string{}, []v1alpha1.ClusterTrouble{}
	standing.Lock = picked(standing.Lock)
	settled(standing.Stages)
	subjects := events.SubjectsNamed(subjectsOf(v1alpha1.PlatformKind, "", name, observed.Layers)...)
	view.Happened = happenedTo(o, subjects, observed.Layers, observed.Platform.Status.Approvals, true)
	view.Approve = o.Actor != nil && o.Actor.May(acts.Approve, name)
	view.Commands = []string{
		printable.Command(o.Program, "platform", "get", name, "--clusters"), printable.Command(o.Program, "platform", "plan", name),
	}
	for _, stage := range standing.Stages {
		if stage.Approval != "" {
			view.Commands = append(view.Commands, printable.Command(o.Program, "platform", "approve", name, "--stage", stage.Name))
		}
	}
	return view
}

// subjectsOf returns an object of Strata and layers, whose events are shown together.
func subjectsOf(kind, namespace, name string, layers []*v1alpha1.AddonsLayer) []objects.ID {
	ids := []objects.ID{{Group: v1alpha1.GroupVersion.Group, Kind: kind, Namespace: namespace, Name: name}}
	for _, layer := range layers {
		ids = append(ids, objects.ID{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.AddonsLayerKind, Name: layer.Name})
	}
	return ids
}

// listedClusters returns as many clusters as are shown, and how many are left out.
func listedClusters(all []platforms.Cluster) ([]platforms.Cluster, int) {
	kept := slices.Clone(all[:min(len(all), mostClusters)])
	for i := range kept {
		kept[i].Why = clip(kept[i].Why)
	}
	return kept, len(all) - len(kept)
}

// picked returns as many picked applications as are shown.
func picked(lock []v1alpha1.LockedApplication) []v1alpha1.LockedApplication {
	kept := slices.Clone(lock[:min(len(lock), mostClusters)])
	for i := range kept {
		kept[i].Why = clip(kept[i].Why)
	}
	return append([]v1alpha1.LockedApplication{}, kept...)
}

// settled leaves out what changes with every look although nothing has.
func settled(stages []platforms.Stage) {
	for i := range stages {
		stages[i].SoakLeft = 0
		stages[i].Waits = clip(stages[i].Waits)
	}
}

// versionsOf returns the versions that the Platform's bundle has.
func versionsOf(o rules.Observation) []versionView {
	views := []versionView{}
	if o.Platform.Spec.Bundle == nil {
		return views
	}
	for _, release := range rules.Releases(o, o.Platform.Spec.Bundle.Family) {
		views = append(views, versionView{release.Version, noteOf(release)})
	}
	slices.SortFunc(views, func(a, b versionView) int { return fleet.Compare(b.Version, a.Version) })
	return views[:min(len(views), mostVersions)]
}

func noteOf(release rollout.Bundle) string {
	switch {
	case release.Withdrawn:
		return "withdrawn"
	case release.Uninstallable != "":
		return "cannot be installed"
	case release.Preview:
		return "preview"
	}
	return ""
}

// planOf returns what would be done for a Platform with a version, or as it is.
func planOf(o Options, observed rules.Observation, lacking []string, version string) rolloutPlan {
	words := []string{"platform", "plan", observed.Platform.Name}
	if version != planNow {
		words = append(words, "--version", version)
	}
	p := rolloutPlan{Of: version, Command: printable.Command(o.Program, words...)}
	if version != planNow {
		if observed.Platform.Spec.Bundle == nil {
			p.Error = fmt.Sprintf("platform %s has no bundle that could have a version", observed.Platform.Name)
			return p
		}
		observed.Platform = observed.Platform.DeepCopy()
		observed.Platform.Spec.Bundle.Version = version
	}
	p.Plan = platforms.PlanOf(observed, clipped(lacking))
	for _, layer := range p.Plan.Layers {
		if layer.Verb == "delete" {
			p.Deletes++
		} else {
			p.Writes++
		}
	}
	p.More = max(0, len(p.Plan.Layers)-mostClusters)
	p.Plan.Layers = p.Plan.Layers[:len(p.Plan.Layers)-p.More]
	slices.SortStableFunc(p.Plan.Clusters, func(a, b platforms.Cluster) int {
		return cmp.Or(worseFirst(a.State != "Begins", b.State != "Begins"), verdict.Compare(a.Fares(), b.Fares()))
	})
	p.Plan.Clusters, _ = listedClusters(p.Plan.Clusters)
	p.Plan.Why = clip(p.Plan.Why)
	p.Plan.Lock = picked(p.Plan.Lock)
	// When it was made says nothing: it is made anew with each change.
	p.Plan.At = metav1.Time{}
	settled(p.Plan.Stages)
	return p
}

// clipped cuts texts that somebody made very long.
func clipped(texts []string) []string {
	short := make([]string, len(texts))
	for i, text := range texts {
		short[i] = clip(text)
	}
	return short
}
