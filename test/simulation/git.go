// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/layers"
)

// namespace is that of all releases and sources at home, and fleet that of
// RemoteClusters and what is put beside them.
const (
	namespace = "addons"
	fleet     = "fleet"
)

// quality is how a release fares that is installed as its file says.
type quality int

const (
	good quality = iota
	// fails is what helm-controller cannot install, until it is changed.
	fails
	// refused is what the API server does not take.
	refused
)

// file is one release of a folder, one ConfigMap, or one Namespace.
type file struct {
	name string
	// plain says that it is a ConfigMap, or a Namespace where space does.
	plain, space bool
	// helm is the Helm release that it stands for.
	helm    string
	value   int64
	quality quality
	// after is a release of the same folder that it depends on.
	after string
	// reads is a ConfigMap of the same folder that has values for it.
	reads string
	// tells says that the layer's version is one of its values.
	tells bool
}

// folder is the directory of a layer at one commit.
type folder struct {
	files []file
	// broken has a mistake in a file, and missing is no folder at all.
	broken, missing bool
}

func (f folder) find(name string) int {
	return slices.IndexFunc(f.files, func(f file) bool { return f.name == name })
}

// clone returns a copy that may be changed.
func (f folder) clone() folder {
	f.files = slices.Clone(f.files)
	return f
}

// repository is a git repository, its head only.
type repository struct {
	name    string
	number  int
	folders map[string]folder
	// commits holds what each revision holds.
	commits map[string]map[string]folder
}

func newRepository(name string) *repository {
	return &repository{name: name, folders: map[string]folder{}, commits: map[string]map[string]folder{}}
}

func (r *repository) revision() string { return fmt.Sprintf("%s@sha1:%04d", r.name, r.number) }

// commit makes the head a revision.
func (r *repository) commit() {
	r.number++
	r.commits[r.revision()] = maps.Clone(r.folders)
}

// pathOf returns the path of a layer's folder.
func pathOf(layer string) string { return "./" + layer }

// contents holds what repositories hold for layers at revisions, each read once.
type contents map[content]*directories.Directory

// content names what a revision holds for a layer.
type content struct{ layer, revision string }

// directory returns what a revision holds for a layer.
func (c contents) directory(f folder, layer, revision string) (*directories.Directory, error) {
	if f.broken {
		return nil, &directories.ContentError{Reason: v1alpha1.ReasonInvalidManifest, File: layer + "/broken.yaml", Line: 3, Message: "cannot be read"}
	}
	if known := c[content{layer, revision}]; known != nil {
		return known, nil
	}
	sum := sha256.New()
	directory := &directories.Directory{Revision: revision, Missing: f.missing}
	files := slices.SortedFunc(slices.Values(f.files), func(a, b file) int { return strings.Compare(a.name, b.name) })
	for _, file := range files {
		fmt.Fprintf(sum, "%+v;", file)
		directory.Manifests = append(directory.Manifests, directories.Manifest{File: layer + "/" + file.name + ".yaml", Line: 1, Object: manifestOf(file)})
	}
	directory.Digest = "sha256:" + hex.EncodeToString(sum.Sum(nil)[:8])
	c[content{layer, revision}] = directory
	return directory, nil
}

func manifestOf(f file) *unstructured.Unstructured {
	if f.plain {
		kind, metadata := "ConfigMap", map[string]any{"namespace": namespace, "name": f.name}
		if f.space {
			// The directory says that it may go, and lies about who has created it.
			kind, metadata = "Namespace", map[string]any{"name": f.name, "annotations": map[string]any{
				v1alpha1.PruneAnnotation: "enabled", v1alpha1.CreatedForAnnotation: "l0",
			}}
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": metadata,
			"data": map[string]any{"value": strconv.FormatInt(f.value, 10), "quality": strconv.Itoa(int(f.quality))},
		}}
	}
	spec := map[string]any{
		"releaseName": f.helm,
		"values":      map[string]any{"value": f.value, "quality": int64(f.quality)},
	}
	if f.after != "" {
		spec["dependsOn"] = []any{map[string]any{"name": f.after}}
	}
	if f.reads != "" {
		spec["valuesFrom"] = []any{map[string]any{"kind": "ConfigMap", "name": f.reads}}
	}
	metadata := map[string]any{"namespace": namespace, "name": f.name}
	if f.tells {
		metadata["annotations"] = map[string]any{v1alpha1.UpdateVersionAnnotation: "true"}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": metadata, "spec": spec,
	}}
}

// helmOf returns the Helm release that a release stands for, by its cluster and
// its name; empty for another object.
func helmOf(release *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(release.Object, "spec", "releaseName")
	return helmOn(layers.TargetOf(release), name)
}

// helmOn names a Helm release of a cluster.
func helmOn(cluster, name string) string {
	if cluster == "" || name == "" {
		return name
	}
	return cluster + ":" + name
}

func valueOf(obj *unstructured.Unstructured, field string) int64 {
	if text, found, _ := unstructured.NestedString(obj.Object, "data", field); found {
		value, _ := strconv.ParseInt(text, 10, 64)
		return value
	}
	value, _, _ := unstructured.NestedInt64(obj.Object, "spec", "values", field)
	return value
}

func isSuspended(release *unstructured.Unstructured) bool {
	suspended, _, _ := unstructured.NestedBool(release.Object, "spec", "suspend")
	return suspended
}
