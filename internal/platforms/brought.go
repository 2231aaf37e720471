// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/solver"
	"github.com/strata-project/strata/internal/sources"
)

// brought are the applications that clusters have besides what is picked, by the platform's
// own bundle and by layers of others: what is there counts as chosen.
type brought struct {
	// versions of each application, the newest first.
	versions map[string][]string
	// by says what brings an application at a version.
	by map[string]string
	// everywhere tells of an application whether all clusters have it.
	everywhere map[string]bool
}

// whatIsThere finds what each cluster has, and notes it there.
func (d *decider) whatIsThere() brought {
	b := brought{versions: map[string][]string{}, by: map[string]string{}, everywhere: map[string]bool{}}
	named := map[string]*v1alpha1.ApplicationBundle{}
	for _, bundle := range d.Bundles {
		named[bundle.Name] = bundle
	}
	on := map[string]int{}
	for _, m := range d.members {
		m.there = there{brought: map[string]bool{}, underneath: map[string][]string{}}
		d.byOwnBundle(m, b)
		d.byOthers(m, b, named, d.others.on[m.target])
		for name := range m.brought {
			on[name]++
		}
	}
	for name, versions := range b.versions {
		slices.SortFunc(versions, func(x, y string) int {
			switch {
			case newer(x, y):
				return -1
			case newer(y, x):
				return 1
			}
			return cmp.Compare(x, y)
		})
		b.everywhere[name] = on[name] == len(d.members)
	}
	return b
}

// add notes that a cluster has an application, unless one is picked for another namespace.
func (d *decider) add(m *member, b brought, application v1alpha1.BundleApplication, by string) (added bool) {
	if application.Chart != nil || d.isApart(application) {
		return false
	}
	name := bundles.ApplicationName(application)
	m.brought[name] = true
	if !slices.Contains(b.versions[name], application.Version) {
		b.versions[name] = append(b.versions[name], application.Version)
		b.by[name+" "+application.Version] = by
	}
	return true
}

// isApart tells whether an application of somebody's bundle is picked for a namespace that
// it is not in there: the two are beside each other.
func (d *decider) isApart(application v1alpha1.BundleApplication) bool {
	name := bundles.ApplicationName(application)
	at := slices.IndexFunc(d.Platform.Spec.Applications, func(pick v1alpha1.PlatformApplication) bool { return pick.Name == name })
	if at < 0 || d.Platform.Spec.Applications[at].Namespace == "" {
		return false
	}
	namespace := application.Namespace
	if app := d.Catalogue[name]; app != nil && namespace == "" {
		if version := catalogue.VersionOf(app, application.Version); version != nil && version.Namespace != nil {
			namespace = version.Namespace.Name
		}
	}
	return d.Platform.Spec.Applications[at].Namespace != cmp.Or(namespace, application.Name)
}

// byOwnBundle adds what the platform's bundle brings to a cluster at the version that this
// was sent to.
func (d *decider) byOwnBundle(m *member, b brought) {
	bundle := d.family.find(m.sent)
	if bundle == nil {
		return
	}
	for _, one := range m.plan {
		if one.presence == absent || one.place != m.target {
			continue
		}
		inputs, staged := m.given()
		if !staged {
			inputs, _ = d.inputsOf(bundle, m.target)
		}
		instance, _ := d.names.instance(m.target) // without one there is no plan
		present, err := bundles.Present(one.BundleLayer, instance, inputs, factsOf(d.Observation, m.target))
		if err != nil {
			present = one.Applications // What may be there counts as that.
		}
		for _, application := range present {
			d.add(m, b, application, "bundle "+bundle.Name)
		}
	}
}

// byOthers adds what layers that are not the platform's bring to a cluster. One that is being
// deleted brings nothing new; where what is picked runs on it already it counts, and stays
// until that is gone. Where another Platform has picked the same application, the older layer
// keeps it.
func (d *decider) byOthers(m *member, b brought, named map[string]*v1alpha1.ApplicationBundle, others []*v1alpha1.AddonsLayer) {
	own, since := d.alreadyPicked(m, named)
	for _, other := range others {
		if other.DeletionTimestamp != nil && !m.runsOn(other) {
			continue
		}
		by := "AddonsLayer " + other.Name
		if !strings.HasPrefix(other.Labels[v1alpha1.PlatformLayerLabel], v1alpha1.PickedLayerPrefix) {
			for _, application := range d.applicationsOf(named, other) {
				if name := bundles.ApplicationName(application); d.add(m, b, application, by) {
					m.underneath[name] = append(m.underneath[name], other.Name)
				}
			}
			continue
		}
		older := since != nil && cmp.Or(since.CreationTimestamp.Compare(other.CreationTimestamp.Time), cmp.Compare(since.Name, other.Name)) < 0
		for _, application := range d.applicationsOf(named, other) {
			if !older || !own[bundles.ApplicationName(application)] {
				d.add(m, b, application, by)
			}
		}
	}
}

