// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/moments"
	"github.com/strata-project/strata/internal/oldwords"
	"github.com/strata-project/strata/internal/rollout"
)

// Decide says what a Platform needs. It is deterministic.
//
// A change of inputs, and whatever else changes at one version, is written to all
// clusters at once, those that do not answer among them: their layers are here, and
// are looked after when they are back. Stages and windows are for versions.
func Decide(o Observation) Decision { return decided(o).decision }

// decided makes the decision, and returns it with what it was made from.
func decided(o Observation) *decider {
	d := newDecider(o)
	if o.Platform.DeletionTimestamp != nil {
		d.deletion()
		return d
	}
	if d.circle = circleOf(o); d.circle != "" {
		d.stall(v1alpha1.ReasonInvalidSpec, d.circle)
	}
	if d.frozen = d.isOutdated() || !d.gather(); !d.frozen {
		d.install()
	}
	d.finish()
	return d
}

// decider is a decision in the making.
type decider struct {
	Observation
	decision Decision
	// own holds the layers of the platform by name.
	own map[string]*v1alpha1.AddonsLayer
	// names gives the layers their names.
	names *namer
	// others are the layers that are not the platform's, and circle says that it comes
	// after itself; empty where it does not.
	others others
	circle string
	family family
	given  given
	// known keeps what inputsOf has found, by the bundle's name and the overrides.
	known map[string]resolved
	// frozen is true where it is not known which clusters are meant.
	frozen bool
	// members are the clusters, sorted.
	members []*member
	// brought are the applications that are there besides what is picked.
	brought brought
	// variants are the bundles of picked applications without some of them, by the names of
	// those.
	variants map[string]*v1alpha1.ApplicationBundle
	// keep holds the layers that are not deleted.
	keep map[string]bool
	// along are layers that go with their cluster, with what that says becomes of them.
	along map[string]v1alpha1.DeletionPolicy
	// target is the version to be at in the end.
	target string
	// plan is what the roll-out does.
	plan rollout.Decision
	// stalled is what only the author can mend, and waits what is missing; reason is
	// that of the first of either.
	stalled, waits []complaint
	// notice is what somebody should know although nothing fails.
	notice string
}

type complaint struct{ reason, message string }

type resolved struct {
	inputs  map[string]any
	problem string
	// digest names the inputs where they go in stages; empty where they are not to be had.
	digest string
}

func newDecider(o Observation) *decider {
	d := &decider{
		Observation: o,
		own:         map[string]*v1alpha1.AddonsLayer{},
		names:       newNamer(o),
		known:       map[string]resolved{},
		variants:    map[string]*v1alpha1.ApplicationBundle{},
		keep:        map[string]bool{},
		along:       map[string]v1alpha1.DeletionPolicy{},
		others:      othersOf(o),
	}
	d.Layers = slices.Clone(o.Layers)
	slices.SortFunc(d.Layers, func(a, b *v1alpha1.AddonsLayer) int { return cmp.Compare(a.Name, b.Name) })
	for _, layer := range d.Layers {
		d.own[layer.Name] = layer
	}
	return d
}

// isOutdated tells whether the specification has a word that means nothing any more. What
// was meant is not guessed: nothing is written, moved or deleted until it is mended.
func (d *decider) isOutdated() bool {
	old := oldwords.InPlatform(d.Platform)
	if old != "" {
		d.stall(v1alpha1.ReasonInvalidSpec, old)
	}
	return old != ""
}

// stall notes what only the author can mend, each once.
func (d *decider) stall(reason, message string) {
	if one := (complaint{reason, message}); !slices.Contains(d.stalled, one) {
		d.stalled = append(d.stalled, one)
	}
}

// until notes a moment at which the decision may differ.
func (d *decider) until(moment time.Time) {
	d.decision.Until = moments.Earlier(d.decision.Until, moment)
}

// gather finds the clusters and what is on each. It tells whether that is possible:
// where it is not known which clusters are meant, nothing is done to any.
func (d *decider) gather() bool {
	targets, problem := targetsOf(d.Observation)
	if problem != "" {
		d.stall(v1alpha1.ReasonInvalidSpec, problem)
		return false
	}
	bundled, picked := map[string][]*v1alpha1.AddonsLayer{}, map[string][]*v1alpha1.AddonsLayer{}
	for _, layer := range d.Layers {
		if !IsMade(layer) {
			continue
		}
		byCluster := bundled
		if strings.HasPrefix(layer.Labels[v1alpha1.PlatformLayerLabel], v1alpha1.PickedLayerPrefix) {
			byCluster = picked
		}
		cluster := layer.Labels[v1alpha1.PlatformClusterLabel]
		byCluster[cluster] = append(byCluster[cluster], layer)
	}
	for _, target := range targets {
		cluster := clusterValue(target)
		m := &member{target: target, stage: -1, layers: bundled[cluster], picked: picked[cluster], health: well()}
		m.upstream = d.comesBefore(target)
		d.absence(m)
		d.members = append(d.members, m)
	}
	return true
}

// IsMade tells whether a layer has all labels of those that platforms make. A layer
// with only some of them was labelled by hand: it is never deleted, and no platform
// waits for its end.
func IsMade(layer *v1alpha1.AddonsLayer) bool {
	_, isOnCluster := layer.Labels[v1alpha1.PlatformClusterLabel]
	return isOnCluster && layer.Labels[v1alpha1.PlatformLabel] != "" && layer.Labels[v1alpha1.PlatformLayerLabel] != ""
}

