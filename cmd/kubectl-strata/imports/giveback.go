// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/kustomizations"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// givenBack is a layer that is given back, and what was kept of its Kustomization.
type givenBack struct {
	layer  *v1alpha1.AddonsLayer
	record kustomizations.Record
}

// giveBack makes Kustomizations again of layers that were made of them, those that others
// depend on last.
func (i *fluxImport) giveBack(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return errors.New("--undo needs the names of Kustomizations, or of their layers")
	}
	h, err := i.handOver()
	if err != nil {
		return err
	}
	all, err := h.takenOver(ctx)
	if err != nil {
		return err
	}
	var chosen []givenBack
	var begun []*unstructured.Unstructured
	for _, name := range names {
		found := false
		for _, each := range all {
			if name == each.layer.Name || name == each.record.Name || name == each.record.Key().String() {
				chosen, found = append(chosen, each), true
			}
		}
		if !found {
			live, err := h.begun(ctx, name)
			if err != nil {
				return err
			}
			begun = append(begun, live)
		}
	}
	chosen, err = dependantsFirst(chosen, all)
	if err != nil {
		return err
	}
	for _, each := range chosen {
		i.Tell("Layer %s: is held; its %s become those of Kustomization %s again, by their labels and owners alone; the Kustomization is created, and the layer deleted.",
			each.layer.Name, counted(len(each.layer.Status.Resources), "object"), each.record.Key())
	}
	for _, live := range begun {
		h.tellBegun(live)
	}
	if !i.yes {
		i.Tell("Nothing was changed. Add --yes to give back.")
		return nil
	}
	for _, each := range chosen {
		if err := h.back(ctx, each); err != nil {
			return fmt.Errorf("layer %s: %w; the same command goes on from here", each.layer.Name, err)
		}
	}
	// Those may apply the others, which are there and have their objects by now.
	for _, live := range begun {
		if err := h.regain(ctx, live); err != nil {
			return err
		}
	}
	return nil
}

// takenOver returns the layers that were made of Kustomizations.
func (h *handOver) takenOver(ctx context.Context) ([]givenBack, error) {
	list, err := h.client.Resource(snapshot.Layers.GroupVersionResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, h.Explain(err, snapshot.Layers)
	}
	var found []givenBack
	for at := range list.Items {
		text := list.Items[at].GetAnnotations()[v1alpha1.TakenOverAnnotation]
		if text == "" {
			continue
		}
		layer := &v1alpha1.AddonsLayer{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[at].Object, layer); err != nil {
			return nil, fmt.Errorf("cannot understand layer %s: %w", list.Items[at].GetName(), err)
		}
		record, err := kustomizations.ReadRecord(text)
		if err != nil {
			return nil, fmt.Errorf("layer %s: %w", layer.Name, err)
		}
		found = append(found, givenBack{layer, record})
	}
	return found, nil
}

// dependantsFirst orders layers so that each comes before those that it depends on. The
// error names a layer that stays, and depends on one that would go.
func dependantsFirst(chosen, all []givenBack) ([]givenBack, error) {
	going := map[string]bool{}
	for _, each := range chosen {
		going[each.layer.Name] = true
	}
	dependants := func(of string) []string {
		var found []string
		for _, each := range all {
			if slices.Contains(dependencies.Names(each.layer.Spec.Prereqs.DependsOn), of) {
				found = append(found, each.layer.Name)
			}
		}
		return found
	}
	var ordered []givenBack
	placed := map[string]bool{}
	for len(ordered) < len(chosen) {
		before := len(ordered)
		for _, each := range chosen {
			if placed[each.layer.Name] {
				continue
			}
			free := true
			for _, other := range dependants(each.layer.Name) {
				if !going[other] {
					return nil, fmt.Errorf("layer %s depends on %s: name it, too", other, each.layer.Name)
				}
				free = free && placed[other]
			}
			if free {
				placed[each.layer.Name] = true
				ordered = append(ordered, each)
			}
		}
		if len(ordered) == before {
			return nil, errors.New("the layers depend on each other in a circle")
		}
	}
	return ordered, nil
}

// back gives one layer back. Each step finds out whether it was done.
func (h *handOver) back(ctx context.Context, of givenBack) error {
	if err := h.hold(ctx, of.layer.Name); err != nil {
		return err
	}
	layer, err := h.layer(ctx, of.layer.Name)
	if err != nil {
		return err
	}
	if layer == nil {
		// A command that was ended had deleted it, and it went just now: what is left to do
		// is what that would have done next.
		live, err := h.begun(ctx, of.record.Key().String())
		if err != nil {
			return err
		}
		return h.regain(ctx, live)
	}
	if err := h.remake(ctx, of.record, layer.Name); err != nil {
		return err
	}
	var ids []objects.ID
	for _, entry := range layers.Inventory(layer.Status.Resources, nil) {
		if entry.Status != objects.StatusOrphaned {
			ids = append(ids, entry.ID)
		}
	}
	to := kustomizations.Owner{Kustomization: of.record.Key()}
	if _, err := h.give(ctx, h.applied(ctx, ids, layer.Name), kustomizations.Owner{Layer: layer.Name}, to); err != nil {
		return err
	}
	if err := h.forget(ctx, layer.Name); err != nil {
		return err
	}
	return h.resume(ctx, of.record.Key())
}

