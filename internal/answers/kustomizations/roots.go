// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomizations

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/sources"
)

// Written is an object of a file that says what Flux applies.
type Written struct {
	File   string
	Object *unstructured.Unstructured
}

// Root is a Kustomization that Flux has without any other one that applies it.
type Root struct {
	// Object is the Kustomization.
	Object *unstructured.Unstructured
	// File that it stands in, or that says it.
	File string
	// Bootstrap is true for the one that applies Flux itself: it stays with Flux.
	Bootstrap bool
	// Patches are those of a FluxInstance that are for its Kustomization.
	Patches []kustomize.Patch
}

// Path returns the folder that the root applies, clean; "." is the whole source.
func (r Root) Path() string { return PathOf(r.Object) }

// PathOf returns the folder that a Kustomization applies, clean.
func PathOf(object *unstructured.Unstructured) string {
	applied, _, _ := unstructured.NestedString(object.Object, "spec", "path")
	return path.Clean(strings.TrimPrefix(path.Clean("/"+applied), "/"))
}

// IsWhole tells whether an object is a Kustomization that an API server would take. What
// lacks a field which every one has is a piece, of which kustomize makes others.
func IsWhole(object *unstructured.Unstructured) bool {
	if !IsKustomization(object) || object.GetName() == "" {
		return false
	}
	for _, field := range [][]string{{"interval"}, {"prune"}, {"sourceRef", "kind"}, {"sourceRef", "name"}} {
		if value, found, _ := unstructured.NestedFieldNoCopy(object.Object, append([]string{"spec"}, field...)...); !found || value == nil || value == "" {
			return false
		}
	}
	return true
}

// bootstrapFile is the file in which flux bootstrap writes its Kustomization.
const bootstrapFile = "gotk-sync.yaml"

// Begun returns the roots that a repository names: what flux bootstrap has written, and the
// sync of each FluxInstance, which may stand in values of its chart. They are in the order
// of their files.
func Begun(written []Written) []Root {
	var roots []Root
	for _, w := range written {
		switch {
		case IsWhole(w.Object) && isRoot(w):
			roots = append(roots, Root{Object: named(w.Object), File: w.File, Bootstrap: true})
		case IsKustomization(w.Object):
		default:
			if sync, patches := syncOf(w.Object); sync != nil {
				roots = append(roots, Root{Object: sync, File: w.File, Bootstrap: true, Patches: patches})
			}
		}
	}
	slices.SortStableFunc(roots, func(a, b Root) int { return cmp.Compare(a.File, b.File) })
	var different []Root
	for _, root := range roots {
		same := func(other Root) bool {
			return other.Path() == root.Path() && other.Object.GetName() == root.Object.GetName() && other.Object.GetNamespace() == root.Object.GetNamespace()
		}
		if !slices.ContainsFunc(different, same) {
			different = append(different, root)
		}
	}
	return different
}

// isRoot tells whether a Kustomization is that of flux bootstrap.
func isRoot(w Written) bool {
	source, _, _ := unstructured.NestedString(w.Object.Object, "spec", "sourceRef", "name")
	return path.Base(w.File) == bootstrapFile || w.Object.GetName() == bootstrap && source == bootstrap
}

// named returns a Kustomization with the namespace that Flux has it in.
func named(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	object.SetNamespace(cmp.Or(object.GetNamespace(), DefaultNamespace))
	return object
}

// DefaultNamespace is where a Kustomization is that no file says otherwise of.
const DefaultNamespace = bootstrap

// InstanceGroup is that of FluxInstances.
const InstanceGroup = "fluxcd.controlplane.io"

