// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"cmp"
	"slices"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/rollout"
)

// standpoint is what the choice of a version goes by: all clusters of the same make the
// same one.
type standpoint struct {
	// sent is the version that a cluster was sent to, and kubernetes its own.
	sent, kubernetes string
}

// way is where the clusters of a standpoint go.
type way struct {
	rollout.Choice
	// unfit says why they cannot run the target, by their version of Kubernetes.
	unfit string
}

// choose finds the version that the platform is to be at, and the next step to it of
// every cluster.
//
// One platform has one version. It is the newest of those that the clusters choose
// for themselves, each by the version that it was sent to and by its Kubernetes; a cluster
// that has none yet, because it is new, gets what the others have and moves nobody. A
// cluster that would choose another, because a roll-out was broken off, goes to that too
// unless it is at a newer one: nothing is taken back that nobody names. One that cannot
// run it keeps what it has chosen for itself.
func (d *decider) choose(want v1alpha1.PlatformBundle) {
	wish := rollout.Wish{
		Now: d.Now, Requested: want.Version,
		Mode: rollout.Mode(d.Platform.Spec.Upgrade.Mode), Bound: rollout.Bound(d.Platform.Spec.Upgrade.MaxStep),
		Force: d.Platform.Spec.Upgrade.ForceAfterEndOfLife,
	}
	choices := map[standpoint]rollout.Choice{}
	on := map[string][]rollout.Bundle{}
	for _, m := range d.members {
		m.at = standpoint{m.sent, factsOf(d.Observation, m.target).Version}
		if _, done := on[m.at.kubernetes]; !done {
			on[m.at.kubernetes] = d.family.on(d.Observation, m.at.kubernetes)
		}
		d.takeBackUnfit(m)
		if _, done := choices[m.at]; !done {
			wish.Current, wish.Bundles = m.at.sent, on[m.at.kubernetes]
			choices[m.at] = rollout.Choose(wish)
			d.until(choices[m.at].Until)
		}
	}
	d.target = targetOf(choices)
	ways := map[standpoint]way{}
	for at, choice := range choices {
		one := way{Choice: choice}
		if at.sent != d.target { // what runs stays
			one.unfit = d.family.unfit(d.Observation, d.target, at.kubernetes)
		}
		if one.unfit == "" && choice.Problem == "" && choice.Target != d.target && d.target != "" && (at.sent == "" || newer(d.target, at.sent)) {
			wish.Current, wish.Requested, wish.Bundles = at.sent, d.target, on[at.kubernetes]
			one.Choice = rollout.Choose(wish)
		}
		ways[at] = one
	}
	d.complain(ways)
	for _, m := range d.members {
		d.step(m, ways[m.at])
	}
	d.available(wish, on)
}

// takeBackUnfit forgets that a cluster was sent to a version that it cannot run, where it
// has come to no part of it: its layers wait there for another Kubernetes.
func (d *decider) takeBackUnfit(m *member) {
	if m.moving == "" || !m.touchable() || m.at.kubernetes == "" || d.family.unfit(d.Observation, m.sent, m.at.kubernetes) == "" ||
		slices.ContainsFunc(m.layers, func(layer *v1alpha1.AddonsLayer) bool { return layer.Status.Version == m.sent }) {
		return
	}
	m.at.sent = m.current
	m.moving, m.forward = "", true
}

// targetOf returns the newest version that is chosen; of clusters that have one, if
// there are any. Where what is asked for cannot be had it is the newest that is there.
func targetOf(choices map[standpoint]rollout.Choice) string {
	best := ""
	for _, counts := range []func(string, rollout.Choice) bool{
		func(sent string, c rollout.Choice) bool { return sent != "" && c.Problem == "" },
		func(sent string, c rollout.Choice) bool { return sent == "" && c.Problem == "" },
		func(sent string, _ rollout.Choice) bool { return sent != "" },
	} {
		for at, choice := range choices {
			if counts(at.sent, choice) && choice.Target != "" && (best == "" || newer(choice.Target, best)) {
				best = choice.Target
			}
		}
		if best != "" {
			return best
		}
	}
	return best
}

