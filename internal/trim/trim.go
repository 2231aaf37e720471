// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trim leaves out of what caches hold what nobody reads, and has them hold once what
// many objects have in common. It imports the API and pure rooms.
package trim

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/internal/fields"
	"github.com/strata-project/strata/internal/heldacts"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// Object removes of an object what is large and never looked at. Of managedFields it leaves who has
// which act of people, on typed objects that have any: on those of Strata's own kinds; and a note
// of which fields Strata has, on others, but on Flux's, whose generation says as much. A reflector
// may call it twice for an object, whose maps other objects have in common then: what is not there is
// not removed, since that would be a write to a map that others read. What is no object stays as it is.
func Object(in any) (any, error) {
	obj, ok := in.(client.Object)
	if !ok {
		return in, nil
	}
	u, isUnstructured := in.(*unstructured.Unstructured)
	switch _, isMetadata := in.(*metav1.PartialObjectMetadata); {
	case isMetadata:
		obj.SetManagedFields(fields.Trimmed(obj.GetManagedFields()))
	case !isUnstructured:
		obj.SetManagedFields(heldacts.Trimmed(obj.GetAnnotations(), obj.GetManagedFields()))
	case objects.IsStrict(u.GroupVersionKind().GroupKind()):
		removeField(u.Object, "metadata", "managedFields")
	default:
		fields.Trim(u)
	}
	if annotations := obj.GetAnnotations(); annotations["kubectl.kubernetes.io/last-applied-configuration"] != "" {
		delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
		obj.SetAnnotations(annotations)
	}
	if isUnstructured && u.GroupVersionKind().GroupKind() == kinds.HelmReleaseKind {
		removeField(u.Object, "status", "history")
		stripInventory(u)
		u.Object, _ = intern(u.Object).(map[string]any)
	}
	return in, nil
}

// removeField removes a field of a part of an object, where it is there.
func removeField(object map[string]any, part, field string) {
	inner, _ := object[part].(map[string]any)
	if _, has := inner[field]; !has {
		return // to delete what is not there counts as a write, too
	}
	delete(inner, field)
}

// mostInventory is how many entries of a release's inventory are kept.
const mostInventory = 100

// stripInventory leaves in a release's inventory what has a health that can be watched,
// which is little of it.
func stripInventory(release *unstructured.Unstructured) {
	var kept []any
	for _, made := range kinds.InventoryOf(release) {
		if len(kept) < mostInventory && kinds.HasHealth(made.GroupKind()) {
			kept = append(kept, made.Entry)
		}
	}
	removeField(release.Object, "status", "inventory")
	if len(kept) > 0 {
		_ = unstructured.SetNestedField(release.Object, map[string]any{"entries": kept}, "status", "inventory") // of a status that is there
	}
}