// applied leaves out objects that a layer shows and does not have, such as those that
// somebody has asked to leave alone.
func (h *handOver) applied(ctx context.Context, all []objects.ID, layer string) []objects.ID {
	return slices.DeleteFunc(slices.Clone(all), func(id objects.ID) bool {
		resource, err := h.resource(id)
		if err != nil {
			return false // giving it says so
		}
		live, err := resource.Get(ctx, id.Name, metav1.GetOptions{})
		return err == nil && kinds.LeftAlone(live) != "" && live.GetLabels()[v1alpha1.LayerLabel] != layer
	})
}

// hold has the controller do nothing for a layer any more, and leave its objects when it
// is deleted, and waits until it has seen that. One that has gone needs nothing.
func (h *handOver) hold(ctx context.Context, name string) error {
	patch := []byte(`{"metadata":{"annotations":{"` + v1alpha1.HoldReleasesAnnotation + `":null}},"spec":{"hold":true,"deletionPolicy":"Orphan"}}`)
	_, err := h.client.Resource(snapshot.Layers.GroupVersionResource).
		Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: console.ActManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return h.Explain(err, snapshot.Layers)
	}
	return h.await(ctx, "layer "+name+" is held", func() (bool, error) {
		layer, err := h.layer(ctx, name)
		if err != nil || layer == nil {
			return layer == nil, err
		}
		return layer.Status.State == v1alpha1.StateHold && layer.Status.ObservedGeneration == layer.Generation, nil
	})
}

// remake creates a Kustomization again, suspended and with its inventory, where it is gone.
func (h *handOver) remake(ctx context.Context, record kustomizations.Record, layer string) error {
	if _, err := h.kustomization(ctx, record.Key()); err == nil || !apierrors.IsNotFound(err) {
		return err
	}
	made, err := record.Kustomization(layer)
	if err != nil {
		return err
	}
	live, err := h.client.Resource(snapshot.Kustomizations.GroupVersionResource).Namespace(record.Namespace).
		Create(ctx, made, metav1.CreateOptions{FieldManager: console.FieldManager})
	if err != nil {
		return h.Explain(err, snapshot.Kustomizations)
	}
	if record.Inventory == nil {
		return nil
	}
	// What is gone from git since is removed by its inventory alone.
	return h.patch(ctx, live, map[string]any{"status": map[string]any{"inventory": record.Inventory}}, "status")
}

// forget deletes a layer that has nothing any more.
func (h *handOver) forget(ctx context.Context, name string) error {
	err := h.client.Resource(snapshot.Layers.GroupVersionResource).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return h.Explain(err, snapshot.Layers)
	}
	return h.await(ctx, "layer "+name+" is gone", func() (bool, error) {
		layer, err := h.layer(ctx, name)
		return layer == nil, err
	})
}

// resume has kustomize-controller go on.
func (h *handOver) resume(ctx context.Context, of types.NamespacedName) error {
	live, err := h.kustomization(ctx, of)
	if err != nil {
		return err
	}
	err = h.patch(ctx, live, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{v1alpha1.HandOverAnnotation: nil, v1alpha1.FluxReconcileAnnotation: nil}},
		"spec":     map[string]any{"suspend": nil},
	})
	if err == nil {
		h.Tell("Kustomization %s has its objects again.", of)
	}
	return err
}

// begun returns a Kustomization without a layer: of a command that was ended before its
// last step or before there was a layer, one that applies nothing but others, or one that
// has its objects.
func (h *handOver) begun(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	list, err := h.client.Resource(snapshot.Kustomizations.GroupVersionResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, h.Explain(err, snapshot.Kustomizations)
	}
	for at := range list.Items {
		live := &list.Items[at]
		if slices.Contains([]string{live.GetName(), keyOf(live).String(), live.GetAnnotations()[v1alpha1.HandOverAnnotation]}, name) {
			return live, nil
		}
	}
	return nil, fmt.Errorf("no layer was made of a Kustomization %s: kubectl strata get lists the layers that there are", name)
}

func keyOf(live *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: live.GetNamespace(), Name: live.GetName()}
}

// tellBegun says what becomes of a Kustomization without a layer.
func (h *handOver) tellBegun(live *unstructured.Unstructured) {
	if live.GetAnnotations()[v1alpha1.HandOverAnnotation] == "" {
		h.Tell("Kustomization %s has its objects.", keyOf(live))
		return
	}
	h.Tell("Kustomization %s: gets back what was begun to be handed over, and is resumed.", keyOf(live))
}

// regain gives a Kustomization back what was begun to be handed over, and resumes it.
func (h *handOver) regain(ctx context.Context, live *unstructured.Unstructured) error {
	layer := live.GetAnnotations()[v1alpha1.HandOverAnnotation]
	if layer == "" {
		return nil
	}
	_, ids, err := h.inventory(ctx, keyOf(live))
	if err != nil {
		return err
	}
	if _, err := h.give(ctx, ids, kustomizations.Owner{Layer: layer}, kustomizations.Owner{Kustomization: keyOf(live)}); err != nil {
		return err
	}
	return h.resume(ctx, keyOf(live))
}
