// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
)

// TestContract compares with reachability over all names: what is there is reached
// from what is there, directly or not, exactly as before, and nothing else is named.
func TestContract(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "n")
		edges, there := map[string][]string{}, map[string]bool{}
		name := func(i int) string { return string(rune('a' + i)) }
		for i := range n {
			there[name(i)] = rapid.Bool().Draw(t, "there")
			for j := range i {
				if rapid.IntRange(0, 2).Draw(t, "edge") == 0 {
					edges[name(i)] = append(edges[name(i)], name(j))
				}
			}
		}
		contracted := map[string][]string{}
		for i := range n {
			if there[name(i)] {
				contracted[name(i)] = contract(name(i), edges, func(s string) bool { return there[s] })
			}
		}
		for from := range contracted {
			for _, to := range contracted[from] {
				if !there[to] {
					t.Fatalf("%s leads to %s, which is not there", from, to)
				}
			}
			for i := range n {
				if to := name(i); there[to] && reaches(edges, from, to) != reaches(contracted, from, to) {
					t.Fatalf("that %s leads to %s is %v after contraction", from, to, reaches(contracted, from, to))
				}
			}
		}
	})
}

func reaches(edges map[string][]string, from, to string) bool {
	return slices.ContainsFunc(edges[from], func(next string) bool { return next == to || reaches(edges, next, to) })
}

// drawn is a platform of a family of versions that follow each other.
type drawn struct {
	*world
	versions []string
	// wanted says which layers a version has where input on is true or false.
	wanted map[string]map[bool][]string
	on     bool
}

func drawWorld(t *rapid.T) *drawn {
	d := &drawn{wanted: map[string]map[bool][]string{}, on: rapid.Bool().Draw(t, "on")}
	var all []*v1alpha1.ApplicationBundle
	for i := range rapid.IntRange(1, 4).Draw(t, "versions") {
		version, from := fmt.Sprintf("1.%d.0", i), ""
		if i > 0 {
			from = fmt.Sprintf("1.%d.x", i-1)
		}
		d.versions = append(d.versions, version)
		d.wanted[version] = map[bool][]string{}
		b := bundle(version, from)
		for k, name := range []string{"a", "b", "c", "d", "e"} {
			if k > 0 && rapid.IntRange(0, 3).Draw(t, "lacks") == 0 {
				continue
			}
			layer := v1alpha1.BundleLayer{Name: name, Applications: []v1alpha1.BundleApplication{{Name: name, Application: "app", Version: "1.0.0"}}}
			for _, other := range b.Spec.Layers {
				if rapid.Bool().Draw(t, "depends") {
					layer.DependsOn = append(layer.DependsOn, other.Name)
				}
			}
			layer.When = rapid.SampledFrom([]string{"", "", "inputs.on", "!inputs.on"}).Draw(t, "when")
			b.Spec.Layers = append(b.Spec.Layers, layer)
			for _, on := range []bool{true, false} {
				if layer.When == "" || layer.When == "inputs.on" && on || layer.When == "!inputs.on" && !on {
					d.wanted[version][on] = append(d.wanted[version][on], name)
				}
			}
		}
		all = append(all, withInputs(b, v1alpha1.BundleInput{Name: "on", Type: v1alpha1.InputBoolean, Required: true}))
	}
	p := platform("p", d.versions[0], inputs(fmt.Sprintf(`{"on": %v}`, d.on)))
	d.world = newWorld(p, all...)
	d.Catalogue["shop"] = application("shop", "1.0.0 db@1.x")
	d.Catalogue["db"] = application("db", "1.0.0", "1.1.0")
	if rapid.Bool().Draw(t, "picks") {
		p.Spec.Applications = []v1alpha1.PlatformApplication{{Name: "shop"}}
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "clusters") {
		name := fmt.Sprintf("c%d", i)
		d.cluster(name, map[string]string{"ring": rapid.SampledFrom([]string{"first", "second"}).Draw(t, "ring")})
		on(name)(p)
	}
	drawRollout(t, p)
	return d
}

func drawRollout(t *rapid.T, p *v1alpha1.Platform) {
	p.Spec.Rollout.StageInputs = rapid.Bool().Draw(t, "stageInputs")
	if rapid.Bool().Draw(t, "stages") {
		soak := metav1.Duration{Duration: time.Hour}
		p.Spec.Rollout.Stages = []v1alpha1.RolloutStage{{
			Name: "first", Soak: &soak, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"ring": "first"}},
			MaxUnavailable: &intstr.IntOrString{Type: intstr.String, StrVal: "50%"},
		}}
	}
	if rapid.Bool().Draw(t, "windows") {
		p.Spec.Upgrade.MaintenanceWindows = []v1alpha1.UpgradeWindow{{Start: "22:00", Duration: metav1.Duration{Duration: 2 * time.Hour}}}
	}
	if rapid.Bool().Draw(t, "spread") {
		p.Spec.Upgrade.Spread = &metav1.Duration{Duration: time.Hour}
	}
}

// expected returns the names that the layers are to have in the end.
func (d *drawn) expected(version string) string {
	var names []string
	for _, target := range Targets(d.Observation) {
		for _, layer := range d.wanted[version][d.on] {
			names = append(names, layerName("p", target, layer)+"@"+version)
		}
		if lock := d.Platform.Status.Lock; lock != nil {
			i := slices.IndexFunc(d.Bundles, func(b *v1alpha1.ApplicationBundle) bool { return b.Name == lock.Bundle })
			names = append(names, layerName("p", target, "picked.applications")+"@"+d.Bundles[i].Spec.Version)
		}
	}
	return strings.Join(sorted(names), " ")
}

