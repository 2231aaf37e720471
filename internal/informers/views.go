// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// View is what somebody watches of a cluster.
type View struct {
	// Selector selects objects.
	Selector labels.Selector
	// Whole are kinds of which all objects are watched, of Secrets and ConfigMaps the metadata.
	Whole []schema.GroupVersionKind
	// Wiring is what becomes of what is seen.
	Wiring Wiring
}

// whole returns the kinds of which all is watched, as a cache has them.
func (v View) whole() map[client.Object]cache.ByObject {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(definitionVersion)
	everything := cache.ByObject{Label: labels.Everything()}
	found := map[client.Object]cache.ByObject{definition: everything}
	for _, gvk := range v.Whole {
		found[newObject(gvk)] = everything
	}
	return found
}

// View returns the kinds of the cluster as somebody watches them, who has a name. They are made
// by the first call, and end with the connection.
func (c *Connection) View(of string, view View) (*Kinds, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.views[of]; known != nil {
		return known, nil
	}
	if c.watching == nil {
		return nil, ErrNotConnected
	}
	cached, err := c.watching(view)
	if err != nil {
		return nil, err
	}
	on := c.Kinds.Cluster
	on.Cache, on.Reader = cached, cached
	made := NewKinds(on, view.Wiring)
	if err := watchDefinitions(c.Kinds.Cache, view.Wiring, made); err != nil {
		return nil, err
	}
	if c.views == nil {
		c.views = map[string]*Kinds{}
	}
	c.views[of] = made
	return made, nil
}

// watchDefinitions has somebody told of the definitions of a cluster, by a cache that watches
// them.
func watchDefinitions(by cache.Cache, wiring Wiring, kinds *Kinds) error {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(definitionVersion)
	if err := wiring.Watch(source.Kind(by, client.Object(definition), wiring.Definitions(kinds))); err != nil {
		return fmt.Errorf("cannot watch the definitions of RemoteCluster %s: %w", kinds.Name, err)
	}
	return nil
}
