// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package waves puts layers in the order in which they are deployed, in groups, and cut to
// what can be looked at: the worst come first, and what is left out is said in words. It
// may import snapshot, summary, why and verdict, and reads nothing but objects that it is
// given.
package waves

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/internal/answers/verdict"
	"github.com/strata-project/strata/internal/answers/why"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/printable"
)

// Graph is layers in waves. No list is nil.
type Graph struct {
	Groups []Group         `json:"groups"`
	Nodes  map[string]Node `json:"-"`
	// Left says what is left out of all groups; empty for nothing.
	Left string `json:"left,omitempty"`
}

// Group is the layers of a cluster.
type Group struct {
	// Cluster as namespace/name of a RemoteCluster; empty for the one that Strata runs in.
	Cluster string `json:"cluster,omitempty"`
	// Lanes are one below the other: layers of no platform first.
	Lanes []Lane `json:"lanes"`
	// Left says what is left out of the group; empty for nothing.
	Left string `json:"left,omitempty"`
}

// Lane is the layers of a cluster that are of one platform, or of none.
type Lane struct {
	Platform string `json:"platform,omitempty"`
	// Waves hold names of layers. Those of one wave wait for none of each other. All lanes
	// of a group have the same waves, of which some may be empty.
	Waves [][]string `json:"waves"`
}

// Node is a layer, or a name that stands for none.
type Node struct {
	Name string `json:"name"`
	// Version, after the one that is deployed where they differ.
	Version string `json:"version,omitempty"`
	// State in the layer's own word; Missing where there is no such layer.
	State string        `json:"state"`
	Fares verdict.State `json:"fares"`
	// Ready counts the releases that are ready, of those that must be.
	Ready string `json:"ready,omitempty"`
	// Why says what the layer waits for, or what is wrong.
	Why string `json:"why,omitempty"`
	// Since as RFC 3339; empty where it is not known.
	Since string `json:"since,omitempty"`
	// Needs are the layers that it depends on, in order.
	Needs []string `json:"needs,omitempty"`
}

// stateMissing is that of a layer that others depend on and that does not exist, and
// stateNew that of one which the controller has not looked at yet.
const stateMissing, stateNew = "Missing", "New"

// longest is how many runes of a reason a node has.
const longest = 160

// Of returns the graph of at most so many of the layers with some labels, nil for all.
func Of(s *snapshot.Snapshot, wanted labels.Selector, most int) Graph {
	all := make(map[string]*v1alpha1.AddonsLayer, len(s.Layers))
	needs := dependencies.Graph{}
	for _, layer := range s.Layers {
		all[layer.Name] = layer
		needs[layer.Name] = dependencies.Names(layer.Spec.Prereqs.DependsOn)
	}
	selected := s.Layers
	if wanted != nil {
		selected = slices.DeleteFunc(slices.Clone(s.Layers), func(layer *v1alpha1.AddonsLayer) bool { return !wanted.Matches(labels.Set(layer.Labels)) })
	}
	chosen, left := choose(selected, most)
	g := Graph{Groups: []Group{}, Nodes: map[string]Node{}, Left: left.say()}
	depths := depthsOf(needs)
	clusters := map[string]*places{}
	for _, layer := range chosen {
		k := keyOf(layer)
		if clusters[k.cluster] == nil {
			clusters[k.cluster] = &places{lanes: map[string]map[int][]string{}}
		}
		at := clusters[k.cluster]
		at.put(k.platform, depths[layer.Name], layer.Name)
		g.Nodes[layer.Name] = nodeOf(layer, needs[layer.Name], s)
		for _, on := range needs[layer.Name] {
			// Whoever writes a layer may name any number of others that do not exist.
			if _, known := g.Nodes[on]; !known && all[on] == nil && len(g.Nodes) < 2*most {
				at.put(k.platform, 0, on)
				g.Nodes[on] = Node{Name: on, State: stateMissing, Fares: verdict.Failed, Why: "there is no such layer"}
			}
		}
	}
	for _, cluster := range slices.Sorted(maps.Keys(clusters)) {
		group := Group{Cluster: cluster, Lanes: clusters[cluster].lay()}
		if beyond := left.clusters[cluster]; beyond != nil {
			group.Left = beyond.say()
		}
		g.Groups = append(g.Groups, group)
	}
	return g
}

