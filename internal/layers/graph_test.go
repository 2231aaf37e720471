// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependencies"
)

func TestDependencyNames(t *testing.T) {
	cases := []struct {
		reason string
		in     []string
		want   []string
	}{
		{"none", nil, []string{}},
		{"in the order listed", []string{"b@1", "a"}, []string{"b", "a"}},
		{"each once", []string{"a@>=1", "a@<2", "a"}, []string{"a"}},
		{"a version that cannot be understood", []string{"a@", "b@>=x"}, []string{"a", "b"}},
		{"a name that cannot be one", []string{"A@1", "", "@1", "-a", "a.", "a b"}, []string{}},
	}
	for _, tc := range cases {
		if diff := cmp.Diff(tc.want, dependencies.Names(tc.in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

// reachability is Warshall's: who reaches whom by at least one step.
func reachability(nodes []string, edges dependencies.Graph) map[string]map[string]bool {
	reach := map[string]map[string]bool{}
	for _, node := range nodes {
		reach[node] = map[string]bool{}
		for _, next := range edges[node] {
			reach[node][next] = true
		}
	}
	for _, by := range nodes {
		for _, from := range nodes {
			for _, to := range nodes {
				if reach[from][by] && reach[by][to] {
					reach[from][to] = true
				}
			}
		}
	}
	return reach
}

// drawGraph returns a graph of some nodes, with loops, gaps and double edges.
func drawGraph(t *rapid.T) ([]string, dependencies.Graph) {
	var nodes []string
	for i := range rapid.IntRange(1, 9).Draw(t, "nodes") {
		nodes = append(nodes, fmt.Sprintf("n%d", i))
	}
	edges := dependencies.Graph{}
	for range rapid.IntRange(0, 16).Draw(t, "edges") {
		from := rapid.SampledFrom(nodes).Draw(t, "from")
		edges[from] = append(edges[from], rapid.SampledFrom(append([]string{"missing"}, nodes...)).Draw(t, "to"))
	}
	return nodes, edges
}

func TestCycle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, edges := drawGraph(t)
		reach := reachability(nodes, edges)
		for _, node := range nodes {
			asked := map[string]int{}
			path := dependencies.Cycle(node, func(name string) []string { asked[name]++; return edges[name] })
			if (path != nil) != reach[node][node] {
				t.Fatalf("%s: %v in %v", node, path, edges)
			}
			for name, times := range asked {
				if times > 1 {
					t.Errorf("%s is asked %d times", name, times)
				}
			}
			if path == nil {
				continue
			}
			if path[0] != node || path[len(path)-1] != node {
				t.Errorf("%v does not lead from %s to %s", path, node, node)
			}
			for i := 1; i < len(path); i++ {
				if !slices.Contains(edges[path[i-1]], path[i]) {
					t.Errorf("%v: there is no way from %s to %s", path, path[i-1], path[i])
				}
			}
			if inner := path[1:]; len(slices.Compact(slices.Sorted(slices.Values(inner)))) != len(inner) {
				t.Errorf("%v goes in circles", path)
			}
		}
	})
}

// A layer's circle is everybody whom it reaches and who reaches it.
func TestCircle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, edges := drawGraph(t)
		reach := reachability(nodes, edges)
		turned := dependencies.Graph{}
		for name, next := range edges {
			turned[name] = slices.Clone(next)
			slices.Reverse(turned[name])
		}
		for _, node := range nodes {
			var want []string
			for _, other := range nodes {
				if reach[node][other] && reach[other][node] {
					want = append(want, other)
				}
			}
			for _, graph := range []dependencies.Graph{edges, turned} {
				if diff := cmp.Diff(want, graph.Circle(node)); diff != "" {
					t.Fatalf("%s in %v (-want +got):\n%s", node, graph, diff)
				}
			}
		}
	})
}

// The members of a cycle say so, each beginning with itself; nobody else does,
// and whoever depends on one of them waits for it.
func TestOnlyMembersOfACycleAreStalled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, edges := drawGraph(t)
		reach := reachability(nodes, edges)
		all := map[string]Other{}
		for _, node := range nodes {
			all[node] = Other{Layer: layer(named(node), needs(edges[node]...))}
		}
		for _, node := range nodes {
			o := observation(all[node].Layer, newDir)
			o.Layers = maps.Clone(all)
			delete(o.Layers, node)
			d := Decide(o)
			inCycle := d.Reason == v1alpha1.ReasonDependencyCycle
			if inCycle != reach[node][node] || inCycle != d.Stalled {
				t.Fatalf("%s in %v is %s %s: %s", node, edges, d.State, d.Reason, d.Message)
			}
			if waits := d.State == v1alpha1.StateApplyPending; !inCycle && waits != (len(edges[node]) > 0) {
				t.Fatalf("%s in %v is %s %s: %s", node, edges, d.State, d.Reason, d.Message)
			}
		}
	})
}

// bigGraphs are graphs of 500 layers in which a search that looks at every path
// never ends.
func bigGraphs() map[string]dependencies.Graph {
	const layers, width = 500, 20
	name := func(i int) string { return fmt.Sprintf("layer-%d", i) }
	chain, lattice := dependencies.Graph{}, dependencies.Graph{}
	for i := range layers {
		if i > 0 {
			chain[name(i)] = []string{name(i - 1)}
		}
		for j := range width {
			if floor := i / width; floor > 0 {
				lattice[name(i)] = append(lattice[name(i)], name((floor-1)*width+j))
			}
		}
	}
	ring := maps.Clone(chain)
	ring[name(0)] = []string{name(layers - 1)}
	return map[string]dependencies.Graph{"chain": chain, "lattice": lattice, "ring": ring}
}

// Every layer of a graph of 500 is looked at. A single careless search would not end
// before the tests are given up.
func TestBigGraphs(t *testing.T) {
	for kind, graph := range bigGraphs() {
		t.Run(kind, func(t *testing.T) {
			all := map[string]Other{}
			for i := range 500 {
				name := fmt.Sprintf("layer-%d", i)
				var dependsOn []string
				for _, other := range graph[name] {
					dependsOn = append(dependsOn, other+"@>=1.0.0 <2")
				}
				all[name] = Other{Layer: layer(named(name), isDeployed(oldDir), needs(dependsOn...))}
			}
			start := time.Now()
			cyclic := 0
			for _, other := range all {
				o := observation(other.Layer, oldDir)
				o.Layers = all
				if o.cycle() != nil {
					cyclic++
				}
				if circle := graph.Circle(other.Layer.Name); (circle != nil) != (kind == "ring") {
					t.Fatalf("the circle of %s is %v", other.Layer.Name, circle)
				}
			}
			t.Logf("500 layers in %s", time.Since(start))
			if want := map[string]int{"ring": 500}[kind]; cyclic != want {
				t.Errorf("%d layers are on a cycle, want %d", cyclic, want)
			}
		})
	}
}
