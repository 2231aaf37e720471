// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sources says where the directory of a layer comes from.
package sources

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/objects"
)

// Group is the API group of Flux's sources.
const Group = "source.toolkit.fluxcd.io"

// The kinds of sources that layers come from.
const (
	GitRepository    = "GitRepository"
	OCIRepository    = "OCIRepository"
	Bucket           = "Bucket"
	ExternalArtifact = "ExternalArtifact"
	// ApplicationBundle is no source of Flux: its layers are filled from what the
	// layer says.
	ApplicationBundle = v1alpha1.ApplicationBundleKind
)

// kraanGitRepository is how Kraan writes the kind of a source.
const kraanGitRepository = "gitrepositories.source.toolkit.fluxcd.io"

// Ref names a layer's source. Two of different kinds are different
// sources, also under one name.
type Ref struct {
	Kind, Namespace, Name string
}

// ID names the source among objects.
func (r Ref) ID() objects.ID {
	if r.Kind == ApplicationBundle {
		return objects.ID{Group: v1alpha1.GroupVersion.Group, Kind: r.Kind, Name: r.Name}
	}
	return objects.ID{Group: Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// Of returns a layer's source. Namespace is that of sources whose
// namespace is not given.
func Of(layer *v1alpha1.AddonsLayer, namespace string) Ref {
	source := layer.Spec.Source
	ref := Ref{Kind: source.Kind, Namespace: cmp.Or(source.Namespace, namespace), Name: source.Name}
	if ref.Kind == "" || ref.Kind == kraanGitRepository {
		ref.Kind = GitRepository
	}
	return ref
}

// IsOfBundle tells whether a layer is one of an ApplicationBundle.
func IsOfBundle(layer *v1alpha1.AddonsLayer) bool {
	return layer.Spec.Source.Kind == ApplicationBundle
}

// InstanceOf returns the name under which a layer of an ApplicationBundle is
// installed; layers of one instance hand objects over to each other.
func InstanceOf(layer *v1alpha1.AddonsLayer) string {
	return cmp.Or(layer.Spec.Instance, layer.Name)
}

// GroupKind returns the source's kind.
func (r Ref) GroupKind() schema.GroupKind { return r.ID().GroupKind() }

func (r Ref) String() string { return r.ID().String() }
