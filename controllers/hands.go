// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/round"
)

// hands carry out a round on the cluster. Executor is in executor.go.
type hands struct {
	// r is whose hands they are.
	r *AddonsLayerReconciler
	// acted is true once something other than the status was written, and told
	// once the status was; decision is what the round has reported.
	acted, told bool
	decision    *layers.Decision
	// stored is the layer as the cluster has it. The observed one may have a
	// status that was withheld.
	stored *v1alpha1.AddonsLayer
}

var _ round.Hands = (*hands)(nil)

// Keep has the cluster hold what the layer may have to go back to.
func (h *hands) Keep(ctx context.Context, o *layers.Observation, before []v1alpha1.HistoryEntry, status *v1alpha1.AddonsLayerStatus) error {
	return h.r.revisions.keep(ctx, o, before, status)
}

// Persist writes a status where it differs from the last one. It does not end
// with ctx: what was done must be known to whoever comes next.
func (h *hands) Persist(ctx context.Context, o *layers.Observation, status v1alpha1.AddonsLayerStatus) error {
	if !h.r.Fence.Holds() {
		return errStopped
	}
	if equality.Semantic.DeepEqual(h.stored.Status, status) {
		// The observed layer may lack what nobody vouched for until now, as after a
		// process that died before its annotation was written.
		o.Layer = h.stored
		return nil
	}
	h.told = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	patched := h.stored.DeepCopy()
	patched.Status = status
	err := apply.PatchStatus(ctx, h.r.Client, patched, h.stored)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return round.ErrGone
		}
		return fmt.Errorf("cannot write the status of layer %s: %w", patched.Name, err)
	}
	h.r.recentLayers.Wrote(patched.DeepCopy())
	h.r.recentLayers.WroteStatus(patched.Name, h.r.now())
	o.Layer, h.stored = patched, patched
	h.r.waits.Of(patched, o.Now)
	return nil
}

// Withhold remembers a status that is not written yet. That the layer is applying
// is written, and told.
func (h *hands) Withhold(o *layers.Observation, status v1alpha1.AddonsLayerStatus, d layers.Decision) {
	h.r.recentLayers.Withhold(h.stored, status, h.r.now())
	h.r.tellState(o.Layer, h.r.untold.swap(o.Layer.Name, h.stored.Status), d)
}

// tellWithheld waits for the end and writes the statuses that were withheld until
// then, so that the next process need not find out what this one has done.
func (r *AddonsLayerReconciler) tellWithheld(ctx context.Context) error {
	<-ctx.Done()
	r.recentLayers.EachWithheld(func(layer *v1alpha1.AddonsLayer, status v1alpha1.AddonsLayerStatus) {
		h := &hands{r: r, stored: layer}
		if err := h.Persist(ctx, &layers.Observation{Now: r.now(), Layer: layer}, status); err != nil {
			log.FromContext(ctx).Info("cannot write what was withheld", "layer", layer.Name, "error", err.Error())
		}
	})
	return nil
}

// Annotate changes annotations; one whose value is empty goes.
func (h *hands) Annotate(ctx context.Context, o *layers.Observation, values map[string]string) error {
	h.acted = true
	annotations := map[string]any{}
	for key, value := range values {
		annotations[key] = nil
		if value != "" {
			annotations[key] = value
		}
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations, "resourceVersion": o.Layer.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("cannot write the patch: %w", err)
	}
	patched := o.Layer.DeepCopy()
	err = h.r.Client.Patch(ctx, patched, client.RawPatch(types.MergePatchType, data), client.FieldOwner(dependents.FieldManager))
	if err != nil {
		return fmt.Errorf("cannot change annotations of layer %s: %w", o.Layer.Name, err)
	}
	h.r.recentLayers.Wrote(patched.DeepCopy())
	withheld := o.Layer.Status
	h.stored, o.Layer = patched, patched.DeepCopy()
	o.Layer.Status = withheld
	return nil
}

