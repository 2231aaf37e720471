// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Content is what an object is to hold. The zero value is that of an object that is only
// observed: others make it, and what it is to hold is not known. Whoever reads a Content
// says what happens without one.
type Content struct{ object *unstructured.Unstructured }

// ContentOf returns the content of an object that is written; the zero value for nil. The
// object is shared and must not be changed.
func ContentOf(object *unstructured.Unstructured) Content { return Content{object} }

// Get returns the object, and false where it is only observed.
func (c Content) Get() (*unstructured.Unstructured, bool) { return c.object, c.object != nil }

// Equal tells whether two contents are the same.
func (c Content) Equal(other Content) bool {
	return equality.Semantic.DeepEqual(c.object, other.object)
}

// MarshalJSON writes the object, and null where it is only observed.
func (c Content) MarshalJSON() ([]byte, error) { return json.Marshal(c.object) }

// Manifest returns what is written of a dependent: its content, or no more than its
// identity where it is only observed, which no API server takes.
func (d *Dependent) Manifest() *unstructured.Unstructured {
	if object, found := d.Object.Get(); found {
		return object
	}
	identity := &unstructured.Unstructured{Object: map[string]any{"apiVersion": d.ID.Group + "/", "kind": d.ID.Kind}}
	identity.SetNamespace(d.ID.Namespace)
	identity.SetName(d.ID.Name)
	return identity
}
