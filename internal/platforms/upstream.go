// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/placement"
)

// mostEdges is how many layers of another Platform a layer depends on at most: of more
// it depends on those that come last there.
const mostEdges = 30

// unsureRetry is how soon it is seen whether a layer has made a cluster that says so.
const unsureRetry = 5 * time.Second

// upstream is what must be there before anything of the platform is on a cluster.
type upstream struct {
	// edges are the layers of other Platforms that those of the platform depend on
	// which depend on none of its own.
	edges []string
	// early says why nothing is installed for the first time; empty where it may be.
	early string
}

// Upstream returns the names of the Platforms that come before one: those that it
// depends on, and those whose layers have made its clusters. find returns the layer of a
// name, or nil.
func Upstream(o Observation, find func(name string) *v1alpha1.AddonsLayer) []string {
	var names []string
	for _, dependency := range o.Platform.Spec.DependsOn {
		names = append(names, dependency.Name)
	}
	for _, target := range Targets(o) {
		if remote := o.Clusters[target]; remote != nil && remote.Labels[v1alpha1.LayerLabel] != "" {
			if maker := find(remote.Labels[v1alpha1.LayerLabel]); maker != nil && IsMade(maker) {
				names = append(names, maker.Labels[v1alpha1.PlatformLabel])
			}
		}
	}
	return slices.DeleteFunc(sorted(names), func(name string) bool { return name == o.Platform.Name })
}

// Downstream returns the names of the Platforms that depend on one, sorted.
func Downstream(o Observation) []string {
	var names []string
	for name, other := range o.Platforms {
		needs := slices.ContainsFunc(other.Spec.DependsOn, func(p v1alpha1.PlatformDependency) bool { return p.Name == o.Platform.Name })
		if needs && name != o.Platform.Name {
			names = append(names, name)
		}
	}
	return sorted(names)
}

// hasMade tells whether a layer has made a RemoteCluster, by what both say: either alone
// is easily claimed.
func hasMade(layer *v1alpha1.AddonsLayer, remote *v1alpha1.RemoteCluster) bool {
	return layer != nil && remote.Labels[v1alpha1.LayerLabel] == layer.Name &&
		slices.ContainsFunc(layer.Status.Resources, func(r v1alpha1.Resource) bool {
			return r.Cluster == "" && r.Namespace == remote.Namespace && r.Name == remote.Name &&
				kinds.ParseResourceKind(r.Kind).Kind == v1alpha1.RemoteClusterKind
		})
}

// makerOf returns the layer of another Platform that has made a cluster; nil for none.
// Where the cluster alone says so, it is unsure.
func (d *decider) makerOf(target types.NamespacedName) (maker *v1alpha1.AddonsLayer, unsure bool) {
	remote := d.Clusters[target]
	if remote == nil || remote.Labels[v1alpha1.LayerLabel] == "" {
		return nil, false
	}
	if maker = d.others.named[remote.Labels[v1alpha1.LayerLabel]]; maker == nil || !IsMade(maker) {
		return nil, false
	}
	if !hasMade(maker, remote) {
		return nil, true
	}
	return maker, false
}

// others are the layers that are not the platform's.
type others struct {
	named map[string]*v1alpha1.AddonsLayer
	// of each Platform, and on each cluster, by name.
	of map[string][]*v1alpha1.AddonsLayer
	on map[types.NamespacedName][]*v1alpha1.AddonsLayer
}

// othersOf sorts the layers that are not the platform's.
func othersOf(o Observation) others {
	found := others{
		named: map[string]*v1alpha1.AddonsLayer{}, of: map[string][]*v1alpha1.AddonsLayer{}, on: map[types.NamespacedName][]*v1alpha1.AddonsLayer{},
	}
	all := slices.Clone(o.Others)
	slices.SortFunc(all, func(a, b *v1alpha1.AddonsLayer) int { return cmp.Compare(a.Name, b.Name) })
	for _, layer := range all {
		found.named[layer.Name] = layer
		if IsMade(layer) {
			found.of[layer.Labels[v1alpha1.PlatformLabel]] = append(found.of[layer.Labels[v1alpha1.PlatformLabel]], layer)
		}
		place := placement.Of(layer, o.Namespace)
		found.on[place] = append(found.on[place], layer)
	}
	return found
}

// comesBefore finds what must be there before anything of the platform is on a cluster.
func (d *decider) comesBefore(target types.NamespacedName) upstream {
	var b upstream
	if d.circle != "" {
		b.early = d.circle
		return b
	}
	dependencies := d.Platform.Spec.DependsOn
	maker, unsure := d.makerOf(target)
	if unsure {
		// What it has made is seen a moment later, as a rule.
		d.until(d.Now.Add(unsureRetry))
		b.early = fmt.Sprintf("waits for layer %s to say that it has made RemoteCluster %s", d.Clusters[target].Labels[v1alpha1.LayerLabel], target)
	}
	if maker != nil {
		name := maker.Labels[v1alpha1.PlatformLabel]
		b.edges = append(b.edges, maker.Name)
		if !slices.ContainsFunc(dependencies, func(p v1alpha1.PlatformDependency) bool { return p.Name == name }) {
			dependencies = append(slices.Clone(dependencies), v1alpha1.PlatformDependency{Name: name})
		}
	}
	for _, dependency := range dependencies {
		edges, early := d.after(dependency, target, maker)
		b.edges = append(b.edges, edges...)
		b.early = cmp.Or(b.early, early)
	}
	b.edges = sorted(b.edges)
	return b
}