// LeftBehind tells whether an object of a layer's inventory is there and the
// layer's, although the cache does not show it.
func (h *hands) LeftBehind(ctx context.Context, layer *v1alpha1.AddonsLayer) (bool, error) {
	for _, entry := range layers.Inventory(layer.Status.Resources, nil) {
		k := h.r.kindsOf(entry.ID.Cluster)
		if k == nil {
			return true, nil
		}
		gvk, watched := k.Version(entry.ID.GroupKind())
		if !watched {
			continue
		}
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(gvk)
		if err := k.Past.Get(ctx, entry.ID.Key(), live); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return false, fmt.Errorf("cannot make sure that %s has gone: %w", entry.ID, err)
		}
		if live.Labels[v1alpha1.LayerLabel] == layer.Name && !h.isReserved(layer.Name, entry.ID, live) {
			return true, nil
		}
	}
	return false, nil
}

// isReserved tells whether an object is kept by others, so that no layer has it.
func (h *hands) isReserved(layer string, id objects.ID, live *metav1.PartialObjectMetadata) bool {
	seen, err := informers.ToUnstructured(live, live.GroupVersionKind())
	return err == nil && h.r.Settings.ReservedFor(layer, id, seen) != ""
}

// Finalize lets a deleted layer go.
func (h *hands) Finalize(ctx context.Context, layer *v1alpha1.AddonsLayer) error {
	patched := layer.DeepCopy()
	controllerutil.RemoveFinalizer(patched, v1alpha1.Finalizer)
	err := apply.PatchLocked(ctx, h.r.Client, patched, layer)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot remove the finalizer of layer %s: %w", layer.Name, err)
	}
	return nil
}

// Acted remembers what was done, for the next look and for those to be told.
func (h *hands) Acted(o *layers.Observation, before v1alpha1.AddonsLayerStatus, results []dependents.Result) {
	h.acted = h.acted || len(results) > 0
	h.r.recent.Wrote(results, h.r.now())
	h.r.disputes.Corrected(results, h.r.now())
	h.r.untold.add(o.Layer.Name, before, results)
	h.r.Meters.Did(o.Layer.Name, results)
}

// Reported tells what has happened since the status was written last.
func (h *hands) Reported(o *layers.Observation, d layers.Decision) {
	h.decision = &d
	h.r.executor.Saw(d.Plan.Unchanged, o.Live)
	before, done := h.r.untold.take(o.Layer.Name)
	h.r.Meters.Reported(o.Layer, before, h.r.now())
	h.r.tell(o.Layer, before, d, done)
}

// Note remembers what the layer waits for, so that events find it.
func (h *hands) Note(o *layers.Observation, d layers.Decision) {
	waits, groups := d.WaitsForOthers(*o)
	h.r.listings.SetWaiting(o.Layer.Name, waits, groups)
	h.r.begun.set(o.Layer.Name, d.State == v1alpha1.StateApplying)
}

// Now returns the time.
func (h *hands) Now() time.Time { return h.r.now() }

// SafetyNet returns the layer's interval, or a little more.
func (h *hands) SafetyNet(o *layers.Observation) time.Duration {
	return jittered(h.r.intervalOf(o.Layer))
}

func jittered(interval time.Duration) time.Duration { return wait.Jitter(interval, intervalJitter) }

// KeepBack returns how long a status has to be kept back, because this process
// wrote the last one a moment ago, or because there is more urgent work.
func (h *hands) KeepBack(o *layers.Observation, status v1alpha1.AddonsLayerStatus, wrote bool) time.Duration {
	if layers.OnlyRevision(o.Layer.Status, status) {
		return h.r.putOff(o.Layer.Name)
	}
	return h.r.recentLayers.Spaced(o.Layer.Name, h.r.now(), h.r.spacing(o.Layer.Status, status, wrote), wrote)
}

// KindIsComing tells whether a kind that the layer waits for may be served any
// moment.
func (h *hands) KindIsComing(o *layers.Observation, d layers.Decision) bool {
	return h.r.kindIsComing(o, d)
}
