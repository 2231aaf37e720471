// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/kustomizations"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/objects"
)

// takeOver hands the Kustomizations of some names over, each behind what it waits for.
func (i *fluxImport) takeOver(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return errors.New("--take-over needs the names of Kustomizations: what is handed over together is up to you")
	}
	h, err := i.handOver()
	if err != nil {
		return err
	}
	found, err := i.Cluster.Kustomizations(ctx)
	if err != nil {
		return err
	}
	all := i.conversions(found)
	names, err = h.notDone(ctx, all, names)
	if err != nil || len(names) == 0 {
		return err
	}
	chosen, err := chooseKustomizations(all, names)
	if err != nil {
		return err
	}
	if err := checkShared(chosen, found.Found); err != nil {
		return err
	}
	chosen = inOrder(chosen)
	if err := h.check(ctx, chosen); err != nil {
		return err
	}
	for _, c := range chosen {
		if err := h.tellPlan(ctx, c); err != nil {
			return err
		}
	}
	if !i.yes {
		i.Tell("Nothing was changed. Add --yes to hand over.")
		return nil
	}
	var left []string
	for _, c := range chosen {
		stays, err := h.take(ctx, c)
		if err != nil {
			return fmt.Errorf("Kustomization %s: %w; the same command goes on from here, and --undo goes back", c.Of, err) //nolint:staticcheck // it is a name
		}
		if stays != "" {
			left = append(left, stays)
		}
	}
	if len(left) > 0 {
		i.ToDo(left)
		return console.ErrDiffers
	}
	return nil
}

// notDone leaves out the names of Kustomizations that are gone because they were handed
// over before.
func (h *handOver) notDone(ctx context.Context, all []kustomizations.Conversion, names []string) ([]string, error) {
	done, err := h.takenOver(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		if slices.ContainsFunc(all, func(c kustomizations.Conversion) bool { return c.Of.Name == name || c.Of.String() == name }) {
			return false
		}
		at := slices.IndexFunc(done, func(g givenBack) bool { return g.record.Name == name || g.record.Key().String() == name })
		if at >= 0 {
			h.Tell("Kustomization %s was handed over to layer %s.", done[at].record.Key(), done[at].layer.Name)
		}
		return at >= 0
	}), nil
}

// checkShared refuses what would have two owners: an object that two Kustomizations apply.
// With Flux the last one to apply it has it; a layer keeps it.
func checkShared(chosen []kustomizations.Conversion, all []kustomizations.Found) error {
	for _, c := range chosen {
		at := slices.IndexFunc(all, func(f kustomizations.Found) bool { return f.Namespace == c.Of.Namespace && f.Name == c.Of.Name })
		if at < 0 || c.Layer == nil {
			continue
		}
		if object, with := kustomizations.Shared(all[at], all); object != "" {
			return fmt.Errorf("Kustomization %s is not handed over: it applies %s, which Kustomization %s applies, too, "+ //nolint:staticcheck // it is a name
				"and two would own it: take it out of one of them", c.Of, object, with)
		}
	}
	return nil
}

// inOrder orders Kustomizations so that each comes behind those whose layers its own waits
// for, and behind the one that applies it where that does not wait for it.
func inOrder(all []kustomizations.Conversion) []kustomizations.Conversion {
	byKey, byLayer := map[types.NamespacedName]int{}, map[string]int{}
	for i, c := range all {
		byKey[c.Of] = i
		if c.Layer != nil {
			byLayer[c.Layer.Name] = i
		}
	}
	seen := map[int]bool{}
	sorted := make([]kustomizations.Conversion, 0, len(all))
	var visit func(int)
	visit = func(i int) {
		if seen[i] {
			return
		}
		seen[i] = true
		if all[i].Layer != nil {
			for _, name := range all[i].Layer.Spec.Prereqs.DependsOn {
				if other, is := byLayer[name]; is {
					visit(other)
				}
			}
		}
		if parent, is := byKey[all[i].Parent]; is {
			visit(parent)
		}
		sorted = append(sorted, all[i])
	}
	for i := range all {
		visit(i)
	}
	return sorted
}

// check refuses what cannot be handed over as a whole, before anything is changed.
func (h *handOver) check(ctx context.Context, all []kustomizations.Conversion) error {
	coming := map[string]bool{}
	for _, c := range all {
		if err := h.checkOne(ctx, c, coming); err != nil {
			return fmt.Errorf("Kustomization %s %w", c.Of, err) //nolint:staticcheck // it is a name
		}
		if c.Layer != nil {
			coming[c.Layer.Name] = true
		}
	}
	return nil
}

