// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
)

// company are the worlds of several Platforms that see each other's layers.
type company []*world

// meet lets each see what the others have.
func (c company) meet() {
	all := map[string]*v1alpha1.Platform{}
	for _, w := range c {
		all[w.Platform.Name] = w.Platform
	}
	for _, w := range c {
		w.Platforms, w.Others = all, nil
		for _, other := range c {
			if other != w {
				w.Others = append(w.Others, other.Layers...)
			}
		}
	}
}

// settle lets all of them decide in turn until nothing happens any more.
func (c company) settle(t *testing.T) {
	t.Helper()
	for range 200 {
		busy := false
		for _, w := range c {
			c.meet()
			d := w.apply(t)
			c.meet()
			busy = w.engine() || busy || len(d.Write)+len(d.Delete) > 0
		}
		if !busy {
			return
		}
	}
	t.Fatal("they do not settle")
}

// madeBy adds the cluster that layer inner of a platform has made, as both say.
func (c company) madeBy(w *world, policy v1alpha1.ClusterDeletionPolicy) types.NamespacedName {
	maker := w.find(w.Platform.Name + "-inner")
	place := types.NamespacedName{Namespace: "fleet", Name: w.Platform.Name + "-inner"}
	remote := w.cluster(place.Name, map[string]string{v1alpha1.LayerLabel: maker.Name})
	remote.Spec.DeletionPolicy = policy
	for _, other := range c {
		other.Clusters[place] = remote
	}
	maker.Status.Resources = []v1alpha1.Resource{{Kind: "RemoteCluster.kraan.io", Namespace: place.Namespace, Name: place.Name}}
	return place
}

// makerAndGuest are a platform whose bundle makes a cluster, which it fills, and one that
// is installed there.
func makerAndGuest(t *testing.T, policy v1alpha1.ClusterDeletionPolicy) (company, *world, *world, types.NamespacedName) {
	t.Helper()
	maker := newWorld(platform("m", "", inputs(`{"nested": true}`)), nested(""))
	guest := newWorld(platform("g", "", on("m-inner")), bundle("1.0.0", "", "net", "apps net"))
	c := company{maker, guest}
	maker.apply(t)
	place := c.madeBy(maker, policy)
	c.meet()
	return c, maker, guest, place
}

func TestAClusterWaitsForItsOwnPlatform(t *testing.T) {
	c, maker, guest, place := makerAndGuest(t, "")
	if d := guest.apply(t); len(d.Write) == 0 {
		t.Fatalf("its own layers wait for those of the maker, and are made: %s", said(d.Status))
	}
	if got := find(guest.Layers, "net", place).Spec.Prereqs.DependsOn; !slices.Equal(got, []string{"m-gpu", "m-inner"}) {
		t.Errorf("what comes first depends on %v", got)
	}
	if got := find(guest.Layers, "apps", place).Spec.Prereqs.DependsOn; len(got) != 1 || strings.HasPrefix(got[0], "m-") {
		t.Errorf("what comes second depends on %v", got)
	}
	c.settle(t)
	if d := guest.apply(t); d.Status.Clusters.Ready != 1 {
		t.Errorf("%+v: %s", d.Status.Clusters, said(d.Status))
	}
	if d := maker.apply(t); len(d.Write)+len(d.Delete) > 0 || d.Status.Clusters.Ready != 1 {
		t.Errorf("the maker: %s", said(d.Status))
	}
}

// find returns the layer of a name in a bundle that is on a cluster.
func find(layers []*v1alpha1.AddonsLayer, name string, place types.NamespacedName) *v1alpha1.AddonsLayer {
	i := slices.IndexFunc(layers, func(l *v1alpha1.AddonsLayer) bool {
		return l.Labels[v1alpha1.PlatformLayerLabel] == name && l.Labels[v1alpha1.PlatformClusterLabel] == clusterValue(place)
	})
	if i < 0 {
		return &v1alpha1.AddonsLayer{}
	}
	return layers[i]
}

// A cluster may claim a maker: it waits, and nobody's layers are tied to that.
func TestAClusterThatClaimsAMaker(t *testing.T) {
	c, maker, guest, place := makerAndGuest(t, "")
	maker.find("m-inner").Status.Resources = nil
	c.meet()
	d := guest.apply(t)
	if len(d.Write) > 0 || !strings.Contains(said(d.Status), "waits for layer m-inner to say that it has made RemoteCluster fleet/m-inner") || d.Until.IsZero() {
		t.Errorf("%d layers are written, until %s: %s", len(d.Write), d.Until, said(d.Status))
	}
	guest.Clusters[place].Labels[v1alpha1.LayerLabel] = "nobody"
	c.meet()
	if d := guest.apply(t); len(d.Write) == 0 {
		t.Errorf("a layer that does not exist is waited for: %s", said(d.Status))
	}
	if got := find(guest.Layers, "net", place).Spec.Prereqs.DependsOn; len(got) > 0 {
		t.Errorf("it depends on %v", got)
	}
}

