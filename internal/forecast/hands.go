// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/round"
)

// hands carry out one look at a layer, in the future.
type hands struct {
	*future
	name string
}

// Executor returns the hands themselves.
func (h *hands) Executor(context.Context, *layers.Observation) (round.Executor, error) { return h, nil }

// Carry carries out a plan.
func (h *hands) Carry(ctx context.Context, owner string, plan dependents.Plan, record func(context.Context) error) ([]dependents.Result, error) {
	if err := record(ctx); err != nil {
		return nil, err
	}
	var results []dependents.Result
	for _, action := range plan.Actions {
		before := h.objects[action.ID]
		result := h.do(owner, action)
		results = append(results, result)
		if !result.Changed {
			continue
		}
		h.changed = true
		step := Step{
			Wave: h.rounds, After: h.now.Sub(h.world.Now), Layer: owner, Verb: action.Verb, ID: action.ID, Correction: action.Correction, Spared: action.Spared,
			Before: before, Done: h.objects[action.ID],
		}
		if action.Wanted != nil {
			step.Origin, step.Decrypted = action.Wanted.Origin, action.Wanted.Decrypted
		}
		if before != nil {
			step.DefaultReplicas = action.Wanted != nil && losesReplicas(before, action.Wanted)
			if was := before.GetLabels()[v1alpha1.LayerLabel]; was != owner {
				step.Owner = was
			}
		}
		h.steps = append(h.steps, step)
	}
	return results, nil
}

// Keep has nothing to keep.
func (h *hands) Keep(context.Context, *layers.Observation, []v1alpha1.HistoryEntry, *v1alpha1.AddonsLayerStatus) error {
	return nil
}

// Persist has the layer have a status.
func (h *hands) Persist(_ context.Context, o *layers.Observation, status v1alpha1.AddonsLayerStatus) error {
	if equality.Semantic.DeepEqual(o.Layer.Status, status) {
		return nil
	}
	h.become(o, func(layer *v1alpha1.AddonsLayer) { layer.Status = status })
	return nil
}

// become changes the layer, here and in the observation.
func (h *hands) become(o *layers.Observation, change func(*v1alpha1.AddonsLayer)) {
	layer := o.Layer.DeepCopy()
	change(layer)
	o.Layer, h.layers[h.name], h.changed = layer, layer, true
}

// Withhold is never called, for nothing is kept back.
func (h *hands) Withhold(*layers.Observation, v1alpha1.AddonsLayerStatus, layers.Decision) {}

// Annotate changes annotations; one whose value is empty goes.
func (h *hands) Annotate(_ context.Context, o *layers.Observation, values map[string]string) error {
	h.become(o, func(layer *v1alpha1.AddonsLayer) {
		for key, value := range values {
			if value == "" {
				delete(layer.Annotations, key)
				continue
			}
			if layer.Annotations == nil {
				layer.Annotations = map[string]string{}
			}
			layer.Annotations[key] = value
		}
	})
	return nil
}

// LeftBehind finds nothing: there is no cache that lags.
func (h *hands) LeftBehind(context.Context, *v1alpha1.AddonsLayer) (bool, error) { return false, nil }

// Finalize has a deleted layer go.
func (h *hands) Finalize(_ context.Context, layer *v1alpha1.AddonsLayer) error {
	h.layers[layer.Name] = nil
	h.gone[layer.Name], h.changed = true, true
	return nil
}

// Acted needs no telling.
func (h *hands) Acted(*layers.Observation, v1alpha1.AddonsLayerStatus, []dependents.Result) {}

// Reported needs no telling.
func (h *hands) Reported(*layers.Observation, layers.Decision) {}

// Note remembers how the look ended.
func (h *hands) Note(_ *layers.Observation, d layers.Decision) { h.last[h.name] = d }

// Now returns the time that it would be.
func (h *hands) Now() time.Time { return h.now }

// SafetyNet returns a time that nobody waits for.
func (h *hands) SafetyNet(*layers.Observation) time.Duration { return time.Hour }

// KeepBack keeps nothing back.
func (h *hands) KeepBack(*layers.Observation, v1alpha1.AddonsLayerStatus, bool) time.Duration {
	return 0
}

// KindIsComing is false: what is to be served is served in the next round.
func (h *hands) KindIsComing(*layers.Observation, layers.Decision) bool { return false }
