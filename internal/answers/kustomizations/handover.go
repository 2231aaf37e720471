// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomizations

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// Applier is the field manager by which kustomize-controller applies objects.
const Applier = "kustomize-controller"

// Record is what is kept of a Kustomization whose objects a layer has, so that they can be
// given back.
type Record struct {
	Namespace   string                         `json:"namespace"`
	Name        string                         `json:"name"`
	Labels      map[string]string              `json:"labels,omitempty"`
	Annotations map[string]string              `json:"annotations,omitempty"`
	Spec        json.RawMessage                `json:"spec"`
	Inventory   *kustomizev1.ResourceInventory `json:"inventory,omitempty"`
	Revision    string                         `json:"revision,omitempty"`
}

// passing are annotations that say what is done to a Kustomization at the moment.
var passing = []string{
	"reconcile.fluxcd.io/requestedAt", "kubectl.kubernetes.io/last-applied-configuration",
	v1alpha1.FluxReconcileAnnotation, v1alpha1.HandOverAnnotation,
}

// RecordOf returns what is kept of a Kustomization, as text.
func RecordOf(live *unstructured.Unstructured) (string, error) {
	read, err := Read(live)
	if err != nil {
		return "", err
	}
	spec := unstructured.Unstructured{Object: map[string]any{}}
	if fields, found, _ := unstructured.NestedMap(live.Object, "spec"); found {
		delete(fields, "suspend")
		spec.Object = fields
	}
	data, err := json.Marshal(spec.Object)
	if err != nil {
		return "", fmt.Errorf("cannot keep Kustomization %s: %w", live.GetName(), err)
	}
	annotations := live.GetAnnotations()
	for _, name := range passing {
		delete(annotations, name)
	}
	text, err := json.Marshal(Record{
		Namespace: live.GetNamespace(), Name: live.GetName(), Labels: live.GetLabels(), Annotations: annotations,
		Spec: data, Inventory: read.Status.Inventory, Revision: read.Status.LastAppliedRevision,
	})
	return string(text), err
}

// ReadRecord understands what was kept. The error is for a text that Strata has not written.
func ReadRecord(text string) (Record, error) {
	var record Record
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return Record{}, errors.New("its annotation " + v1alpha1.TakenOverAnnotation + " cannot be understood")
	}
	if record.Namespace == "" || record.Name == "" || len(record.Spec) == 0 {
		return Record{}, errors.New("its annotation " + v1alpha1.TakenOverAnnotation + " names no Kustomization")
	}
	return record, nil
}

// Key names the Kustomization.
func (r Record) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// Kustomization returns it as it is made again: suspended, until its objects are its own.
func (r Record) Kustomization(layer string) (*unstructured.Unstructured, error) {
	var spec map[string]any
	if err := json.Unmarshal(r.Spec, &spec); err != nil {
		return nil, fmt.Errorf("what was kept of Kustomization %s cannot be understood: %w", r.Key(), err)
	}
	spec["suspend"] = true
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kustomizev1.GroupVersion.String(), "kind": kustomizev1.KustomizationKind, "spec": spec,
	}}
	made.SetNamespace(r.Namespace)
	made.SetName(r.Name)
	made.SetLabels(r.Labels)
	annotations := map[string]string{v1alpha1.HandOverAnnotation: layer}
	for name, value := range r.Annotations {
		annotations[name] = value
	}
	made.SetAnnotations(annotations)
	return made, nil
}

// InventoryOf returns the objects of an inventory of Flux, but for Kustomizations, which
// are handed over by themselves.
func InventoryOf(inventory *kustomizev1.ResourceInventory) ([]objects.ID, error) {
	if inventory == nil {
		return nil, nil
	}
	var found []objects.ID
	for _, entry := range inventory.Entries {
		of, named := kinds.ParseEntry(entry.ID)
		if !named {
			return nil, fmt.Errorf("its inventory has an entry that names no object: %q", entry.ID)
		}
		if of.Group == kustomizev1.GroupVersion.Group && of.Kind == kustomizev1.KustomizationKind {
			continue
		}
		found = append(found, of)
	}
	return objects.SortIDs(found), nil
}

