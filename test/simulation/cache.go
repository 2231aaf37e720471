// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// cache is what a process has seen of the objects of one kind: the cluster as it
// was some writes ago.
type cache struct {
	kind int
	// of is the cluster, and cluster how IDs name it.
	of      *cluster
	cluster string
	// reaches tells whether anything can be seen; nil where that is always so.
	reaches func() bool
	// at is how many changes of the history have been seen.
	at      int
	objects map[string]object
	// frozen keeps it from seeing more until that moment.
	frozenUntil moment
}

// sync sees everything at once, as a process does that begins.
func (c *cache) sync() {
	c.at = len(c.of.history[c.kind])
	c.objects = maps.Clone(c.of.objects[c.kind])
}

// hasNews tells whether there is something to see, perhaps later.
func (c *cache) hasNews() bool {
	return c.at < len(c.of.history[c.kind]) && (c.reaches == nil || c.reaches())
}

// behind tells whether there is something to see.
func (c *cache) behind(s *simulation) bool {
	return c.frozenUntil <= s.now && c.hasNews()
}

// see takes in the next change.
func (c *cache) see() change {
	next := c.of.history[c.kind][c.at]
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
func (c *cache) relist() []change {
	if c.reaches != nil && !c.reaches() {
		return nil
	}
	cluster := c.of
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
	c.sync()
	return changes
}

// wake looks at the layers that a change concerns, as the controller's watches
// do. There is no harm in too many, so that this is simpler.
func (p *process) wake(of *cache, c change) {
	switch of.kind {
	case kindLayer:
		p.wakeForLayer(c)
		p.enqueue(p.countedOn(c)...)
	case kindSource:
		for _, name := range p.layerNames() {
			if p.cachedLayer(name).Spec.Source.Name == c.name {
				p.enqueue(name)
			}
		}
	case kindRemote:
		p.wakeForRemote(c)
	case kindRelease, kindPlain:
		p.wakeForObject(of.cluster, c)
	}
}

// countedOn returns the RemoteClusters that a change of a layer concerns.
func (p *process) countedOn(c change) []string {
	was, _ := c.was.(*v1alpha1.AddonsLayer)
	is, _ := c.is.(*v1alpha1.AddonsLayer)
	if was != nil && is != nil && samePlace(was.Spec.Cluster, is.Spec.Cluster) && len(was.Status.Resources) == len(is.Status.Resources) &&
		was.Status.Cluster == is.Status.Cluster && condition(was, v1alpha1.DeployedCondition).Status == condition(is, v1alpha1.DeployedCondition).Status {
		return nil
	}
	var found []string
	for _, layer := range []*v1alpha1.AddonsLayer{was, is} {
		if layer == nil {
			continue
		}
		for _, name := range layers.ClustersLeft(layer) {
			found = append(found, name.String())
		}
		if name := clusterOf(layer); name != "" {
			found = append(found, name)
		}
	}
	return found
}

func (p *process) wakeForRemote(c change) {
	was, _ := c.was.(*v1alpha1.RemoteCluster)
	is, _ := c.is.(*v1alpha1.RemoteCluster)
	same := was != nil && is != nil && was.Generation == is.Generation && maps.Equal(was.Annotations, is.Annotations) &&
		(was.DeletionTimestamp == nil) == (is.DeletionTimestamp == nil)
	if !same {
		p.enqueue(c.name)
	}
	if !same || was.Status.Version != is.Status.Version || !equality.Semantic.DeepEqual(was.Status.Conditions, is.Status.Conditions) {
		p.enqueue(p.layersOn(c.name)...)
	}
}

// layersOn returns the layers that have to do with a cluster.
func (p *process) layersOn(cluster string) []string {
	return slices.DeleteFunc(p.layerNames(), func(name string) bool {
		layer := p.cachedLayer(name)
		return clusterOf(layer) != cluster &&
			!slices.ContainsFunc(layers.ClustersLeft(layer), func(left types.NamespacedName) bool { return left.String() == cluster })
	})
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
			if slices.Contains(dependencies.Names(p.cachedLayer(name).Spec.Prereqs.DependsOn), c.name) {
				p.enqueue(name)
			}
		}
	}
	if touched || is.DeletionTimestamp != nil && carried {
		for _, layer := range []*v1alpha1.AddonsLayer{was, is} {
			if layer != nil {
				p.enqueue(dependencies.Names(layer.Spec.Prereqs.DependsOn)...)
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
		was.Status.ObservedGeneration == is.Status.ObservedGeneration &&
		condition(was, v1alpha1.ReadyCondition).Reason == condition(is, v1alpha1.ReadyCondition).Reason &&
		condition(was, v1alpha1.DeployedCondition).Status == condition(is, v1alpha1.DeployedCondition).Status
}

func (p *process) wakeForObject(cluster string, c change) {
	for _, obj := range []object{c.was, c.is} {
		live, _ := obj.(*unstructured.Unstructured)
		if live == nil {
			continue
		}
		if owner := live.GetLabels()[v1alpha1.LayerLabel]; owner != "" {
			p.enqueue(owner)
		}
		identity := ""
		if kindOf(c.name) == kindRelease {
			identity = kinds.HelmReleaseIdentity(live)
		}
		who := p.listings.WhoLists(objects.IDOf(live).On(cluster), identity)
		slices.Sort(who)
		p.enqueue(who...)
	}
	for _, name := range remoteNames {
		if c.name == sourceOfKubeConfig(name) || c.name == copyOfKubeConfig(name) {
			p.enqueue(name)
		}
	}
}

func (p *process) cachedLayer(name string) *v1alpha1.AddonsLayer {
	layer, _ := p.caches[kindLayer].objects[name].(*v1alpha1.AddonsLayer)
	return layer
}

// cachedRelease returns a release, or another object of home, by its key.
func (p *process) cachedRelease(key string) *unstructured.Unstructured {
	release, _ := p.caches[kindOf(key)].objects[key].(*unstructured.Unstructured)
	return release
}

func (p *process) cachedRemote(name string) *v1alpha1.RemoteCluster {
	remote, _ := p.caches[kindRemote].objects[name].(*v1alpha1.RemoteCluster)
	return remote
}

func (p *process) cachedLayers() []v1alpha1.AddonsLayer {
	var found []v1alpha1.AddonsLayer
	for _, name := range p.layerNames() {
		found = append(found, *p.cachedLayer(name))
	}
	return found
}

func (p *process) layerNames() []string {
	return slices.Sorted(maps.Keys(p.caches[kindLayer].objects))
}
