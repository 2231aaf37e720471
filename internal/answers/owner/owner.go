// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package owner says which layer has an object, from which file, and who else seems to
// have it. It may import snapshot and releases, and reads nothing but objects that it
// is given.
package owner

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/releases"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/sources"
)

// Owned is an object between the one that is asked about and the layer.
type Owned struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Version of the chart of a HelmRelease, or of a layer.
	Version string `json:"version,omitempty"`
}

// Answer says who has an object. No list is nil.
type Answer struct {
	// Owned is true where a layer has the object.
	Owned bool `json:"owned"`
	// Chain begins with the object; each is owned by the one behind it.
	Chain []Owned `json:"chain"`
	Layer string  `json:"layer,omitempty"`
	// File that lists the object, or the HelmRelease that made it, below the root of
	// the source.
	File     string `json:"file,omitempty"`
	Source   string `json:"source,omitempty"`
	Revision string `json:"revision,omitempty"`
	Bundle   string `json:"bundle,omitempty"`
	Platform string `json:"platform,omitempty"`
	// Others says who else seems to have the object.
	Others []string `json:"others"`
}

// Of says who has an object, from the object itself and what owns it by
// ownerReferences, in that order.
func Of(s *snapshot.Snapshot, objs []*unstructured.Unstructured) Answer {
	found := Answer{Chain: []Owned{}, Others: []string{}}
	for _, object := range objs {
		found.Chain = append(found.Chain, Owned{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()})
	}
	top := objs[len(objs)-1]
	id := objects.IDOf(top)
	if id.Group == v1alpha1.GroupVersion.Group && id.Kind == v1alpha1.AddonsLayerKind {
		found.Chain = found.Chain[:len(found.Chain)-1]
		found.ofLayer(s, top.GetName(), objects.ID{})
		return found
	}
	if !objects.IsReleaseKind(id.GroupKind()) {
		if release, others := releaseThatMade(s, top); release != nil {
			top, id = release, objects.IDOf(release)
			found.Chain = append(found.Chain, Owned{Kind: id.Kind, Namespace: id.Namespace, Name: id.Name})
		} else {
			found.Others = append(found.Others, others...)
		}
	}
	if release := s.Objects[id]; release != nil && objects.IsReleaseKind(id.GroupKind()) {
		found.Chain[len(found.Chain)-1].Version = releases.ChartVersion(release)
	}
	found.ofLayer(s, layerThatHas(s, top, id), id)
	if !found.Owned {
		found.Others = append(found.Others, foreign(top)...)
	}
	slices.Sort(found.Others)
	found.Others = slices.Compact(found.Others)
	return found
}

// ofLayer adds a layer, and where that comes from.
func (o *Answer) ofLayer(s *snapshot.Snapshot, name string, id objects.ID) {
	layer := s.Layer(name)
	if layer == nil {
		if name != "" {
			o.Others = append(o.Others, "layer "+name+", which does not exist")
		}
		return
	}
	o.Owned, o.Layer, o.Revision = true, name, layer.Status.Revision
	o.Chain = append(o.Chain, Owned{Kind: v1alpha1.AddonsLayerKind, Name: name, Version: cmp.Or(layer.Status.Version, layer.Spec.Version)})
	o.Platform = layer.Labels[v1alpha1.PlatformLabel]
	ref := sources.Of(layer, "")
	if sources.IsOfBundle(layer) {
		o.Bundle = ref.Name
	}
	o.Source, o.File = ref.Kind+" "+snapshot.Named(ref.Namespace, ref.Name), layer.Spec.Source.Path
	for _, entry := range layers.Inventory(layer.Status.Resources, nil) {
		if entry.ID.On("") == id && entry.Origin != "" {
			o.File = "./" + path.Join(layer.Spec.Source.Path, entry.Origin)
		}
	}
}

// layerThatHas returns the name of the layer that lists an object, or that its label
// names; empty for none.
func layerThatHas(s *snapshot.Snapshot, object *unstructured.Unstructured, id objects.ID) string {
	labelled := object.GetLabels()[v1alpha1.LayerLabel]
	lists := func(layer *v1alpha1.AddonsLayer) bool {
		return slices.ContainsFunc(layers.Inventory(layer.Status.Resources, nil), func(entry dependents.Entry) bool { return entry.ID == id })
	}
	if layer := s.Layer(labelled); layer != nil && lists(layer) {
		return labelled
	}
	for _, layer := range s.Layers {
		if labelled == "" && lists(layer) {
			return layer.Name
		}
	}
	return labelled
}

// releaseThatMade returns the HelmRelease that made an object: by the inventories,
// by Flux's labels, or by Helm's annotations. Without one it says which release of
// Helm's it is of.
func releaseThatMade(s *snapshot.Snapshot, object *unstructured.Unstructured) (release *unstructured.Unstructured, others []string) {
	id, labels, annotations := objects.IDOf(object), object.GetLabels(), object.GetAnnotations()
	all := s.Of(snapshot.Releases)
	for _, candidate := range all {
		if !releases.IsElsewhere(candidate) && slices.ContainsFunc(releases.Inventory(candidate), func(made releases.Made) bool { return made.ID == id }) {
			return candidate, nil
		}
	}
	if name := labels[releases.NameLabel]; name != "" {
		namespace := labels[releases.NamespaceLabel]
		if release := releases.Named(s, namespace, name); release != nil {
			return release, nil
		}
		others = append(others, "HelmRelease "+snapshot.Named(namespace, name)+", which is not there or may not be seen")
	}
	name, namespace := annotations["meta.helm.sh/release-name"], annotations["meta.helm.sh/release-namespace"]
	if name == "" {
		return nil, others
	}
	for _, candidate := range all {
		if !releases.IsElsewhere(candidate) && installs(candidate, namespace, name) {
			return candidate, nil
		}
	}
	return nil, append(others, "Helm release "+snapshot.Named(namespace, name))
}

// installs tells whether a HelmRelease has a release of Helm's in a namespace.
func installs(release *unstructured.Unstructured, namespace, name string) bool {
	history, _, _ := unstructured.NestedSlice(release.Object, "status", "history")
	for _, item := range history {
		if entry, _ := item.(map[string]any); entry["name"] == name && entry["namespace"] == namespace {
			return true
		}
	}
	written, _, _ := unstructured.NestedString(release.Object, "spec", "releaseName")
	target, _, _ := unstructured.NestedString(release.Object, "spec", "targetNamespace")
	standard := release.GetName()
	if target != "" {
		standard = target + "-" + standard
	}
	return name == cmp.Or(written, standard) && namespace == cmp.Or(target, release.GetNamespace())
}

// foreign names programs that mark an object as theirs.
func foreign(object *unstructured.Unstructured) []string {
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	var found []string
	if name := labels["kustomize.toolkit.fluxcd.io/name"]; name != "" {
		found = append(found, "Kustomization "+snapshot.Named(labels["kustomize.toolkit.fluxcd.io/namespace"], name)+" of Flux")
	}
	if id := annotations["argocd.argoproj.io/tracking-id"]; id != "" {
		application, _, _ := strings.Cut(id, ":")
		found = append(found, "Application "+application+" of Argo CD")
	}
	if application := labels["argocd.argoproj.io/instance"]; application != "" {
		found = append(found, "Application "+application+" of Argo CD")
	}
	if by := labels["app.kubernetes.io/managed-by"]; by != "" && by != "Helm" {
		found = append(found, by)
	}
	if _, applied := annotations["kubectl.kubernetes.io/last-applied-configuration"]; applied {
		found = append(found, "whoever ran kubectl apply")
	}
	return found
}
