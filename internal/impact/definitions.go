// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package impact

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// eachDefinition shows the metadata of all definitions of the cluster to visit,
// until that fails.
func (d *departure) eachDefinition(ctx context.Context, visit func(*metav1.PartialObjectMetadata) error) error {
	for next := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(crdVersion.GroupVersion().WithKind(crdVersion.Kind + "List"))
		err := Insist(ctx, func() error {
			return d.Definitions.List(ctx, list, client.UnsafeDisableDeepCopy, client.Limit(Page), client.Continue(next))
		})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if err := visit(&list.Items[i]); err != nil {
				return err
			}
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// kindOf returns a version in which objects of a definition are served, and
// whether there is one: what is not served has no objects that could be named.
// An API server tells of a new kind later than it serves it, so that a kind that
// discovery does not know is looked up in its definition.
func (d *departure) kindOf(ctx context.Context, name string, resource schema.GroupResource) (schema.GroupVersionKind, bool, error) {
	known, err := d.Mapper.KindFor(resource.WithVersion(""))
	if err == nil || !meta.IsNoMatchError(err) {
		return known, err == nil, err
	}
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(crdVersion)
	err = Insist(ctx, func() error { return d.Past.Get(ctx, types.NamespacedName{Name: name}, definition) })
	if apierrors.IsNotFound(err) {
		return known, false, nil // it has gone since, and its objects with it
	}
	if err != nil {
		return known, false, err
	}
	kind, version := servedBy(definition)
	return schema.GroupVersionKind{Group: resource.Group, Version: version, Kind: kind}, version != "", nil
}

// servedBy returns the kind of a definition, and the first version that it says
// is served; empty where there is none.
func servedBy(definition *unstructured.Unstructured) (kind, version string) {
	kind, _, _ = unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, one := range versions {
		fields, _ := one.(map[string]any)
		if served, _ := fields["served"].(bool); served {
			version, _ = fields["name"].(string)
			return kind, version
		}
	}
	return kind, ""
}
