// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/rollout"
)

// mostInLayer is how many applications a layer of a bundle may have.
const mostInLayer = 50

// appsLayer is the name of the layer of the bundle that is made of picked
// applications; where one cannot hold them all a number is behind it.
const appsLayer = "applications"

// picks returns the bundle that is made of the picked applications; nil for none. It
// adds it to the decision where it does not exist.
func (d *decider) picks() *v1alpha1.ApplicationBundle {
	status, last := &d.decision.Status, d.Platform.Status.Lock
	var bundle *v1alpha1.ApplicationBundle
	if len(d.Platform.Spec.Applications) > 0 {
		d.brought = d.whatIsThere()
		d.unusedValues()
		if status.Lock = d.lock().DeepCopy(); status.Lock != nil {
			bundle = d.pickedBundle(status.Lock, nil)
		}
	}
	if bundle != nil && len(bundle.Spec.Layers) > 0 {
		status.Lock.Bundle = bundle.Name
		d.makeBundle(bundle)
	}
	if !equality.Semantic.DeepEqual(last, status.Lock) {
		d.decision.StatusFirst = true
	}
	return bundle
}

// makeBundle adds a bundle to the decision where it does not exist.
func (d *decider) makeBundle(bundle *v1alpha1.ApplicationBundle) {
	for _, known := range [][]*v1alpha1.ApplicationBundle{d.Bundles, d.decision.Bundles} {
		if slices.ContainsFunc(known, func(b *v1alpha1.ApplicationBundle) bool { return b.Name == bundle.Name }) {
			return
		}
	}
	d.decision.Bundles = append(d.decision.Bundles, bundle)
}

// variant returns the bundle of the picked applications for a cluster: without those that
// are there already. Clusters that have the same of them have the same bundle.
func (d *decider) variant(m *member, all *v1alpha1.ApplicationBundle) *v1alpha1.ApplicationBundle {
	lock := d.decision.Status.Lock
	if all == nil || lock == nil {
		return all
	}
	var without []string
	for _, locked := range lock.Applications {
		if m.brought[locked.Name] {
			without = append(without, locked.Name)
		}
	}
	if len(without) == 0 {
		return all
	}
	key := strings.Join(without, " ")
	bundle, made := d.variants[key]
	if !made {
		bundle = d.pickedBundle(lock, m.brought)
		d.variants[key] = bundle
		if bundle != nil && len(bundle.Spec.Layers) > 0 {
			d.makeBundle(bundle)
		}
	}
	return bundle
}

// pickedBundle makes a bundle of a lock, without some of its applications; it has no
// layers where none is left. Its name and its version follow from its
// content, as a bundle must not change: the version is 1.0.0-h and a digest, which is
// a semantic version however the digest begins, and is compared with none.
func (d *decider) pickedBundle(lock *v1alpha1.PlatformLock, without map[string]bool) *v1alpha1.ApplicationBundle {
	platform := d.Platform
	spec := v1alpha1.ApplicationBundleSpec{
		Description:  "The applications that Platform " + platform.Name + " picks, and what they depend on.",
		Family:       bundles.Name("apps", strings.ReplaceAll(platform.Name, ".", "-")),
		Capabilities: platform.Spec.Capabilities,
	}
	depend := d.dependenciesOf(lock)
	applications := slices.DeleteFunc(slices.Clone(lock.Applications), func(l v1alpha1.LockedApplication) bool { return without[l.Name] })
	for i, chunk := range chunksOf(applications) {
		layer := v1alpha1.BundleLayer{Name: appsLayer}
		if i > 0 {
			layer.DependsOn = []string{spec.Layers[i-1].Name}
			layer.Name = fmt.Sprintf("%s-%d", appsLayer, i+1)
		}
		for _, locked := range chunk {
			layer.Applications = append(layer.Applications, d.application(locked, chunk, depend[locked.Name]))
		}
		spec.Layers = append(spec.Layers, layer)
	}
	content, err := json.Marshal(spec)
	if err != nil {
		// Values that are no JSON do not come from an API server.
		d.stall(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("spec.applications: %v", err))
		return nil
	}
	digest := digestOf(string(content), 10)
	spec.Version = "1.0.0-h" + digest
	return madeBundle(platform, bundles.Name(platform.Name, "apps", digest), spec)
}

// chunksOf splits applications, which are behind what they depend on, so that a layer
// can hold each part.
func chunksOf(all []v1alpha1.LockedApplication) [][]v1alpha1.LockedApplication {
	return slices.Collect(slices.Chunk(all, mostInLayer))
}