// Owner is who has an object: a layer, or a Kustomization.
type Owner struct {
	Layer         string
	Kustomization types.NamespacedName
}

// manager returns the field manager that applies objects for the owner.
func (o Owner) manager() string {
	if o.Layer != "" {
		return dependents.FieldManager
	}
	return Applier
}

// labels returns those by which an object is the owner's.
func (o Owner) labels() map[string]string {
	if o.Layer != "" {
		return map[string]string{v1alpha1.LayerLabel: o.Layer}
	}
	return map[string]string{NameLabel: o.Kustomization.Name, NamespaceLabel: o.Kustomization.Namespace}
}

// Has tells whether an object is the owner's.
func (o Owner) Has(live *unstructured.Unstructured) bool {
	labels := live.GetLabels()
	for name, value := range o.labels() {
		if labels[name] != value {
			return false
		}
	}
	return true
}

// GiveTo returns the patch that gives an object of one owner to another: labels, and whose
// the fields are that were applied. It changes nothing else, and only the very object that
// was seen. It is nil where the object is the other's already; the error says that it is
// somebody else's.
func (o Owner) GiveTo(other Owner, live *unstructured.Unstructured) (map[string]any, error) {
	if other.Has(live) && !o.Has(live) {
		return nil, nil
	}
	if !o.Has(live) {
		return nil, fmt.Errorf("%s is not what it has said of it: its labels are %v", objects.IDOf(live), live.GetLabels())
	}
	labels := map[string]any{}
	for name := range o.labels() {
		labels[name] = nil
	}
	for name, value := range other.labels() {
		labels[name] = value
	}
	fields, err := moved(live.GetManagedFields(), o, other)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", objects.IDOf(live), err)
	}
	return map[string]any{"metadata": map[string]any{
		"uid": string(live.GetUID()), "resourceVersion": live.GetResourceVersion(), "labels": labels, "managedFields": fields,
	}}, nil
}

// moved returns managedFields in which what one owner has applied the other one has. The
// label of the new owner is among them, so that its next apply finds nothing to write.
func moved(entries []metav1.ManagedFieldsEntry, from, to Owner) ([]metav1.ManagedFieldsEntry, error) {
	kept := make([]metav1.ManagedFieldsEntry, 0, len(entries))
	for _, entry := range entries {
		if entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" || entry.Manager != from.manager() || entry.FieldsV1 == nil {
			kept = append(kept, entry)
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil, fmt.Errorf("cannot read the managedFields of %s: %w", entry.Manager, err)
		}
		gone := &fieldpath.Set{}
		for name := range from.labels() {
			gone.Insert(fieldpath.MakePathOrDie("metadata", "labels", name))
		}
		set = set.Difference(gone)
		for name := range to.labels() {
			set.Insert(fieldpath.MakePathOrDie("metadata", "labels", name))
		}
		data, err := set.ToJSON()
		if err != nil {
			return nil, fmt.Errorf("cannot write managedFields: %w", err)
		}
		entry.Manager, entry.FieldsV1 = to.manager(), metav1.NewFieldsV1(string(data))
		kept = append(kept, entry)
	}
	return slices.Clip(kept), nil
}

// Shared returns an object that a Kustomization of a cluster has applied and another one has
// applied, too, with that one: two layers, or a layer and Flux, would own it. Kustomizations
// are left out, because no layer has them. It is empty where there is none.
func Shared(of Found, all []Found) (object string, with types.NamespacedName) {
	if of.Status.Inventory == nil {
		return "", types.NamespacedName{}
	}
	suffix := "_" + kustomizev1.GroupVersion.Group + "_" + kustomizationKind
	own := map[string]bool{}
	for _, entry := range of.Status.Inventory.Entries {
		own[entry.ID] = !strings.HasSuffix(entry.ID, suffix)
	}
	for _, other := range all {
		if other.key() == of.key() || other.Status.Inventory == nil {
			continue
		}
		for _, entry := range other.Status.Inventory.Entries {
			if own[entry.ID] {
				return entry.ID, other.key()
			}
		}
	}
	return "", types.NamespacedName{}
}