// complain stalls where no cluster can have what is asked for. Where some can, the
// others are named among the worst. What only another Kubernetes mends is waited for.
func (d *decider) complain(ways map[standpoint]way) {
	first, kubernetes := "", true
	for _, m := range d.members {
		choice := ways[m.at]
		if choice.Problem == "" {
			if m.sent == d.target && len(choice.Notices) > 0 {
				d.notice = choice.Notices[0]
			}
			return
		}
		first = cmp.Or(first, choice.Problem)
		kubernetes = kubernetes && choice.Unfit
	}
	switch {
	case first == "":
		return
	case kubernetes:
		d.waits = append(d.waits, complaint{v1alpha1.ReasonK8sVersion, "spec.bundle.version: " + first})
		return
	}
	for _, release := range d.family.releases {
		if release.Uninstallable != "" {
			first += "; " + release.Version + ": " + release.Uninstallable
			break
		}
	}
	d.stall(v1alpha1.ReasonBundleNotFound, "spec.bundle.version: "+first)
}

// step says where a cluster goes next.
func (d *decider) step(m *member, choice way) {
	m.next, m.stuck, m.path, m.unfit = choice.Next(), choice.Problem, choice.Path, choice.unfit
	if choice.Unfit {
		m.unfit = choice.Problem
	}
	switch {
	case m.moving != "" && (m.Condition != rollout.Failed || m.record.target == d.goal() || m.next == ""):
		// On its way, or failed there: that is its next step where it leads on.
		if m.next != "" || m.sent == d.target {
			m.next = m.moving
		}
	case m.moving != "":
		// What has failed under an earlier target goes on to this one: most often it
		// is what mends it.
		m.current, m.moving, m.forward = m.sent, "", true
	case m.sent == "" && m.next != "" && m.emptied(d.family.name):
		// What it had is being removed, most often because the version that it was
		// sent to has no layers there: it takes its place among those that may be
		// unavailable until that is done.
		m.moving = m.next
	case m.sent == "" && m.next != "":
		d.nothingToDo(m)
	}
}

// emptied tells whether layers of a family are being deleted. All of them are where
// the cluster was sent to no version.
func (m *member) emptied(family string) bool {
	return slices.ContainsFunc(m.layers, func(layer *v1alpha1.AddonsLayer) bool {
		return layer.DeletionTimestamp != nil && layer.Labels[v1alpha1.PlatformFamilyLabel] == family
	})
}

// nothingToDo takes a cluster for updated on which the version has no layers, and for
// being moved where it is not known whether it has.
func (d *decider) nothingToDo(m *member) {
	bundle := d.family.find(m.next)
	if bundle == nil {
		return
	}
	plan, problem := d.lay(bundle, m)
	if problem != "" || slices.ContainsFunc(plan, func(one *laid) bool { return one.presence == present }) {
		return
	}
	if waiting := slices.IndexFunc(plan, func(one *laid) bool { return one.presence == unknown }); waiting >= 0 {
		m.moving = m.next
		m.note(rollout.Progressing, "%s", plan[waiting].why)
		return
	}
	m.plan, m.current, m.next = plan, d.target, ""
}

// available finds the newest version that could be gone to, were it asked for: that at least one
// of the clusters can run, which have these versions by their Kubernetes.
func (d *decider) available(wish rollout.Wish, on map[string][]rollout.Bundle) {
	wish.Current, wish.Requested, wish.Mode, wish.Bound = d.target, "", rollout.ModeAuto, rollout.BoundMajor
	if d.target == "" {
		return
	}
	if len(on) == 0 {
		on = map[string][]rollout.Bundle{"": d.family.releases}
	}
	for _, wish.Bundles = range on {
		newest := rollout.Choose(wish).Target
		if newest != d.target && (d.decision.Status.Available == "" || newer(newest, d.decision.Status.Available)) {
			d.decision.Status.Available = newest
		}
	}
}