// syncOf returns the Kustomization that a FluxInstance has made of its sync, with the patches
// that are for it, or nil. The chart of FluxInstances has the same below instance in its
// values.
func syncOf(object *unstructured.Unstructured) (*unstructured.Unstructured, []kustomize.Patch) {
	var fields []string
	namespace := object.GetNamespace()
	switch gvk := object.GroupVersionKind(); {
	case gvk.Group == InstanceGroup && gvk.Kind == "FluxInstance":
		fields = []string{"spec"}
	case gvk.Kind == "HelmRelease":
		fields = []string{"spec", "values", "instance"}
	case gvk.Empty():
		fields = []string{"instance"}
	default:
		return nil, nil
	}
	spec, _, _ := unstructured.NestedMap(object.Object, fields...)
	sync, found, _ := unstructured.NestedMap(spec, "sync")
	kind, _ := sync["kind"].(string)
	url, _ := sync["url"].(string)
	applied, _ := sync["path"].(string)
	if !found || url == "" && applied == "" {
		return nil, nil
	}
	namespace = cmp.Or(namespace, DefaultNamespace)
	name, _ := sync["name"].(string)
	name = cmp.Or(name, namespace)
	return RootOf(namespace, name, cmp.Or(kind, sources.GitRepository), applied), patchesOfSync(spec)
}

// patchesOfSync returns the patches of a FluxInstance that may be for its Kustomization: all
// others are for the controllers.
func patchesOfSync(instance map[string]any) []kustomize.Patch {
	var of struct {
		Patches []kustomize.Patch `json:"patches"`
	}
	all, _, _ := unstructured.NestedMap(instance, "kustomize")
	if runtime.DefaultUnstructuredConverter.FromUnstructured(all, &of) != nil {
		return nil // no API server takes it
	}
	return slices.DeleteFunc(of.Patches, func(patch kustomize.Patch) bool {
		var text struct{ Kind string }
		if patch.Target == nil {
			_ = yaml.Unmarshal([]byte(patch.Patch), &text) // without a kind it is for nothing
		}
		kind := text.Kind
		if patch.Target != nil {
			kind = cmp.Or(patch.Target.Kind, kustomizationKind)
		}
		selects, err := regexp.Compile("^(?:" + kind + ")$")
		return err != nil || !selects.MatchString(kustomizationKind)
	})
}

// RootOf returns a Kustomization as Flux makes it of what is to be applied.
func RootOf(namespace, name, kind, applied string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1Version, "kind": kustomizationKind,
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec": map[string]any{
			"interval": "10m", "prune": true, "path": layerPath(applied),
			"sourceRef": map[string]any{"kind": kind, "name": name},
		},
	}}
}

// Appliable is a Kustomization of a file, and what it applies when it is as its file has it.
type Appliable struct {
	Written
	// Applies are the indices of those that are made of the files of its directory, and
	// Known is false where that could not be found out.
	Applies []int
	Known   bool
}

// Unbegun returns the indices of the Kustomizations that nothing of a repository applies,
// where it names no root. What lies in the directory of another, which does not list it, is
// out of service. Where each of a circle is applied by another one, the first begins.
func Unbegun(all []Appliable) []int {
	applied := map[int]bool{}
	for at, each := range all {
		for _, other := range each.Applies {
			applied[other] = applied[other] || other != at
		}
	}
	var roots []int
	for at, each := range all {
		if applied[at] {
			continue
		}
		isBelow := func(other Appliable) bool { return other.Known && IsBelow(each.File, PathOf(other.Object)) }
		stale := false
		for i, other := range all {
			stale = stale || i != at && isBelow(other)
		}
		if !stale {
			roots = append(roots, at)
		}
	}
	reached := map[int]bool{}
	var reach func(int)
	reach = func(at int) {
		if !reached[at] {
			reached[at] = true
			for _, other := range all[at].Applies {
				reach(other)
			}
		}
	}
	for _, at := range roots {
		reach(at)
	}
	for at := range all {
		if applied[at] && !reached[at] {
			roots = append(roots, at)
			reach(at)
		}
	}
	slices.Sort(roots)
	return roots
}

