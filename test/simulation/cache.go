// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/layers"
)

// cache is what a process has seen of the objects of one kind: the cluster as it
// was some writes ago.
type cache struct {
	kind int
	// at is how many changes of the history have been seen.
	at      int
	objects map[string]object
	// frozen keeps it from seeing more until that moment.
	frozenUntil moment
}

// sync sees everything at once, as a process does that begins.
func (c *cache) sync(cluster *cluster) {
	c.at = len(cluster.history[c.kind])
	c.objects = maps.Clone(cluster.objects[c.kind])
}

// behind tells whether there is something to see.
func (c *cache) behind(s *simulation) bool {
	return c.at < len(s.cluster.history[c.kind]) && c.frozenUntil <= s.now
}

// see takes in the next change.
func (c *cache) see(cluster *cluster) change {
	next := cluster.history[c.kind][c.at]
	c.at++
	c.set(next)
	return next
}

func (c *cache) set(next change) {
	if next.is == nil {
		delete(c.objects, next.name)
	} else {
		c.objects[next.name] = next.is
	}
}

// relist sees the cluster as it is, and of each object only the last change.
func (c *cache) relist(cluster *cluster) []change {
	var changes []change
	for name := range cluster.objects[c.kind] {
		changes = append(changes, change{name, c.objects[name], cluster.objects[c.kind][name]})
	}
	for name := range c.objects {
		if cluster.objects[c.kind][name] == nil {
			changes = append(changes, change{name, c.objects[name], nil})
		}
	}
	slices.SortFunc(changes, func(a, b change) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	changes = slices.DeleteFunc(changes, func(c change) bool { return c.was == c.is })
	c.sync(cluster)
	return changes
}

// wake looks at the layers that a change concerns, as the controller's watches
// do. There is no harm in too many, so that this is simpler.
func (p *process) wake(kind int, c change) {
	switch kind {
	case kindLayer:
		p.wakeForLayer(c)
	case kindSource:
		for _, name := range p.layerNames() {
			if p.cachedLayer(name).Spec.Source.Name == c.name {
				p.enqueue(name)
			}
		}
	case kindRelease:
		p.wakeForRelease(c)
	}
}

func (p *process) wakeForLayer(c change) {
	was, _ := c.was.(*v1alpha1.AddonsLayer)
	is, _ := c.is.(*v1alpha1.AddonsLayer)
	touched := was == nil || is == nil || was.Generation != is.Generation || was.UID != is.UID || len(was.Finalizers) != len(is.Finalizers) ||
		(was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil) || !maps.Equal(was.Annotations, is.Annotations)
	if touched {
		p.enqueue(c.name)
	}
	carried := touched || !equality.Semantic.DeepEqual(layers.Carried(was), layers.Carried(is))
	if carried || !sameStanding(was, is) {
		for _, name := range p.layerNames() {
			if slices.Contains(layers.DependencyNames(p.cachedLayer(name).Spec.Prereqs.DependsOn), c.name) {
				p.enqueue(name)
			}
		}
	}
	if touched || is.DeletionTimestamp != nil && carried {
		for _, layer := range []*v1alpha1.AddonsLayer{was, is} {
			if layer != nil {
				p.enqueue(layers.DependencyNames(layer.Spec.Prereqs.DependsOn)...)
			}
		}
	}
	if touched && (was == nil || is == nil || !slices.Equal(was.Spec.Prereqs.DependsOn, is.Spec.Prereqs.DependsOn)) {
		p.enqueue(p.layerNames()...) // a cycle may have been opened or closed
	}
}

// sameStanding tells whether a layer counts the same for those that depend on it.
func sameStanding(was, is *v1alpha1.AddonsLayer) bool {
	return was.Status.State == is.Status.State && was.Status.Version == is.Status.Version && was.Status.Digest == is.Status.Digest &&
		was.Status.ObservedGeneration == is.Status.ObservedGeneration && condition(was, v1alpha1.ReadyCondition).Reason == condition(is, v1alpha1.ReadyCondition).Reason &&
		condition(was, v1alpha1.DeployedCondition).Status == condition(is, v1alpha1.DeployedCondition).Status
}

func (p *process) wakeForRelease(c change) {
	for _, obj := range []object{c.was, c.is} {
		release, _ := obj.(*unstructured.Unstructured)
		if release == nil {
			continue
		}
		if owner := release.GetLabels()[v1alpha1.LayerLabel]; owner != "" {
			p.enqueue(owner)
		}
		who := p.listings.WhoLists(releaseID(c.name), layers.HelmReleaseIdentity(release))
		slices.Sort(who)
		p.enqueue(who...)
	}
}

func (p *process) cachedLayer(name string) *v1alpha1.AddonsLayer {
	layer, _ := p.caches[kindLayer].objects[name].(*v1alpha1.AddonsLayer)
	return layer
}

func (p *process) cachedRelease(name string) *unstructured.Unstructured {
	release, _ := p.caches[kindRelease].objects[name].(*unstructured.Unstructured)
	return release
}

func (p *process) layerNames() []string {
	return slices.Sorted(maps.Keys(p.caches[kindLayer].objects))
}
