// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomizations

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	"k8s.io/apimachinery/pkg/types"
)

// Found is a Kustomization as it was found.
type Found struct {
	*kustomizev1.Kustomization
	// File that it stands in; empty on a cluster.
	File string
	// Version of the API that it is written for; empty for v1.
	Version string
	// Root is true for the one that applies Flux itself, whatever its name.
	Root bool
	// Parent is the Kustomization that applies it; empty for none.
	Parent types.NamespacedName
	// Applies lists the Kustomizations that its directory has, itself included.
	Applies []types.NamespacedName
	// Missing is true where its source has no such directory.
	Missing bool
	// Generator is the ArtifactGenerator that makes its source; empty for none.
	Generator string
	// Others is how many objects it applies that are no Kustomizations; -1 where that is
	// not known.
	Others int
}

// Name returns how the Kustomization is named.
func (f Found) key() types.NamespacedName {
	return types.NamespacedName{Namespace: f.Namespace, Name: f.Name}
}

// bootstrap is the Kustomization that flux bootstrap makes, which applies Flux itself.
const bootstrap = "flux-system"

// Options are what else is said about Kustomizations that become layers. The zero value says
// nothing.
type Options struct {
	// Handed holds the layers that were made of Kustomizations which are gone: what they
	// are to the others does not change.
	Handed map[types.NamespacedName]string
	// Account is that of Kustomizations which name none.
	Account DefaultAccount
	// SopsSecret names the Secret of keys for decryption that names none; empty refuses it.
	SopsSecret string
	// Reserved lists the accounts that no layer may name.
	Reserved []string
}

// Convert makes layers of all Kustomizations that were found, sorted by name. One that
// applies nothing but other Kustomizations needs no layer; others depend on the one that
// applies them, where that waits for nothing that they bring. A layer leaves out each
// Kustomization that has a layer of its own.
func Convert(all []Found, with Options) []Conversion {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Found) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Namespace, b.Namespace))
	})
	t := treeOf(all, with.Handed)
	made := make([]Conversion, 0, len(all))
	for _, each := range all {
		children := t.childrenOf(each.key())
		var c Conversion
		switch {
		case isBootstrap(each):
			c = Conversion{Of: each.key()}
			c.note("spec.path: it applies Flux itself: leave it with kustomize-controller")
		case !t.isLayer(each):
			c = Conversion{Of: each.key(), Empty: true}
			c.note("spec.path: %s, and nothing else: no layer is needed", withLayers(len(children)))
		default:
			c = t.convert(each.Kustomization, with)
			c.leaveOut(each, t)
			if each.Generator != "" {
				c.note("spec.sourceRef: ArtifactGenerator %s makes the artifact %s, which is not in the repository: "+
					"give its files by --source %[2]s=FOLDER", each.Generator, each.Spec.SourceRef.Name)
			}
		}
		if each.Missing && !strings.Contains(each.Spec.Path, "${") {
			c.problem("spec.path: the repository has no %s", layerPath(each.Spec.Path))
		}
		c.Missing = each.Missing
		if each.Version != "" {
			c.note("apiVersion: %s is read as Flux migrates it to v1", each.Version)
		}
		c.File, c.Parent = each.File, each.Parent
		made = append(made, c)
	}
	t.dependOnParents(all, made)
	return made
}

func isBootstrap(f Found) bool {
	return f.Root || f.Name == bootstrap && f.Namespace == bootstrap && f.Spec.SourceRef.Name == bootstrap
}

// tree is what is known of all Kustomizations together.
type tree struct {
	// names of layers, by Kustomization.
	names map[types.NamespacedName]string
	byKey map[types.NamespacedName]Found
	// children are the other Kustomizations that one applies.
	children map[types.NamespacedName][]types.NamespacedName
}

func treeOf(all []Found, handed map[types.NamespacedName]string) *tree {
	t := &tree{byKey: map[types.NamespacedName]Found{}, children: map[types.NamespacedName][]types.NamespacedName{}}
	add := func(parent, child types.NamespacedName) {
		if parent.Name != "" && parent != child && !slices.Contains(t.children[parent], child) {
			t.children[parent] = append(t.children[parent], child)
		}
	}
	for _, each := range all {
		t.byKey[each.key()] = each
		add(each.Parent, each.key())
		for _, child := range each.Applies {
			add(each.key(), child)
		}
	}
	t.names = layerNames(slices.DeleteFunc(slices.Clone(all), func(f Found) bool { return !t.isLayer(f) }), handed)
	return t
}

// isLayer tells whether a Kustomization becomes a layer.
func (t *tree) isLayer(f Found) bool {
	return !isBootstrap(f) && (len(t.children[f.key()]) == 0 || f.Others != 0)
}

// childrenOf returns the Kustomizations that one applies, and that were found or handed
// over: they have layers, or need none.
func (t *tree) childrenOf(of types.NamespacedName) []types.NamespacedName {
	var known []types.NamespacedName
	for _, child := range t.children[of] {
		if _, found := t.byKey[child]; found || t.names[child] != "" {
			known = append(known, child)
		}
	}
	return known
}