// checkOne says why a Kustomization cannot be handed over. coming are the layers that are
// made before.
func (h *handOver) checkOne(ctx context.Context, c kustomizations.Conversion, coming map[string]bool) error {
	switch {
	case c.Layer == nil && !c.Empty:
		return fmt.Errorf("is not handed over: %s", strings.Join(c.Notes, "; "))
	case len(c.Problems) > 0:
		return fmt.Errorf("cannot become a layer as it is: %s", strings.Join(c.Problems, "; "))
	case c.Cluster != nil:
		return errors.New("is for another cluster, and only what is on this one is handed over in place")
	}
	live, err := h.kustomization(ctx, c.Of)
	if err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	read, err := kustomizations.Read(live)
	if err != nil {
		return fmt.Errorf("is not handed over: %w", err)
	}
	if begun := live.GetAnnotations()[v1alpha1.HandOverAnnotation]; begun != "" {
		return nil
	}
	ready := meta.FindStatusCondition(read.Status.Conditions, "Ready")
	switch {
	case read.Spec.Suspend:
		return errors.New("is suspended: resume it, and hand it over when it is ready")
	case ready == nil || ready.Status != metav1.ConditionTrue || read.Status.ObservedGeneration != read.Generation:
		return errors.New("is not ready: what is there is not what git says, and a layer would change it")
	case c.Layer == nil:
		return nil
	}
	for _, name := range c.Layer.Spec.Prereqs.DependsOn {
		if coming[name] {
			continue
		}
		if layer, err := h.layer(ctx, name); err != nil || layer == nil {
			return errors.Join(err, fmt.Errorf("would wait for layer %s, which is not there: name the Kustomization of that, too", name))
		}
	}
	if layer, err := h.layer(ctx, c.Layer.Name); err != nil || layer != nil {
		return errors.Join(err, fmt.Errorf("would become layer %s, which is there already: rename one of the two", c.Layer.Name))
	}
	return nil
}

// tellPlan says what would be done.
func (h *handOver) tellPlan(ctx context.Context, c kustomizations.Conversion) error {
	if c.Layer == nil {
		h.Tell("Kustomization %s: is suspended, because it applies nothing but Kustomizations.", c.Of)
		return nil
	}
	_, inventory, err := h.inventory(ctx, c.Of)
	if err != nil {
		return fmt.Errorf("Kustomization %s: %w", c.Of, err) //nolint:staticcheck // it is a name
	}
	h.Tell("Kustomization %s: is suspended; %s become those of layer %s, by their labels and owners alone; the layer is created, and the Kustomization deleted when the layer is deployed.",
		c.Of, counted(len(inventory), "object"), c.Layer.Name)
	return nil
}

// take hands one Kustomization over. Each step finds out whether it was done, so that it
// can be ended anywhere and begun again. It returns what is left to do in git.
func (h *handOver) take(ctx context.Context, c kustomizations.Conversion) (string, error) {
	if err := h.suspend(ctx, c); err != nil {
		return "", err
	}
	if c.Layer == nil {
		h.Tell("Kustomization %s is suspended.", c.Of)
		return fmt.Sprintf("take Kustomization %s out of git, and delete it, when you do not want to go back any more", c.Of), nil
	}
	live, inventory, err := h.inventory(ctx, c.Of)
	if err != nil {
		return "", err
	}
	from, to := kustomizations.Owner{Kustomization: c.Of}, kustomizations.Owner{Layer: c.Layer.Name}
	generations, err := h.give(ctx, inventory, from, to)
	if err != nil {
		return "", err
	}
	if err := h.makeLayer(ctx, c, live); err != nil {
		return "", err
	}
	if err := h.awaitDeployed(ctx, c.Layer.Name); err != nil {
		return "", err
	}
	changed, err := h.changed(ctx, generations)
	if err != nil {
		return "", err
	}
	if len(changed) > 0 {
		h.Tell("layer %s has changed %s, which git says otherwise than the cluster had it", c.Layer.Name, strings.Join(changed, ", "))
	}
	h.Tell("layer %s is deployed with %s.", c.Layer.Name, counted(len(inventory), "object"))
	return h.drop(ctx, c)
}

