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

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/round"
)

// hands carry out a round on the cluster. Executor is in accounts.go.
type hands struct {
	*AddonsLayerReconciler
	// acted is true once something other than the status was written, and told
	// once the status was; decision is what the round has reported.
	acted, told bool
	decision    *layers.Decision
}

var _ round.Hands = (*hands)(nil)

// Keep has the cluster hold what the layer may have to go back to.
func (h *hands) Keep(ctx context.Context, o *layers.Observation, before []v1alpha1.HistoryEntry, status *v1alpha1.AddonsLayerStatus) error {
	return h.revisions.keep(ctx, o, before, status)
}

// Persist writes a status where it differs from the last one. It does not end
// with ctx: what was done must be known to whoever comes next.
func (h *hands) Persist(ctx context.Context, o *layers.Observation, status v1alpha1.AddonsLayerStatus) error {
	if !h.Fence.Holds() {
		return errStopped
	}
	if equality.Semantic.DeepEqual(o.Layer.Status, status) {
		return nil
	}
	h.told = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	patched := o.Layer.DeepCopy()
	patched.Status = status
	err := h.Client.Status().Patch(ctx, patched, client.MergeFromWithOptions(o.Layer, client.MergeFromWithOptimisticLock{}), client.FieldOwner(apply.FieldManager))
	if err != nil {
		if apierrors.IsNotFound(err) {
			return round.ErrGone
		}
		return err
	}
	h.recent.WroteLayer(patched.DeepCopy())
	h.recent.WroteStatus(patched.Name, h.now())
	o.Layer = patched
	h.waits.Of(patched, o.Now)
	return nil
}

// Consume removes annotations.
func (h *hands) Consume(ctx context.Context, o *layers.Observation, keys []string) error {
	h.acted = true
	annotations := map[string]any{}
	for _, key := range keys {
		annotations[key] = nil
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations, "resourceVersion": o.Layer.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("cannot write the patch: %w", err)
	}
	patched := o.Layer.DeepCopy()
	err = h.Client.Patch(ctx, patched, client.RawPatch(types.MergePatchType, data), client.FieldOwner(apply.FieldManager))
	if err != nil {
		return fmt.Errorf("cannot use up annotations of layer %s: %w", o.Layer.Name, err)
	}
	h.recent.WroteLayer(patched.DeepCopy())
	o.Layer = patched
	return nil
}

// LeftBehind tells whether an object of a layer's inventory is there and the
// layer's, although the cache does not show it.
func (h *hands) LeftBehind(ctx context.Context, layer *v1alpha1.AddonsLayer) (bool, error) {
	for _, entry := range layers.Inventory(layer.Status.Resources, nil) {
		gvk, watched := h.kinds.version(entry.ID.GroupKind())
		if !watched {
			continue
		}
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(gvk)
		if err := h.Reader.Get(ctx, entry.ID.Key(), live); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return false, fmt.Errorf("cannot make sure that %s has gone: %w", entry.ID, err)
		}
		if live.Labels[v1alpha1.LayerLabel] == layer.Name {
			return true, nil
		}
	}
	return false, nil
}

// Finalize lets a deleted layer go.
func (h *hands) Finalize(ctx context.Context, layer *v1alpha1.AddonsLayer) error {
	patched := layer.DeepCopy()
	controllerutil.RemoveFinalizer(patched, v1alpha1.Finalizer)
	err := h.Client.Patch(ctx, patched, client.MergeFromWithOptions(layer, client.MergeFromWithOptimisticLock{}), client.FieldOwner(apply.FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot remove the finalizer of layer %s: %w", layer.Name, err)
	}
	return nil
}

// Acted remembers what was done, for the next look and for those to be told.
func (h *hands) Acted(o *layers.Observation, before v1alpha1.AddonsLayerStatus, results []dependents.Result) {
	h.acted = h.acted || len(results) > 0
	h.recent.Wrote(results, h.now())
	h.untold.add(o.Layer.Name, before, results)
	h.Meters.did(o.Layer.Name, results)
}

// Reported tells what has happened since the status was written last.
func (h *hands) Reported(o *layers.Observation, d layers.Decision) {
	h.decision = &d
	h.executor.Saw(d.Plan.Unchanged, o.Live)
	before, done := h.untold.take(o.Layer.Name)
	h.Meters.reported(o.Layer, before, h.now())
	h.tell(o.Layer, before, d, done)
}

// Note remembers what the layer waits for, so that events find it.
func (h *hands) Note(o *layers.Observation, d layers.Decision) {
	waits, groups := d.WaitsForOthers(*o)
	h.listings.SetWaiting(o.Layer.Name, waits, groups)
	h.begun.set(o.Layer.Name, d.State == v1alpha1.StateApplying)
}

// Now returns the time.
func (h *hands) Now() time.Time { return h.now() }

// SafetyNet returns the layer's interval, or a little more.
func (h *hands) SafetyNet(o *layers.Observation) time.Duration {
	return jittered(h.intervalOf(o.Layer))
}

func jittered(interval time.Duration) time.Duration { return wait.Jitter(interval, intervalJitter) }

// KeepBack returns how long a status has to be kept back, because this process
// wrote the last one a moment ago, or because there is more urgent work.
func (h *hands) KeepBack(o *layers.Observation, status v1alpha1.AddonsLayerStatus) time.Duration {
	if layers.OnlyRevision(o.Layer.Status, status) {
		return h.putOff(o.Layer.Name)
	}
	spacing := h.spacing(o.Layer.Status, status)
	since, known := h.recent.SinceStatus(o.Layer.Name, h.now())
	if spacing == 0 || !known || since < 0 {
		return 0
	}
	return spacing - since
}

// KindIsComing tells whether a kind that the layer waits for may be served any
// moment.
func (h *hands) KindIsComing(o *layers.Observation, d layers.Decision) bool {
	return h.kindIsComing(o, d)
}
