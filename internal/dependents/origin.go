// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/fields"
	"github.com/strata-project/strata/internal/objects"
)

// Created returns the object as it is created for the primary named owner. An object
// that was there already is never given this: a request that creates it fails then.
func (d *Dependent) Created(owner string, keys Keys) *unstructured.Unstructured {
	created := d.Manifest().DeepCopy()
	if d.NotesOrigin && keys.CreatedFor != "" {
		setAnnotation(created, keys.CreatedFor, owner)
	}
	return created
}

// Applied returns the object as it is applied to a live one, which goes on saying
// for whom it was created: applying would take that back with all else that Strata
// has written and does not want.
func (d *Dependent) Applied(live *unstructured.Unstructured, keys Keys) *unstructured.Unstructured {
	applied := d.Manifest().DeepCopy()
	if origin := keys.originOf(live); d.NotesOrigin && origin != "" {
		setAnnotation(applied, keys.CreatedFor, origin)
	}
	return applied
}

// Takes returns by which rule fields of a live object are taken over from others.
func (d *Dependent) Takes(live *unstructured.Unstructured, keys Keys) fields.Rule {
	return fields.Rule{
		Strict: objects.IsStrict(d.ID.GroupKind()), Adopts: live.GetLabels()[keys.Owner] == "", Merges: d.Merges, Replicas: d.saysReplicas(),
	}
}

// IsForgotten tells whether a live object says for whom it was created although
// nobody owns it: somebody has taken the owner off, and who has it since is not known.
func (k Keys) IsForgotten(live *unstructured.Unstructured) bool {
	return k.originOf(live) != "" && live.GetLabels()[k.Owner] == ""
}

// originOf returns the primary that an object says it was created for.
func (k Keys) originOf(live *unstructured.Unstructured) string {
	if k.CreatedFor == "" {
		return ""
	}
	return live.GetAnnotations()[k.CreatedFor]
}

func setAnnotation(obj *unstructured.Unstructured, key, value string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}