// suspend suspends a Kustomization, and waits until kustomize-controller has seen it. That
// puts its finalizer back before it looks whether an object is suspended: with the finalizer
// taken off in the same write, it is back when no work from before is going on any more. What
// applies the Kustomization itself is told to leave it alone first.
func (h *handOver) suspend(ctx context.Context, c kustomizations.Conversion) error {
	live, err := h.kustomization(ctx, c.Of)
	if err != nil {
		return err
	}
	if live.GetAnnotations()[v1alpha1.HandOverAnnotation] == "" {
		marks := map[string]any{v1alpha1.HandOverAnnotation: c.To()}
		if c.Parent.Name != "" {
			marks[v1alpha1.FluxReconcileAnnotation] = "disabled"
		}
		if err := h.patch(ctx, live, map[string]any{"metadata": map[string]any{"annotations": marks}}); err != nil {
			return err
		}
	}
	if c.Parent.Name != "" {
		if err := h.leave(ctx, c.Parent); err != nil {
			return err
		}
	}
	if live, err = h.kustomization(ctx, c.Of); err != nil {
		return err
	}
	finalizers := slices.DeleteFunc(live.GetFinalizers(), func(name string) bool { return name == kustomizev1.KustomizationFinalizer })
	err = h.patch(ctx, live, map[string]any{
		"metadata": map[string]any{
			"finalizers": finalizers, "resourceVersion": live.GetResourceVersion(),
			// Where it is suspended already, nothing else has kustomize-controller look.
			"annotations": map[string]any{"reconcile.fluxcd.io/requestedAt": h.Now().UTC().Format(time.RFC3339Nano)},
		},
		"spec": map[string]any{"suspend": true},
	})
	if err != nil {
		return err
	}
	return h.await(ctx, "kustomize-controller sees that Kustomization "+c.Of.String()+" is suspended", func() (bool, error) {
		live, err := h.kustomization(ctx, c.Of)
		if err != nil {
			return false, err
		}
		return slices.Contains(live.GetFinalizers(), kustomizev1.KustomizationFinalizer), nil
	})
}

// leave has a Kustomization apply what it has once more, so that it has seen what is
// marked to be left alone. One that is gone, or suspended, applies nothing.
func (h *handOver) leave(ctx context.Context, of types.NamespacedName) error {
	live, err := h.kustomization(ctx, of)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if objects.IsSuspended(live) {
		return nil
	}
	at := h.Now().UTC().Format(time.RFC3339Nano)
	if err := h.patch(ctx, live, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"reconcile.fluxcd.io/requestedAt": at}}}); err != nil {
		return err
	}
	return h.await(ctx, "Kustomization "+of.String()+" leaves what it has handed over", func() (bool, error) {
		live, err := h.kustomization(ctx, of)
		if err != nil {
			return false, err
		}
		handled, _, _ := unstructured.NestedString(live.Object, "status", "lastHandledReconcileAt")
		return handled == at, nil
	})
}

// give gives objects from one owner to another, and returns the generations that they had.
func (h *handOver) give(ctx context.Context, all []objects.ID, from, to kustomizations.Owner) (map[objects.ID]int64, error) {
	generations := map[objects.ID]int64{}
	for _, id := range all {
		resource, err := h.resource(id)
		if err != nil {
			return nil, err
		}
		for range maxConflicts {
			live, err := resource.Get(ctx, id.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				break // it is made again by its new owner
			}
			if err != nil {
				return nil, fmt.Errorf("cannot read %s: %w", id, err)
			}
			patch, err := from.GiveTo(to, live)
			if err != nil {
				return nil, err
			}
			generations[id] = live.GetGeneration()
			if patch == nil {
				break
			}
			data, err := json.Marshal(patch)
			if err != nil {
				return nil, fmt.Errorf("cannot write the patch: %w", err)
			}
			_, err = resource.Patch(ctx, id.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: dependents.MarksManager})
			if apierrors.IsConflict(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("cannot hand over %s: %w", id, err)
			}
			break
		}
	}
	return generations, nil
}

// maxConflicts is how often an object is read again that others write at the same time.
const maxConflicts = 20