// neverBack fails where a cluster is taken to an older version, or past one that must
// be deployed in between.
func (d *drawn) neverBack(t *rapid.T, was, is []*v1alpha1.AddonsLayer) {
	at := map[string]*v1alpha1.AddonsLayer{}
	for _, layer := range was {
		at[layer.Name] = layer
	}
	for _, layer := range is {
		before := at[layer.Name]
		if before == nil || strings.Contains(layer.Name, "picked.") {
			continue
		}
		from, to := slices.Index(d.versions, before.Spec.Version), slices.Index(d.versions, layer.Spec.Version)
		switch {
		case to < from || to > from+1:
			t.Fatalf("%s goes from %s to %s", layer.Name, before.Spec.Version, layer.Spec.Version)
		case to > from:
			for _, other := range was {
				if other.Labels[v1alpha1.PlatformClusterLabel] == layer.Labels[v1alpha1.PlatformClusterLabel] &&
					!strings.Contains(other.Name, "picked.") && other.DeletionTimestamp == nil && !isDeployed(other) {
					t.Fatalf("%s is moved although %s is not deployed", layer.Name, other.Name)
				}
			}
		}
	}
}

// fixed fails where a second look would do something although nothing has happened.
func (d *drawn) fixed(t *rapid.T) {
	var before []*v1alpha1.AddonsLayer
	for _, layer := range d.Layers {
		before = append(before, layer.DeepCopy())
	}
	again := Decide(d.Observation)
	if !equality.Semantic.DeepEqual(before, d.Layers) {
		t.Fatal("what was observed is changed")
	}
	if len(again.Write)+len(again.Delete)+len(again.Bundles)+len(again.DeleteBundles) > 0 || again.StatusFirst {
		t.Fatalf("the same decision is made again: %d writes, %d deletions", len(again.Write), len(again.Delete))
	}
	reversed := d.Observation
	reversed.Layers, reversed.Bundles = slices.Clone(d.Layers), slices.Clone(d.Bundles)
	slices.Reverse(reversed.Layers)
	slices.Reverse(reversed.Bundles)
	if diff := cmp.Diff(again, Decide(reversed)); diff != "" {
		t.Fatalf("the order of the input matters: %s", diff)
	}
}

func TestPlatformsComeToTheirTarget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawWorld(t)
		d.run(t, d.versions[0])
		target := rapid.SampledFrom(d.versions).Draw(t, "target")
		d.Platform.Spec.Bundle.Version = target
		d.run(t, target)
		if rapid.Bool().Draw(t, "switches") {
			d.on = !d.on
			inputs(fmt.Sprintf(`{"on": %v}`, d.on))(d.Platform)
			d.run(t, target)
		}
		d.Platform.DeletionTimestamp = &metav1.Time{Time: d.Now}
		d.Bundles, d.Catalogue = nil, nil
		for range 100 {
			if d.apply(t).Gone {
				break
			}
			d.engine()
		}
		if len(d.Layers) > 0 {
			t.Fatalf("of a platform that was deleted there still are %s", d.names())
		}
	})
}

// run lets everything happen until nothing does any more, and looks for what is to
// come of it.
func (d *drawn) run(t *rapid.T, version string) {
	last := Decision{}
	for quiet := 0; quiet < 10; {
		was := d.Layers
		last = d.apply(t)
		d.neverBack(t, was, d.Layers)
		d.fixed(t)
		if moved := d.engine(); moved || len(last.Write)+len(last.Delete) > 0 {
			quiet = 0
			d.Now = d.Now.Add(time.Second)
			continue
		}
		quiet++
		if d.Now = d.Now.Add(time.Second); last.Until.After(d.Now) {
			d.Now = last.Until
		}
	}
	if got, want := d.names(), d.expected(version); got != want {
		t.Fatalf("the layers are\n%s, not\n%s: %s %s", got, want, conditionsOf(last.Status), said(last.Status))
	}
	if got := conditionsOf(last.Status); got != installed {
		t.Fatalf("the conditions are %s: %s", got, said(last.Status))
	}
	if got := last.Status.Clusters; got.Ready != got.Total {
		t.Fatalf("clusters: %+v", got)
	}
}

func TestNamesAreApart(t *testing.T) {
	part := rapid.StringMatching(`[a-z]{1,2}(-[a-z]{1,2}){0,2}`)
	long := rapid.StringMatching(`[a-z]{20,40}`)
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.SampledFrom([]*rapid.Generator[string]{part, long}).Draw(t, "parts")
		draw := func() (types.NamespacedName, string) {
			return types.NamespacedName{Namespace: of.Draw(t, "namespace"), Name: of.Draw(t, "name")}, of.Draw(t, "layer")
		}
		a, layerA := draw()
		b, layerB := draw()
		same := a == b && layerA == layerB
		nameA, nameB := layerNames("p-q", a, layerA)[2], layerNames("p-q", b, layerB)[2]
		if (nameA == nameB) != same || len(nameA) > maxLabel || clusterValue(a) == "" {
			t.Fatalf("%v %s: %s, %v %s: %s", a, layerA, nameA, b, layerB, nameB)
		}
		if (clusterValue(a) == clusterValue(b)) != (a == b) || len(clusterValue(a)) > maxLabel {
			t.Fatalf("%s and %s", clusterValue(a), clusterValue(b))
		}
		if (instanceOf("p-q", a) == instanceOf("p-q", b)) != (a == b) || len(instanceOf("p-q", a)) > maxLabel {
			t.Fatalf("%s and %s", instanceOf("p-q", a), instanceOf("p-q", b))
		}
	})
}
