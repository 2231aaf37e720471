// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"

	"github.com/strata-project/strata/internal/kinds"
)

// follow remembers the definition of a kind that is about to be watched.
// Helm's kinds are left out: without them there is nothing to do, and their
// caches have indexes.
func (k *Kinds) follow(mapping *meta.RESTMapping) {
	gk := mapping.GroupVersionKind.GroupKind()
	if gk == kinds.HelmReleaseKind || gk == kinds.HelmRepositoryKind {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	name := mapping.Resource.GroupResource().String()
	if k.definitions[name] == nil {
		k.definitions[name] = &definition{kind: gk}
		k.definedBy[gk] = name
	}
}

// Redefined notes an event of a definition, and returns the kind if that is
// watched.
func (k *Kinds) Redefined(name string) (schema.GroupKind, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found := k.definitions[name]
	if found == nil {
		return schema.GroupKind{}, false
	}
	found.changes++
	k.changes++
	return found.kind, true
}

// RedefinedAll is as redefined for all kinds that are watched, and returns them.
func (k *Kinds) RedefinedAll() []schema.GroupKind {
	k.mu.Lock()
	defer k.mu.Unlock()
	var found []schema.GroupKind
	for _, definition := range k.definitions {
		definition.changes++
		found = append(found, definition.kind)
	}
	k.changes++
	return found
}

// Revise reads the definition of a kind that has changed since it was last
// read. A kind that is not served any more at the version that is watched is
// not watched any more: its cache would stay for ever as it is.
func (k *Kinds) Revise(ctx context.Context, gk schema.GroupKind) error {
	name, changes, pending := k.pending(gk)
	if !pending {
		return nil
	}
	start := k.startOf(gk)
	start.mu.Lock()
	defer start.mu.Unlock()
	versions, err := k.servedVersions(ctx, name)
	if err != nil {
		return fmt.Errorf("cannot read the definition of kind %s: %w", gk, err)
	}
	// Nobody may read from the cache of a kind while it goes: that would bring
	// it back.
	k.reading.Lock()
	defer k.reading.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	found := k.definitions[name]
	if found.read >= changes {
		return nil // somebody else has been here
	}
	found.read, found.versions = changes, versions
	k.changes++
	if !start.watching || slices.Contains(versions, start.kind.Version) {
		return nil
	}
	if err := k.Cache.RemoveInformer(ctx, newObject(start.kind)); err != nil {
		found.read = 0
		return fmt.Errorf("cannot give up the watch of kind %s: %w", gk, err)
	}
	delete(k.served, gk)
	start.watching = false
	return nil
}

// pending tells whether the definition of a kind is to be read.
func (k *Kinds) pending(gk schema.GroupKind) (name string, changes int, pending bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	name = k.definedBy[gk]
	found := k.definitions[name]
	if found == nil {
		return "", 0, false
	}
	return name, found.changes, found.changes > found.read
}

// defines returns the versions that a kind is served at, where they have been
// read from its definition.
func (k *Kinds) defines(gk schema.GroupKind) (versions []string, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found := k.definitions[k.definedBy[gk]]
	if found == nil || found.read == 0 {
		return nil, false
	}
	return found.versions, true
}

// Mapping says how a kind is served, at one of some versions where there are
// any.
func (k *Kinds) Mapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	served, known := k.defines(gk)
	if !known {
		return k.Client.RESTMapper().RESTMapping(gk, versions...)
	}
	if len(versions) > 0 {
		served = slices.DeleteFunc(slices.Clone(served), func(version string) bool { return !slices.Contains(versions, version) })
	}
	if len(served) == 0 {
		return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
	}
	mapping, err := k.Client.RESTMapper().RESTMapping(gk, served[0])
	if meta.IsNoMatchError(err) {
		// To take the kind for one that is not served would be to take its
		// objects for gone.
		return nil, fmt.Errorf("version %s of kind %s is defined and has yet to be served", served[0], gk)
	}
	return mapping, err
}

// servedVersions reads the versions at which a definition is served, the best
// one first; none where there is no such definition.
func (k *Kinds) servedVersions(ctx context.Context, name string) ([]string, error) {
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(definitionVersion)
	if err := k.Past.Get(ctx, types.NamespacedName{Name: name}, definition); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, err
	}
	if !isEstablished(definition) {
		return nil, nil
	}
	var served []string
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, item := range versions {
		fields, _ := item.(map[string]any)
		if name, _ := fields["name"].(string); fields["served"] == true {
			served = append(served, name)
		}
	}
	slices.SortFunc(served, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	return served, nil
}

func isEstablished(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(item any) bool {
		fields, _ := item.(map[string]any)
		return fields["type"] == "Established" && fields["status"] == "True"
	})
}