// after returns the layers of another Platform on a cluster that what is installed there
// comes after. Where that Platform is elsewhere there is no such layer, and the first
// installation waits for all of it.
func (d *decider) after(
	dependency v1alpha1.PlatformDependency, target types.NamespacedName, maker *v1alpha1.AddonsLayer,
) (edges []string, early string) {
	other := d.Platforms[dependency.Name]
	if other == nil {
		return nil, fmt.Sprintf("waits for Platform %s, which does not exist", dependency.Name)
	}
	what, all := "", d.others.of[dependency.Name]
	if dependency.Layer != "" {
		what = "layer " + dependency.Layer + " of "
		all = slices.DeleteFunc(slices.Clone(all), func(layer *v1alpha1.AddonsLayer) bool {
			return strings.TrimPrefix(layer.Labels[v1alpha1.PlatformLayerLabel], v1alpha1.PickedLayerPrefix) != dependency.Layer
		})
	}
	isHere := func(layer *v1alpha1.AddonsLayer) bool {
		return placement.Of(layer, d.Namespace) == target && !isDropped(layer)
	}
	if here := slices.DeleteFunc(slices.Clone(all), func(layer *v1alpha1.AddonsLayer) bool { return !isHere(layer) }); len(here) > 0 {
		return lastOf(here), ""
	}
	theirs, _ := targetsOf(Observation{Namespace: d.Namespace, Platform: other, Clusters: d.Clusters})
	if slices.Contains(theirs, target) || slices.ContainsFunc(d.others.of[dependency.Name], isHere) ||
		maker != nil && dependency.Layer != "" && maker.Labels[v1alpha1.PlatformLabel] == dependency.Name {
		return nil, fmt.Sprintf("waits for %sPlatform %s on this cluster, where it has nothing yet", what, dependency.Name)
	}
	if maker != nil && maker.Labels[v1alpha1.PlatformLabel] == dependency.Name {
		return nil, "" // It has made the cluster, and has nothing on it.
	}
	if dependency.Layer == "" {
		return nil, notReady(other)
	}
	if len(all) == 0 {
		return nil, fmt.Sprintf("waits for %sPlatform %s, which does not exist", what, dependency.Name)
	}
	for _, layer := range all {
		if !isDeployed(layer) {
			return nil, fmt.Sprintf("waits for %sPlatform %s: layer %s: %s", what, dependency.Name, layer.Name, messageOf(layer))
		}
	}
	return nil, ""
}

// notReady says why another Platform is not; empty where it is.
func notReady(other *v1alpha1.Platform) string {
	ready := meta.FindStatusCondition(other.Status.Conditions, v1alpha1.ReadyCondition)
	switch {
	case other.Status.ObservedGeneration != other.Generation || ready == nil:
		return fmt.Sprintf("waits for Platform %s, which has not been looked at since it was changed", other.Name)
	case ready.Status != metav1.ConditionTrue:
		return fmt.Sprintf("waits for Platform %s: %s", other.Name, ready.Message)
	}
	return ""
}

// lastOf returns the names of some layers or, where they are many, of those that none of
// them depends on.
func lastOf(layers []*v1alpha1.AddonsLayer) []string {
	var names []string
	for _, layer := range layers {
		names = append(names, layer.Name)
	}
	if len(names) <= mostEdges {
		return names
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(layers, func(layer *v1alpha1.AddonsLayer) bool { return dependsOn(layer, name) })
	})
}

// comesAfter returns the names of the Platforms that one depends on, directly or not.
func comesAfter(o Observation) map[string]bool {
	found := map[string]bool{}
	for queue := []*v1alpha1.Platform{o.Platform}; len(queue) > 0; queue = queue[1:] {
		for _, dependency := range queue[0].Spec.DependsOn {
			if other := o.Platforms[dependency.Name]; !found[dependency.Name] && other != nil {
				queue = append(queue, other)
			}
			found[dependency.Name] = true
		}
	}
	return found
}

// circleOf says that a platform depends on itself; empty where it does not.
func circleOf(o Observation) string {
	seen := map[string]bool{}
	var walk func(at *v1alpha1.Platform, path []string) []string
	walk = func(at *v1alpha1.Platform, path []string) []string {
		for _, dependency := range at.Spec.DependsOn {
			next := append(slices.Clone(path), dependency.Name)
			if dependency.Name == o.Platform.Name {
				return next
			}
			other := o.Platforms[dependency.Name]
			if other == nil || seen[dependency.Name] {
				continue
			}
			seen[dependency.Name] = true
			if found := walk(other, next); found != nil {
				return found
			}
		}
		return nil
	}
	path := walk(o.Platform, []string{o.Platform.Name})
	if path == nil {
		return ""
	}
	return "spec.dependsOn: the platforms depend on each other in a circle: " + strings.Join(path, " -> ")
}

// connect puts what comes before the platform before those of its layers that depend on
// none of its own.
func (b upstream) connect(plan []*laid) {
	for _, one := range plan {
		if one.presence == present && len(one.spec.Prereqs.DependsOn) == 0 {
			one.spec.Prereqs.DependsOn = slices.Clone(b.edges)
		}
	}
}