// absence notes that a cluster does not exist, or does not answer. One that is being
// deleted counts as gone: it takes along what is there, or waits for somebody to take it
// off the platform.
func (d *decider) absence(m *member) {
	if m.target.Name == "" {
		return
	}
	remote := d.Clusters[m.target]
	if remote == nil {
		m.gone = fmt.Sprintf("RemoteCluster %s does not exist", m.target)
		return
	}
	if goes := d.goes(remote); goes != "" {
		if m.along = alongWith(remote); m.along != "" {
			m.gone = goes + ", and what is there goes with it"
		} else {
			m.gone = goes + ": take it off the platform, which removes its layers"
		}
		return
	}
	m.away = awayMessage(remote)
}

// install decides about the layers of all clusters.
func (d *decider) install() {
	d.nameInstances()
	switch {
	case d.Platform.Spec.Bundle != nil:
		d.bundle(*d.Platform.Spec.Bundle)
	case len(d.Platform.Spec.Layers) > 0:
		d.inline()
	default:
		for _, m := range d.members {
			m.standAlone()
		}
	}
	picks := d.picks()
	for _, m := range d.members {
		d.write(m)
		d.writePicked(m, d.variant(m, picks))
	}
	d.leave()
	d.deleteBundles(picks)
}

// bundle decides which version of the bundle each cluster has.
func (d *decider) bundle(want v1alpha1.PlatformBundle) {
	d.family = familyOf(d.Observation, want.Family)
	d.give()
	for _, m := range d.members {
		d.settle(m)
	}
	if len(d.family.releases) == 0 {
		d.target = d.Platform.Status.Version // which the clusters still have
		d.stall(v1alpha1.ReasonBundleNotFound, fmt.Sprintf("spec.bundle.family: there is no ApplicationBundle of family %s", want.Family))
		return
	}
	d.choose(want)
	d.rollOut()
	d.strayInputs()
}

// give gathers the inputs, and says what is wrong with them.
func (d *decider) give() {
	d.given = givenOf(d.Observation)
	if d.given.problem != "" {
		d.stall(v1alpha1.ReasonInvalidSpec, d.given.problem)
	}
	if d.given.waits != "" {
		d.waits = append(d.waits, complaint{v1alpha1.ReasonInputsNotFound, d.given.waits})
	}
}

// hasBundle tells whether the platform has a bundle, be it published or its own.
func (d *decider) hasBundle() bool {
	return d.Platform.Spec.Bundle != nil || len(d.Platform.Spec.Layers) > 0
}

// inputsOf returns the inputs of a bundle on a cluster, and why they are not to be had.
func (d *decider) inputsOf(bundle *v1alpha1.ApplicationBundle, cluster types.NamespacedName) (map[string]any, string) {
	found := d.resolve(bundle, cluster)
	return found.inputs, found.problem
}

// resolve is inputsOf with the digest of the inputs.
func (d *decider) resolve(bundle *v1alpha1.ApplicationBundle, cluster types.NamespacedName) resolved {
	if why := cmp.Or(d.given.problem, d.given.waits); why != "" {
		return resolved{problem: why}
	}
	given, overrides := d.given.on(labelsOn(d.Observation, cluster))
	found, done := d.known[bundle.Name+overrides]
	if !done {
		if found.inputs, found.problem = given.resolve(bundle); found.problem == "" && d.stagesInputs() {
			if text, problem := written(found.inputs); problem == "" {
				found.digest = digestOf(text, inputsDigits)
			}
		}
		d.known[bundle.Name+overrides] = found
	}
	return found
}

// strayInputs complains of inputs that no version has that is in play, and of those
// that the target cannot do with.
func (d *decider) strayInputs() {
	var inPlay []*v1alpha1.ApplicationBundle
	for _, release := range d.family.releases {
		bundle := d.family.find(release.Version)
		if bundle == nil {
			continue
		}
		if release.Version == d.target || slices.ContainsFunc(d.members, func(m *member) bool { return m.sent == release.Version || m.next == release.Version }) {
			inPlay = append(inPlay, bundle)
		}
	}
	if d.given.problem != "" {
		d.refuse()
	}
	if len(d.members) == 0 {
		d.strayWithoutClusters()
	}
	if len(inPlay) == 0 || d.given.problem != "" {
		return
	}
	if stray := d.given.stray(inPlay); stray != "" {
		d.stall(v1alpha1.ReasonInvalidSpec, stray)
		d.refuse()
	}
	for _, bundle := range inPlay {
		// One that is only left behind is of no more concern.
		version := bundle.Spec.Version
		if version != d.target && !slices.ContainsFunc(d.members, func(m *member) bool { return m.next == version }) {
			continue
		}
		for _, m := range d.members {
			if version != d.target && m.next != version {
				continue
			}
			if _, problem := d.inputsOf(bundle, m.target); problem != "" && d.given.waits == "" {
				m.refused = true
				d.stall(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("%s (bundle %s)", problem, bundle.Name))
			}
		}
	}
}

// strayWithoutClusters complains of inputs while no cluster is selected, on which they would be
// judged: nobody who has written them waits for one. Where there are overrides, an input that is
// missing may come from these.
func (d *decider) strayWithoutClusters() {
	bundle := d.wouldBe()
	if bundle == nil || d.given.problem != "" || d.given.waits != "" {
		return
	}
	if stray := d.given.stray([]*v1alpha1.ApplicationBundle{bundle}); stray != "" {
		d.stall(v1alpha1.ReasonInvalidSpec, stray)
	}
	for _, problem := range mistakes(d.given, d.Platform, bundle, len(d.Platform.Spec.Overrides) > 0) {
		d.stall(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("%s (bundle %s)", problem, bundle.Name))
	}
}

// refuse notes that what the specification says of inputs counts on no cluster.
func (d *decider) refuse() {
	for _, m := range d.members {
		m.refused = true
	}
}
