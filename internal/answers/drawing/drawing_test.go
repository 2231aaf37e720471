// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package drawing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
)

func layer(name string, dependsOn ...string) *v1alpha1.AddonsLayer {
	return &v1alpha1.AddonsLayer{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.AddonsLayerSpec{Version: "1.0.0", Prereqs: v1alpha1.PrereqsSpec{DependsOn: dependsOn}},
	}
}

func names(g Graph) string {
	var found []string
	for _, node := range g.Nodes {
		found = append(found, node.Name)
	}
	return strings.Join(found, " ")
}

func TestNamesRestrictTheGraph(t *testing.T) {
	all := []*v1alpha1.AddonsLayer{layer("a"), layer("b", "a"), layer("c", "b@1.0.0", "gone"), layer("d", "a"), layer("e")}
	for wanted, want := range map[string]string{
		"":    "a b c d e gone",
		"b":   "a b c",
		"c":   "a b c gone",
		"a":   "a b c d",
		"e":   "e",
		"d e": "a d e",
	} {
		if got := names(Of(all, time.Time{}, strings.Fields(wanted)...)); got != want {
			t.Errorf("of %q: %q, want %q", wanted, got, want)
		}
	}
}

func TestWhatDependsOnACycleIsOnNone(t *testing.T) {
	g := Of([]*v1alpha1.AddonsLayer{layer("hen", "egg"), layer("egg", "hen"), layer("cake", "egg"), layer("self", "self")}, time.Time{})
	for _, node := range g.Nodes {
		if node.Cycle != (node.Name != "cake") {
			t.Errorf("%s: cycle %v", node.Name, node.Cycle)
		}
	}
	columns := g.columns()
	if columns["hen"] != 0 || columns["egg"] != 0 || columns["cake"] != 1 {
		t.Errorf("columns %v", columns)
	}
}

// Whatever layers there are: the drawing does not depend on their order, nothing
// covers anything else, and the order goes from left to right.
func TestLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(0, 12).Draw(t, "layers")
		var all []*v1alpha1.AddonsLayer
		for i := range count {
			made := layer(fmt.Sprintf("l%d", i))
			for _, on := range rapid.SliceOfN(rapid.IntRange(0, 14), 0, 3).Draw(t, "dependsOn") {
				made.Spec.Prereqs.DependsOn = append(made.Spec.Prereqs.DependsOn, fmt.Sprintf("l%d", on))
			}
			if cluster := rapid.SampledFrom([]string{"", "eu", "us"}).Draw(t, "cluster"); cluster != "" {
				made.Spec.Cluster = &v1alpha1.ClusterReference{Name: cluster, Namespace: "fleet"}
			}
			all = append(all, made)
		}
		g := Of(all, time.Time{})
		l := g.lay()
		for i, a := range g.Nodes {
			at := l.spots[a.Name]
			if at.x < 0 || at.y < 0 || at.x+l.nodeWidth > l.width || at.y+nodeHeight > l.height {
				t.Fatalf("%s is outside the picture", a.Name)
			}
			for _, b := range g.Nodes[i+1:] {
				if other := l.spots[b.Name]; other.x == at.x && other.y < at.y+nodeHeight && at.y < other.y+nodeHeight {
					t.Fatalf("%s covers %s", a.Name, b.Name)
				}
			}
		}
		for _, edge := range g.Edges {
			if !edge.Cycle && l.spots[edge.DependsOn].x >= l.spots[edge.Layer].x {
				t.Fatalf("%s is not right of %s", edge.Layer, edge.DependsOn)
			}
		}
		shuffled := rapid.Permutation(all).Draw(t, "shuffled")
		again := Of(shuffled, time.Time{})
		if g.DOT() != again.DOT() || g.Mermaid() != again.Mermaid() || g.SVG() != again.SVG() {
			t.Fatal("the drawing depends on the order of the layers")
		}
	})
}

func TestMermaidHoldsNoMarkup(t *testing.T) {
	if got, want := mermaidText("a\"]; click n1 `x` <b>#é"), "a#34;#93;#59; click n1 #96;x#96; #60;b#62;#35;#233;"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// many returns as many layers as a large platform has, in a wide order.
func many(count int) []*v1alpha1.AddonsLayer {
	random := rand.New(rand.NewPCG(1, 2))
	var all []*v1alpha1.AddonsLayer
	for i := range count {
		made := layer(fmt.Sprintf("layer-%03d", i))
		for range 3 {
			if on := fmt.Sprintf("layer-%03d@^1.0", random.IntN(i+1)); i > 0 && !strings.HasPrefix(on, made.Name) && !slices.Contains(made.Spec.Prereqs.DependsOn, on) {
				made.Spec.Prereqs.DependsOn = append(made.Spec.Prereqs.DependsOn, on)
			}
		}
		all = append(all, made)
	}
	return all
}

func BenchmarkGraphOf200Layers(b *testing.B) {
	all := many(200)
	for b.Loop() {
		_ = Of(all, time.Time{}).SVG()
	}
}