// runsOn tells whether a layer of picked applications depends on another layer.
func (m *member) runsOn(other *v1alpha1.AddonsLayer) bool {
	return slices.ContainsFunc(m.picked, func(layer *v1alpha1.AddonsLayer) bool {
		return slices.Contains(dependencies.Names(layer.Spec.Prereqs.DependsOn), other.Name)
	})
}

// alreadyPicked returns the names of the applications that the layers of picked applications
// on a cluster have, and the oldest of those layers; nil for none.
func (d *decider) alreadyPicked(m *member, named map[string]*v1alpha1.ApplicationBundle) (names map[string]bool, since *v1alpha1.AddonsLayer) {
	names = map[string]bool{}
	for _, layer := range m.picked {
		for _, application := range d.applicationsOf(named, layer) {
			names[bundles.ApplicationName(application)] = true
		}
		if since == nil || layer.CreationTimestamp.Before(&since.CreationTimestamp) {
			since = layer
		}
	}
	return names, since
}

// applicationsOf returns the applications that a layer of a bundle has; bundles are by their
// names.
func (d *decider) applicationsOf(named map[string]*v1alpha1.ApplicationBundle, layer *v1alpha1.AddonsLayer) []v1alpha1.BundleApplication {
	if !sources.IsOfBundle(layer) {
		return nil
	}
	bundle := named[layer.Spec.Source.Name]
	of := bundles.LayerAt(bundle, layer.Spec.Source.Path)
	if of == nil {
		return nil
	}
	request := bundles.RequestOf(layer, bundle)
	request.Cluster = factsOf(d.Observation, placement.Of(layer, d.Namespace))
	if present, err := request.Present(); err == nil {
		return present
	}
	return of.Applications // What may be there counts as that.
}

// unusedValues complains of picks with values that are there already: those have no effect.
func (d *decider) unusedValues() {
	for _, pick := range d.Platform.Spec.Applications {
		if len(d.brought.versions[pick.Name]) > 0 && (pick.Values != nil || len(pick.ValuesFrom) > 0) {
			d.stall(v1alpha1.ReasonInvalidSpec, fmt.Sprintf(
				"spec.applications: the values of %s have no effect%s: give them there, or pick it for a namespace of its own", pick.Name, d.brought.explain(pick.Name)))
		}
	}
}

// lines says what is brought, and whether to all clusters, sorted.
func (b brought) lines() []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(b.versions)) {
		lines = append(lines, fmt.Sprintf("= %s %s %t", name, strings.Join(b.versions[name], " "), b.everywhere[name]))
	}
	return lines
}

// fix takes away from an application all versions but the one that is brought, which needs
// nothing more.
func (b brought) fix(app *solver.Application) {
	if versions := b.versions[app.Name]; len(versions) > 0 {
		app.Versions = []solver.Version{{Version: versions[0]}}
	}
}

// allows tells whether a version of an application can be beside what is brought, where
// clusters have several versions of that. Of one alone the solver tells.
func (b brought) allows(version solver.Version) bool {
	for _, requirement := range version.Dependencies {
		if b.unmet(requirement.Name, requirement.Range) != "" {
			return false
		}
	}
	return true
}

// unmet returns a version that is brought beside the newest, and that is not within a
// range; empty for none.
func (b brought) unmet(name, within string) string {
	versions := b.versions[name]
	for _, have := range versions[min(1, len(versions)):] {
		if meets, err := catalogue.Meets(v1alpha1.ApplicationRequirement{Name: name, Range: within}, have); err != nil || !meets {
			return have
		}
	}
	return ""
}

// explain says which of the applications that a message names are brought, and by what.
func (b brought) explain(message string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(b.versions)) {
		if !strings.Contains(message, name) {
			continue
		}
		for _, version := range b.versions[name] {
			all = append(all, fmt.Sprintf("; %s brings %s %s", b.by[name+" "+version], name, version))
		}
	}
	return strings.Join(all, "")
}
