// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/directories"
)

// EmptyDigest is the digest of every directory without objects, missing ones
// too.
var EmptyDigest = digestOf(nil)

// identity is what makes two objects the same one, whatever their version.
type identity struct {
	group, kind, namespace, name string
}

func identityOf(object *unstructured.Unstructured) identity {
	kind := object.GroupVersionKind()
	return identity{kind.Group, kind.Kind, object.GetNamespace(), object.GetName()}
}

func (i identity) compare(other identity) int {
	return cmp.Or(
		cmp.Compare(i.group, other.group), cmp.Compare(i.kind, other.kind),
		cmp.Compare(i.namespace, other.namespace), cmp.Compare(i.name, other.name),
	)
}

// String reads as people write it: HelmRelease addons/podinfo.
func (i identity) String() string {
	if i.namespace == "" {
		return i.kind + " " + i.name
	}
	return i.kind + " " + i.namespace + "/" + i.name
}

// objectSet collects the objects of one directory, each once.
type objectSet struct {
	manifests map[identity]directories.Manifest
}

func newObjectSet() *objectSet {
	return &objectSet{manifests: map[identity]directories.Manifest{}}
}

func (s *objectSet) add(manifest directories.Manifest) error {
	id := identityOf(manifest.Object)
	if first, ok := s.manifests[id]; ok {
		return &directories.ContentError{
			Reason: v1alpha1.ReasonDuplicateObject, File: manifest.File, Line: manifest.Line,
			Message: fmt.Sprintf("%s is there twice, first in %s: remove one", id, placeOf(first)),
		}
	}
	if len(s.manifests) >= maxObjects {
		return invalid(manifest.File, manifest.Line, "", "%s is one object more than the %d that a layer may have: split the layer", id, maxObjects)
	}
	s.manifests[id] = manifest
	return nil
}

func placeOf(manifest directories.Manifest) string {
	if manifest.Line == 0 {
		return manifest.File
	}
	return fmt.Sprintf("%s:%d", manifest.File, manifest.Line)
}

// directory returns the objects in the order of their identity.
func (s *objectSet) directory() *directories.Directory {
	ids := make([]identity, 0, len(s.manifests))
	for id := range s.manifests {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, identity.compare)
	directory := &directories.Directory{}
	for _, id := range ids {
		directory.Manifests = append(directory.Manifests, s.manifests[id])
	}
	directory.Digest = digestOf(directory.Manifests)
	return directory
}

// digestOf returns the plain digest of objects, in the order of their identity.
func digestOf(manifests []directories.Manifest) string {
	return digests.Key{}.OfDirectory(manifests)
}

// canonical returns JSON with sorted keys. Values that come from YAML or JSON
// cannot fail to be written as JSON.
func canonical(object *unstructured.Unstructured) []byte {
	data, err := json.Marshal(object.Object)
	if err != nil {
		panic(fmt.Sprintf("cannot write an object as JSON: %v", err))
	}
	return data
}
