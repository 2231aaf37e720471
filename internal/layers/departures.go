// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependencies"
)

// Departure is a layer that goes, as far as other layers are concerned.
type Departure struct {
	// Name of the layer.
	Name string
	// Turn is the place in the order: those of one turn go at the same time, the
	// first ones have 1. It is 0 for a layer that does not go.
	Turn int
	// After are the layers that go before it and that it waits for, sorted.
	After []string
	// Blocked says why it does not go; empty where it does.
	Blocked string
}

// Departures says in which order layers would go that were all deleted at once, and
// which of them would not, by the rules of deletion: those that go by their turns
// and names, then those that do not. all are the layers that there are.
func Departures(going, all []*v1alpha1.AddonsLayer, now time.Time) []Departure {
	goes := map[string]bool{}
	for _, layer := range going {
		goes[layer.Name] = true
	}
	var found []Departure
	for _, part := range parts(all) {
		if slices.ContainsFunc(part, func(layer *v1alpha1.AddonsLayer) bool { return goes[layer.Name] }) {
			found = append(found, departures(part, goes, now)...)
		}
	}
	slices.SortFunc(found, func(a, b Departure) int {
		return cmp.Or(cmp.Compare(turnOrLast(a), turnOrLast(b)), cmp.Compare(a.Name, b.Name))
	})
	return found
}

func turnOrLast(d Departure) int {
	if d.Turn == 0 {
		return int(^uint(0) >> 1)
	}
	return d.Turn
}

// departures lets layers go turn by turn. all are those that have to do with each
// other.
func departures(all []*v1alpha1.AddonsLayer, goes map[string]bool, now time.Time) []Departure {
	there := map[string]Other{}
	found := map[string]*Departure{}
	for _, layer := range all {
		if goes[layer.Name] {
			layer = layer.DeepCopy()
			layer.DeletionTimestamp = &metav1.Time{Time: now}
			found[layer.Name] = &Departure{Name: layer.Name, After: []string{}}
		}
		there[layer.Name] = Other{Layer: layer}
	}
	left := namesOf(found)
	for _, name := range left {
		found[name].After = slices.DeleteFunc(observed(there, name, now).inTheWay(), func(other string) bool { return !goes[other] })
	}
	for turn := 1; len(left) > 0; turn++ {
		var next []string
		for _, name := range left {
			if o := observed(there, name, now); hasBegun(o.Layer) || o.blockingLayersMessage() == "" {
				next = append(next, name)
			}
		}
		if len(next) == 0 {
			break
		}
		for _, name := range next {
			found[name].Turn = turn
			delete(there, name)
		}
		left = slices.DeleteFunc(left, func(name string) bool { return found[name].Turn > 0 })
	}
	var departures []Departure
	for _, name := range namesOf(found) {
		if found[name].Turn == 0 {
			found[name].Blocked = observed(there, name, now).blockingLayersMessage()
		}
		departures = append(departures, *found[name])
	}
	return departures
}

func namesOf(found map[string]*Departure) []string {
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// observed is what the rules of deletion see of a layer.
func observed(there map[string]Other, name string, now time.Time) Observation {
	others := map[string]Other{}
	for other, layer := range there {
		if other != name {
			others[other] = layer
		}
	}
	return Observation{Now: now, Layer: there[name].Layer, Layers: others}
}

// inTheWay returns the layers that keep this one from being deleted, sorted.
func (o Observation) inTheWay() []string {
	if o.Layer.Annotations[v1alpha1.ForceDeleteAnnotation] == "true" {
		return []string{}
	}
	if names := o.dependants(); len(names) > 0 {
		return names
	}
	return append([]string{}, o.predecessors()...)
}

// parts returns layers in groups that have nothing to do with each other: none
// depends on, or goes after, one of another group.
func parts(all []*v1alpha1.AddonsLayer) [][]*v1alpha1.AddonsLayer {
	byName := map[string]*v1alpha1.AddonsLayer{}
	edges := map[string][]string{}
	join := func(a, b string) {
		edges[a], edges[b] = append(edges[a], b), append(edges[b], a)
	}
	for _, layer := range all {
		byName[layer.Name] = layer
		for _, name := range slices.Concat(dependencies.Names(layer.Spec.Prereqs.DependsOn), layer.Spec.TeardownAfter) {
			join(layer.Name, name)
		}
	}
	seen := map[string]bool{}
	var groups [][]*v1alpha1.AddonsLayer
	for _, layer := range all {
		var group []*v1alpha1.AddonsLayer
		for queue := []string{layer.Name}; len(queue) > 0; queue = queue[1:] {
			name := queue[0]
			if seen[name] {
				continue
			}
			seen[name] = true
			if byName[name] != nil {
				group = append(group, byName[name])
			}
			queue = append(queue, edges[name]...)
		}
		if len(group) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}