// IsBelow tells whether a file lies in a folder, both clean.
func IsBelow(file, folder string) bool {
	return folder == "." || strings.HasPrefix(file, folder+"/")
}

// Cluster is the roots of one cluster.
type Cluster struct {
	// Name of the cluster: that of its folder.
	Name string
	// Folder that its roots stand in, or that its root applies.
	Folder string
	Roots  []Root
}

// clustersFolder is what the folder is called that has one for each cluster.
const clustersFolder = "clusters"

// Clusters returns the clusters that roots belong to, sorted by their folders. Each root
// that a repository names is a cluster of its own. All others are of one, but where they are
// below different folders of one that is called clusters, or where two have the same name.
func Clusters(roots []Root) []Cluster {
	var clusters []Cluster
	var loose []Root
	for _, root := range roots {
		if !root.Bootstrap {
			loose = append(loose, root)
			continue
		}
		folder := root.Path()
		if folder == "." {
			folder = path.Dir(root.File)
		}
		clusters = append(clusters, Cluster{Folder: folder, Roots: []Root{root}})
	}
	parted := partings(loose)
	byFolder := map[string]*Cluster{}
	var folders []string
	for _, root := range loose {
		folder := folderOf(root.File, parted)
		if byFolder[folder] == nil {
			byFolder[folder] = &Cluster{Folder: folder}
			folders = append(folders, folder)
		}
		byFolder[folder].Roots = append(byFolder[folder].Roots, root)
	}
	for _, folder := range folders {
		clusters = append(clusters, *byFolder[folder])
	}
	slices.SortStableFunc(clusters, func(a, b Cluster) int { return cmp.Compare(a.Folder, b.Folder) })
	same := map[string]int{}
	for i := range clusters {
		same[path.Base(clusters[i].Folder)]++
	}
	for i := range clusters {
		clusters[i].Name = path.Base(clusters[i].Folder)
		if same[clusters[i].Name] > 1 || clusters[i].Name == "." {
			clusters[i].Name = clusters[i].Folder
		}
	}
	return clusters
}

// partings returns the folders of which each folder below is another cluster.
func partings(roots []Root) []string {
	var parted []string
	below := map[string]map[string]bool{}
	for at, root := range roots {
		parts := strings.Split(path.Dir(root.File), "/")
		if i := slices.Index(parts, clustersFolder); i >= 0 && i+1 < len(parts) {
			folder := strings.Join(parts[:i+1], "/")
			if below[folder] == nil {
				below[folder] = map[string]bool{}
			}
			below[folder][parts[i+1]] = true
		}
		for _, other := range roots[:at] {
			if other.Object.GetName() == root.Object.GetName() && other.Object.GetNamespace() == root.Object.GetNamespace() {
				parted = append(parted, common(path.Dir(root.File), path.Dir(other.File)))
			}
		}
	}
	for folder, names := range below {
		if len(names) > 1 {
			parted = append(parted, folder)
		}
	}
	slices.Sort(parted)
	return slices.Compact(parted)
}

// common returns the folder that two folders lie in.
func common(a, b string) string {
	left, right := strings.Split(a, "/"), strings.Split(b, "/")
	n := 0
	for n < len(left) && n < len(right) && left[n] == right[n] {
		n++
	}
	return cmp.Or(strings.Join(left[:n], "/"), ".")
}

// folderOf returns the folder of a cluster that a file belongs to: below the deepest folder
// that parts clusters. Without any, all is one cluster, that of the top.
func folderOf(file string, parted []string) string {
	found := "."
	for _, folder := range parted {
		if dir := path.Dir(file); IsBelow(dir, folder) && dir != folder {
			rest := strings.TrimPrefix(strings.TrimPrefix(dir, folder), "/")
			if folder == "." {
				rest = dir
			}
			first, _, _ := strings.Cut(rest, "/")
			if next := path.Join(folder, first); len(next) >= len(found) {
				found = next
			}
		}
	}
	return found
}