// waitsFor returns the layers that are deployed when a Kustomization of Flux is ready: its
// own, and, where it waits for what it applies, those of the Kustomizations among that.
func (t *tree) waitsFor(of types.NamespacedName) []string {
	var names []string
	seen := map[types.NamespacedName]bool{}
	var visit func(types.NamespacedName)
	visit = func(key types.NamespacedName) {
		if seen[key] {
			return
		}
		seen[key] = true
		if name := t.names[key]; name != "" {
			names = append(names, name)
		}
		found, known := t.byKey[key]
		if !known {
			return
		}
		for _, child := range t.childrenOf(key) {
			if found.Spec.Wait || slices.ContainsFunc(checksOf(found.Kustomization), func(checked types.NamespacedName) bool { return checked == child }) {
				visit(child)
			}
		}
	}
	visit(of)
	return names
}

// checksOf returns the Kustomizations whose health a Kustomization waits for.
func checksOf(k *kustomizev1.Kustomization) []types.NamespacedName {
	var checked []types.NamespacedName
	for _, check := range k.Spec.HealthChecks {
		if check.Kind == kustomizationKind {
			checked = append(checked, types.NamespacedName{Namespace: cmp.Or(check.Namespace, k.Namespace), Name: check.Name})
		}
	}
	return checked
}

// leaveOut has a layer leave out the Kustomizations that have layers of their own, or need
// none. All others stay with it.
func (c *Conversion) leaveOut(of Found, t *tree) {
	var out, stay []types.NamespacedName
	for _, key := range of.Applies {
		if _, found := t.byKey[key]; found || t.names[key] != "" {
			out = append(out, key)
		} else {
			stay = append(stay, key)
		}
	}
	for _, key := range t.childrenOf(of.key()) {
		if !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	if len(out) == 0 {
		return
	}
	target := &kustomize.Selector{Group: kustomizev1.GroupVersion.Group, Kind: kustomizationKind}
	if len(stay) > 0 {
		names := make([]string, 0, len(out))
		for _, key := range out {
			names = append(names, regexp.QuoteMeta(key.Name))
		}
		target.Name = strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), "|")
	}
	c.Layer.Spec.Patches = append(c.Layer.Spec.Patches, kustomize.Patch{
		Patch:  fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: any\n$patch: delete\n", kustomizev1.GroupVersion, kustomizationKind),
		Target: target,
	})
	if len(out) == 1 && out[0] == of.key() {
		c.note("spec.path: it applies itself, and a patch leaves that out")
		return
	}
	c.note("spec.path: %s, and a patch leaves it out", withLayers(len(out)))
}

// dependOnParents has layers wait for the one whose Kustomization applies their own, as Flux
// makes that first. It is left out where that would wait for them: for what it applies to be
// ready, which they may bring, or by its dependencies.
func (t *tree) dependOnParents(all []Found, made []Conversion) {
	byName := map[string]*Conversion{}
	for i := range made {
		if made[i].Layer != nil {
			byName[made[i].Layer.Name] = &made[i]
		}
	}
	for i := range made {
		if made[i].Layer == nil {
			continue
		}
		parent := t.byKey[all[i].key()].Parent
		for steps := 0; parent.Name != "" && t.names[parent] == "" && steps < len(all); steps++ {
			parent = t.byKey[parent].Parent
		}
		name := t.names[parent]
		found, known := t.byKey[parent]
		switch {
		case name == "" || name == made[i].Layer.Name || slices.Contains(made[i].Layer.Spec.Prereqs.DependsOn, name):
		case known && (found.Spec.Wait || len(found.Spec.HealthChecks) > 0):
		case waits(byName, name, made[i].Layer.Name):
		default:
			made[i].Layer.Spec.Prereqs.DependsOn = append(made[i].Layer.Spec.Prereqs.DependsOn, name)
		}
	}
}

// waits tells whether a layer waits for another one, by whatever is between.
func waits(byName map[string]*Conversion, of, other string) bool {
	seen := map[string]bool{}
	var visit func(string) bool
	visit = func(name string) bool {
		if name == other {
			return true
		}
		if seen[name] || byName[name] == nil {
			return false
		}
		seen[name] = true
		return slices.ContainsFunc(byName[name].Layer.Spec.Prereqs.DependsOn, visit)
	}
	return visit(of)
}

func withLayers(n int) string {
	if n == 1 {
		return "it applies a Kustomization that has its own layer"
	}
	return fmt.Sprintf("it applies %d Kustomizations that have their own layers", n)
}

// layerNames returns names of layers, which are those of a cluster: the Kustomization's
// own, with its namespace only where two have the same.
func layerNames(all []Found, handed map[types.NamespacedName]string) map[types.NamespacedName]string {
	same := map[string]int{}
	names := maps.Clone(handed)
	if names == nil {
		names = map[types.NamespacedName]string{}
	}
	for key := range names {
		same[key.Name]++
	}
	for _, each := range all {
		if _, known := names[each.key()]; !known {
			same[each.Name]++
		}
	}
	for _, each := range all {
		if _, known := names[each.key()]; known {
			continue // it was begun
		}
		names[each.key()] = each.Name
		if same[each.Name] > 1 {
			names[each.key()] = each.Namespace + "-" + each.Name
		}
	}
	return names
}