// makeLayer creates the layer, with what is kept of the Kustomization.
func (h *handOver) makeLayer(ctx context.Context, c kustomizations.Conversion, of *unstructured.Unstructured) error {
	there, err := h.layer(ctx, c.Layer.Name)
	if err != nil {
		return err
	}
	if there != nil {
		if made, err := kustomizations.ReadRecord(there.Annotations[v1alpha1.TakenOverAnnotation]); err != nil || made.Key() != c.Of {
			return fmt.Errorf("layer %s is there already, and was not made of it: rename one of the two", c.Layer.Name)
		}
		return nil
	}
	record, err := kustomizations.RecordOf(of)
	if err != nil {
		return err
	}
	layer := c.Layer.DeepCopy()
	layer.Annotations = map[string]string{v1alpha1.TakenOverAnnotation: record}
	layer.Spec.Hold = false // the Kustomization was not suspended before
	manifest, err := kustomizations.Manifest(layer)
	if err != nil {
		return err
	}
	_, err = h.client.Resource(snapshot.Layers.GroupVersionResource).Create(ctx, manifest, metav1.CreateOptions{FieldManager: console.FieldManager})
	if err != nil {
		return h.Explain(err, snapshot.Layers)
	}
	return nil
}

// awaitDeployed waits until a layer is deployed.
func (h *handOver) awaitDeployed(ctx context.Context, name string) error {
	var last *v1alpha1.AddonsLayer
	err := h.await(ctx, "layer "+name+" is deployed", func() (bool, error) {
		layer, err := h.layer(ctx, name)
		if err != nil {
			return false, err
		}
		if layer == nil {
			return false, fmt.Errorf("layer %s has gone", name)
		}
		last = layer
		return layer.Status.State == v1alpha1.StateDeployed && layer.Status.ObservedGeneration == layer.Generation, nil
	})
	if err != nil && last != nil {
		if ready := meta.FindStatusCondition(last.Status.Conditions, v1alpha1.ReadyCondition); ready != nil {
			return fmt.Errorf("%w: it is %s: %s", err, last.Status.State, ready.Message)
		}
	}
	return err
}

// changed names objects whose generation is another than it was.
func (h *handOver) changed(ctx context.Context, were map[objects.ID]int64) ([]string, error) {
	var changed []string
	ids := make([]objects.ID, 0, len(were))
	for id := range were {
		ids = append(ids, id)
	}
	for _, id := range objects.SortIDs(ids) {
		resource, err := h.resource(id)
		if err != nil {
			return nil, err
		}
		live, err := resource.Get(ctx, id.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", id, err)
		}
		if live.GetGeneration() != were[id] {
			changed = append(changed, id.String())
		}
	}
	return changed, nil
}

// drop deletes a Kustomization that is suspended, which removes nothing else, where
// nothing makes it again. It returns what is left to do in git.
func (h *handOver) drop(ctx context.Context, c kustomizations.Conversion) (string, error) {
	comesBack, err := h.comesBack(ctx, c)
	if err != nil {
		return "", err
	}
	if comesBack {
		return fmt.Sprintf("take Kustomization %s out of git, where Kustomization %s has it from, and run the same command again: "+
			"it stays suspended until then, because it would be made again", c.Of, c.Parent), nil
	}
	return "", h.await(ctx, "Kustomization "+c.Of.String()+" is gone", func() (bool, error) {
		live, err := h.kustomization(ctx, c.Of)
		switch {
		case apierrors.IsNotFound(err):
			return true, nil
		case err != nil:
			return false, err
		case live.GetDeletionTimestamp() != nil:
			return false, nil
		case !objects.IsSuspended(live):
			return false, errors.New("somebody has resumed it meanwhile")
		}
		// As it was seen, or not at all: one that is not suspended removes what it had.
		uid, version := live.GetUID(), live.GetResourceVersion()
		err = h.client.Resource(snapshot.Kustomizations.GroupVersionResource).Namespace(c.Of.Namespace).
			Delete(ctx, c.Of.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return false, h.Explain(err, snapshot.Kustomizations)
		}
		return false, nil
	})
}

// comesBack tells whether a Kustomization would be made again by the one that applies it.
func (h *handOver) comesBack(ctx context.Context, c kustomizations.Conversion) (bool, error) {
	if c.Parent.Name == "" {
		return false, nil
	}
	parent, err := h.kustomization(ctx, c.Parent)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil || objects.IsSuspended(parent) {
		return false, err
	}
	read, err := kustomizations.Read(parent)
	if err != nil || read.Status.Inventory == nil {
		return false, err
	}
	id := strings.Join([]string{c.Of.Namespace, c.Of.Name, kustomizev1.GroupVersion.Group, kustomizev1.KustomizationKind}, "_")
	return slices.ContainsFunc(read.Status.Inventory.Entries, func(e kustomizev1.ResourceRef) bool { return e.ID == id }), nil
}