// application returns one application of the bundle. What it depends on in an earlier
// layer is there before.
func (d *decider) application(locked v1alpha1.LockedApplication, chunk []v1alpha1.LockedApplication, depend []string) v1alpha1.BundleApplication {
	app := v1alpha1.BundleApplication{Name: locked.Name, Version: locked.Version}
	for _, name := range depend {
		if slices.ContainsFunc(chunk, func(l v1alpha1.LockedApplication) bool { return l.Name == name }) {
			app.DependsOn = append(app.DependsOn, name)
		}
	}
	for _, pick := range d.Platform.Spec.Applications {
		if pick.Name == locked.Name {
			app.Namespace, app.Values, app.ValuesFrom = pick.Namespace, pick.Values, pick.ValuesFrom
		}
	}
	return app
}

// edgesOf returns what each application of a bundle depends on.
func edgesOf(bundle *v1alpha1.ApplicationBundle) map[string][]string {
	edges := map[string][]string{}
	for _, layer := range bundle.Spec.Layers {
		for _, app := range layer.Applications {
			edges[app.Name] = app.DependsOn
		}
	}
	return edges
}

// writePicked adds the layers of picked applications of a cluster to the decision.
// They come after all layers of the bundle on the same cluster, at whatever version:
// what is picked beside a bundle may need it. All clusters have the same versions of
// them, at once: they are no part of a roll-out.
func (d *decider) writePicked(m *member, picks *v1alpha1.ApplicationBundle) {
	if m.along != "" {
		return // They go with the cluster.
	}
	waitsForBundle := d.hasBundle() && m.plan == nil
	if !m.touchable() || len(d.Platform.Spec.Applications) > 0 && (picks == nil || waitsForBundle) {
		for _, layer := range m.picked {
			d.keep[layer.Name] = true
			m.wants(layer.Name, layer, false)
		}
		m.health = m.unseen(m.health)
		return
	}
	wanted := map[string]bool{}
	if picks != nil {
		for _, one := range d.pickedLayers(m, picks) {
			labels := labelled(d.Platform, m.target, picks.Spec.Family, one.label)
			layer, changed := draft(d.own[one.name], one.name, labels, nil, one.spec)
			d.keep[one.name], wanted[one.name] = true, true
			m.wants(one.name, d.own[one.name], changed)
			d.put(layer, changed)
		}
	}
	for _, layer := range m.picked {
		if !wanted[layer.Name] {
			m.leaves(layer)
		}
	}
	m.health = m.unseen(m.health)
}

// needed returns the names of the applications that those of the lock depend on.
func (d *decider) needed() []string {
	var names []string
	if lock := d.decision.Status.Lock; lock != nil {
		for _, locked := range lock.Applications {
			app := d.Catalogue[locked.Name]
			if app == nil {
				continue
			}
			if version := catalogue.VersionOf(app, locked.Version); version != nil {
				for _, requirement := range version.DependsOn {
					names = append(names, requirement.Name)
				}
			}
		}
	}
	return sorted(names)
}

// pickedLayers lays out picked applications on a cluster.
func (d *decider) pickedLayers(m *member, picks *v1alpha1.ApplicationBundle) []*laid {
	plan, err := lay(d.Observation, d.names, picks, v1alpha1.PickedLayerPrefix, nil, m.target)
	if err != nil {
		m.note(rollout.Failed, "%v", err)
		return nil
	}
	needed := d.needed()
	for _, one := range plan {
		for _, before := range m.plan {
			if before.presence != absent && before.place == m.target {
				one.spec.Prereqs.DependsOn = append(one.spec.Prereqs.DependsOn, before.name)
			}
		}
		// What others bring and is needed here comes before. What another Platform has
		// picked does not: that may wait for these.
		for _, name := range needed {
			one.spec.Prereqs.DependsOn = append(one.spec.Prereqs.DependsOn, m.underneath[name]...)
		}
		one.spec.Prereqs.DependsOn = sorted(one.spec.Prereqs.DependsOn)
	}
	m.connect(plan)
	return plan
}

// deleteBundles removes the bundles that were made for the platform and that neither
// it nor a layer uses any more.
func (d *decider) deleteBundles(picks *v1alpha1.ApplicationBundle) {
	used := map[string]bool{}
	for _, layer := range slices.Concat(d.Layers, d.decision.Write) {
		used[layer.Spec.Source.Name] = true
	}
	if lock := d.decision.Status.Lock; lock != nil {
		used[lock.Bundle] = true
	}
	if picks != nil {
		used[picks.Name] = true
	}
	d.keepInline(used)
	for _, bundle := range d.Bundles {
		if bundle.Labels[v1alpha1.PlatformLabel] == d.Platform.Name && bundle.DeletionTimestamp == nil && !used[bundle.Name] &&
			metav1.IsControlledBy(bundle, d.Platform) {
			d.decision.DeleteBundles = append(d.decision.DeleteBundles, bundle.Name)
		}
	}
	d.decision.DeleteBundles = sorted(d.decision.DeleteBundles)
}