// places are where the layers of a cluster stand: by lane, then by wave.
type places struct {
	lanes map[string]map[int][]string
	waves map[int]bool
}

func (p *places) put(platform string, wave int, name string) {
	if p.lanes[platform] == nil {
		p.lanes[platform] = map[int][]string{}
	}
	if p.waves == nil {
		p.waves = map[int]bool{}
	}
	p.waves[wave] = true
	p.lanes[platform][wave] = append(p.lanes[platform][wave], name)
}

// lay returns the lanes. Waves that no lane has anything in leave no room.
func (p *places) lay() []Lane {
	var lanes []Lane
	for _, platform := range slices.Sorted(maps.Keys(p.lanes)) {
		lane := Lane{Platform: platform}
		for _, wave := range slices.Sorted(maps.Keys(p.waves)) {
			lane.Waves = append(lane.Waves, append([]string{}, slices.Sorted(slices.Values(p.lanes[platform][wave]))...))
		}
		lanes = append(lanes, lane)
	}
	return lanes
}

// key is what layers of a lane have in common.
type key struct{ cluster, platform string }

func keyOf(layer *v1alpha1.AddonsLayer) key {
	return key{placement.ClusterName(placement.Of(layer, "")), layer.Labels[v1alpha1.PlatformLabel]}
}

// remainder counts what is left out, by how it fares.
type remainder struct {
	counts   map[verdict.State]int
	clusters map[string]*remainder
}

// say writes what is left out: 412 more, all well.
func (r *remainder) say() string {
	total := 0
	for _, number := range r.counts {
		total += number
	}
	switch {
	case total == 0:
		return ""
	case r.counts[verdict.Well] == total:
		return fmt.Sprintf("and %d more, all deployed", total)
	}
	return fmt.Sprintf("and %d more: %s", total, verdict.Counted(r.counts, "deployed"))
}

// choose returns the worst layers, and counts the others.
func choose(layers []*v1alpha1.AddonsLayer, most int) ([]*v1alpha1.AddonsLayer, *remainder) {
	left := &remainder{counts: map[verdict.State]int{}, clusters: map[string]*remainder{}}
	if len(layers) <= most {
		return layers, left
	}
	by := map[verdict.State][]*v1alpha1.AddonsLayer{}
	for _, layer := range layers {
		state := verdict.StateOf(layer)
		by[state] = append(by[state], layer)
	}
	var chosen []*v1alpha1.AddonsLayer
	for _, state := range slices.SortedFunc(maps.Keys(by), verdict.Compare) {
		fits := min(most-len(chosen), len(by[state]))
		chosen = append(chosen, by[state][:fits]...)
		for _, layer := range by[state][fits:] {
			cluster := keyOf(layer).cluster
			if left.clusters[cluster] == nil {
				left.clusters[cluster] = &remainder{counts: map[verdict.State]int{}}
			}
			left.counts[state]++
			left.clusters[cluster].counts[state]++
		}
	}
	return chosen, left
}

// depthsOf returns the wave of each layer: one behind the last of those that it depends
// on. Layers of a circle are judged by the others that they depend on.
func depthsOf(needs dependencies.Graph) map[string]int {
	depths, visiting := map[string]int{}, map[string]bool{}
	var depthOf func(name string) int
	depthOf = func(name string) int {
		if depth, known := depths[name]; known || visiting[name] {
			return depth
		}
		visiting[name] = true
		depth := 0
		for _, on := range needs[name] {
			if !visiting[on] {
				depth = max(depth, depthOf(on)+1)
			}
		}
		delete(visiting, name)
		depths[name] = depth
		return depth
	}
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		depthOf(name)
	}
	return depths
}

func nodeOf(layer *v1alpha1.AddonsLayer, needs []string, s *snapshot.Snapshot) Node {
	row := summary.Of(layer, s.Now)
	node := Node{
		Name: layer.Name, Version: row.Version, State: row.State, Fares: verdict.StateOf(layer), Ready: row.Ready,
		Why: printable.Clip(row.Why, longest), Since: why.LinkOf(layer).Since, Needs: needs,
	}
	if node.State == "-" {
		node.State = stateNew
	}
	if node.Ready == "-" {
		node.Ready = ""
	}
	return node
}