func TestPlatformsComeAfterEachOther(t *testing.T) {
	after := func(name, layer string) func(*v1alpha1.Platform) {
		return func(p *v1alpha1.Platform) {
			p.Spec.DependsOn = []v1alpha1.PlatformDependency{{Name: name, Layer: layer}}
		}
	}
	pair := func(first, second *v1alpha1.Platform) (company, *world, *world) {
		a, b := newWorld(first, bundle("1.0.0", "", "net", "apps net")), newWorld(second, bundle("1.0.0", "", "top"))
		for _, w := range []*world{a, b} {
			w.cluster("c", nil)
			w.cluster("d", nil)
		}
		c := company{a, b}
		c.meet()
		return c, a, b
	}
	at := types.NamespacedName{Namespace: "fleet", Name: "c"}

	t.Run("on the same cluster, a layer", func(t *testing.T) {
		c, a, b := pair(platform("a", "", on("c")), platform("b", "", on("c"), after("a", "net")))
		if d := b.apply(t); len(d.Write) > 0 || !strings.Contains(said(d.Status), "waits for layer net of Platform a on this cluster, where it has nothing yet") {
			t.Errorf("before there is anything it writes %d layers: %s", len(d.Write), said(d.Status))
		}
		a.apply(t)
		c.meet()
		b.apply(t)
		if got, want := find(b.Layers, "top", at).Spec.Prereqs.DependsOn, []string{find(a.Layers, "net", at).Name}; !slices.Equal(got, want) {
			t.Errorf("it depends on %v, want %v", got, want)
		}
	})
	t.Run("on the same cluster, all of it", func(t *testing.T) {
		c, a, b := pair(platform("a", "", on("c", "d")), platform("b", "", on("c"), after("a", "")))
		a.settle(t)
		c.meet()
		b.apply(t)
		if got := find(b.Layers, "top", at).Spec.Prereqs.DependsOn; len(got) != 2 || !slices.Contains(got, find(a.Layers, "apps", at).Name) {
			t.Errorf("it depends on %v", got)
		}
	})
	t.Run("elsewhere", func(t *testing.T) {
		c, a, b := pair(platform("a", "", on("d")), platform("b", "", on("c"), after("a", "")))
		if d := b.apply(t); len(d.Write) > 0 || !strings.Contains(said(d.Status), "waits for Platform a") {
			t.Errorf("it writes %d layers: %s", len(d.Write), said(d.Status))
		}
		a.settle(t)
		a.Platform.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue}}
		a.Platform.Status.ObservedGeneration = a.Platform.Generation
		c.meet()
		if d := b.apply(t); len(d.Write) != 1 || len(d.Write[0].Spec.Prereqs.DependsOn) > 0 {
			t.Errorf("it writes %d layers: %s", len(d.Write), said(d.Status))
		}
		// What is installed stays when the other one fails.
		a.Platform.Status.Conditions[0].Status = metav1.ConditionFalse
		c.meet()
		if d := b.settle(t); d.Status.Clusters.Ready != 1 {
			t.Errorf("%+v: %s", d.Status.Clusters, said(d.Status))
		}
	})
	t.Run("elsewhere, a layer", func(t *testing.T) {
		c, a, b := pair(platform("a", "", on("d")), platform("b", "", on("c"), after("a", "net")))
		b.apply(t)
		a.breaks["apps@1.0.0"] = true
		a.settle(t)
		c.meet()
		if d := b.apply(t); len(d.Write) != 1 {
			t.Errorf("it writes %d layers: %s", len(d.Write), said(d.Status))
		}
	})
	t.Run("not there", func(t *testing.T) {
		_, _, b := pair(platform("a", ""), platform("b", "", on("c"), after("nobody", "")))
		if d := b.apply(t); len(d.Write) > 0 || !strings.Contains(said(d.Status), "waits for Platform nobody, which does not exist") {
			t.Errorf("it writes %d layers: %s", len(d.Write), said(d.Status))
		}
	})
	t.Run("in a circle", func(t *testing.T) {
		_, _, b := pair(platform("a", "", on("c"), after("b", "")), platform("b", "", on("c"), after("a", "")))
		d := b.apply(t)
		if len(d.Write) > 0 || !strings.Contains(said(d.Status), "in a circle: b -> a -> b") || !strings.Contains(conditionsOf(d.Status), "Stalled=True/InvalidSpec") {
			t.Errorf("it writes %d layers: %s, %s", len(d.Write), said(d.Status), conditionsOf(d.Status))
		}
	})
	t.Run("picked applications", func(t *testing.T) {
		second := platform("b", "", on("c"), after("a", "net"))
		second.Spec.Bundle, second.Spec.Applications = nil, []v1alpha1.PlatformApplication{{Name: "app"}}
		c, a, b := pair(platform("a", "", on("c")), second)
		if d := b.apply(t); len(d.Write) > 0 {
			t.Errorf("before there is anything it writes %d layers: %s", len(d.Write), said(d.Status))
		}
		a.settle(t)
		c.meet()
		// What it picks is brought by the other one; so it picks what is not.
		b.Catalogue["more"] = application("more", "1.0.0")
		b.Platform.Spec.Applications[0].Name = "more"
		b.apply(t)
		if got, want := find(b.Layers, v1alpha1.PickedLayerPrefix+"applications", at).Spec.Prereqs.DependsOn, []string{find(a.Layers, "net", at).Name}; !slices.Equal(got, want) {
			t.Errorf("it depends on %v, want %v: %s", got, want, b.names())
		}
	})
}

func TestManyEdgesBecomeTheLast(t *testing.T) {
	var layers []*v1alpha1.AddonsLayer
	for i := range mostEdges + 1 {
		layer := &v1alpha1.AddonsLayer{}
		layer.Name = "l" + strings.Repeat("i", i)
		if i > 0 {
			layer.Spec.Prereqs.DependsOn = []string{layers[i-1].Name + "@1.0.0"}
		}
		layers = append(layers, layer)
	}
	if got := lastOf(layers); len(got) != 1 || got[0] != layers[mostEdges].Name {
		t.Errorf("the last are %v", got)
	}
}
