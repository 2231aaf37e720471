// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomizations

import (
	"cmp"
	"fmt"
	"maps"
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
	// Parent is the Kustomization that applies it; empty for none.
	Parent types.NamespacedName
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

// Convert makes layers of all Kustomizations that were found, sorted by name. One that
// applies nothing but other Kustomizations needs no layer; others depend on the one that
// applies them, which leaves out what has a layer of its own. handed holds the layers that
// were made of Kustomizations which are gone: what they are to the others does not change.
// account is that of Kustomizations which name none.
func Convert(all []Found, handed map[types.NamespacedName]string, account DefaultAccount) []Conversion {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Found) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Namespace, b.Namespace))
	})
	children := map[types.NamespacedName]int{}
	for _, each := range all {
		if each.Parent.Name != "" {
			children[each.Parent]++
		}
	}
	isLayer := func(f Found) bool {
		return !isBootstrap(f) && (children[f.key()] == 0 || f.Others != 0)
	}
	names := layerNames(slices.DeleteFunc(slices.Clone(all), func(f Found) bool { return !isLayer(f) }), handed)
	parents := map[types.NamespacedName]types.NamespacedName{}
	for _, each := range all {
		parents[each.key()] = each.Parent
	}
	made := make([]Conversion, 0, len(all))
	for _, each := range all {
		var c Conversion
		switch {
		case isBootstrap(each):
			c = Conversion{Of: each.key()}
			c.note("spec.path: it applies Flux itself: leave it with kustomize-controller")
		case !isLayer(each):
			c = Conversion{Of: each.key(), Empty: true}
			c.note("spec.path: %s, and nothing else: no layer is needed", withLayers(children[each.key()]))
		default:
			c = convert(each.Kustomization, names, account)
			c.tree(each, names, parents, children[each.key()])
		}
		c.File, c.Parent = each.File, each.Parent
		made = append(made, c)
	}
	return made
}

func isBootstrap(f Found) bool {
	return f.Name == bootstrap && f.Namespace == bootstrap && f.Spec.SourceRef.Name == bootstrap
}

// tree has a layer wait for the one whose Kustomization applies its own, and leave out the
// Kustomizations that it applies itself.
func (c *Conversion) tree(of Found, names map[types.NamespacedName]string, parents map[types.NamespacedName]types.NamespacedName, children int) {
	parent := of.Parent
	for steps := 0; parent.Name != "" && names[parent] == "" && steps < len(parents); steps++ {
		parent = parents[parent]
	}
	if name := names[parent]; name != "" && name != c.Layer.Name && !slices.Contains(c.Layer.Spec.Prereqs.DependsOn, name) {
		c.Layer.Spec.Prereqs.DependsOn = append(c.Layer.Spec.Prereqs.DependsOn, name)
	}
	if children == 0 {
		return
	}
	c.Layer.Spec.Patches = append(c.Layer.Spec.Patches, kustomize.Patch{
		Patch:  fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: any\n$patch: delete\n", kustomizev1.GroupVersion, kustomizev1.KustomizationKind),
		Target: &kustomize.Selector{Group: kustomizev1.GroupVersion.Group, Kind: kustomizev1.KustomizationKind},
	})
	c.note("spec.path: %s, and a patch leaves it out", withLayers(children))
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
