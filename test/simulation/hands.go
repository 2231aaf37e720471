// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/round"
)

// hands carry out one round in the simulated cluster. Each write is a step of
// its own, before and after which the process may die.
type hands struct {
	*process
	pause func()
	// view is what the process could know when it looked.
	view view
	// artifact of the layer's source; nil where it has none.
	artifact *source
	// stored is the layer as the cluster had it. The observed one may have a
	// status that was withheld.
	stored *v1alpha1.AddonsLayer
}

var _ round.Hands = (*hands)(nil)

// write carries out one write, which may fail as an API server does that is not
// there.
func (h *hands) write(what string, do func() error) error {
	h.pause()
	if h.flaky() {
		h.note("no answer: %s", what)
		return errUnavailable
	}
	err := do()
	h.pause()
	return err
}

// writeLayer changes a layer as it was read.
func (h *hands) writeLayer(read *v1alpha1.AddonsLayer, what, why string, do func(*v1alpha1.AddonsLayer)) (*v1alpha1.AddonsLayer, error) {
	var written *v1alpha1.AddonsLayer
	err := h.write(what, func() error {
		stored := h.cluster.layer(read.Name)
		switch {
		case stored == nil:
			return notFound(layerResource, read.Name)
		case stored.ResourceVersion != read.ResourceVersion || stored.UID != read.UID:
			return conflict(layerResource, read.Name)
		}
		written = stored.DeepCopy()
		do(written)
		h.cluster.putLayer(written)
		h.note("%s %s: %s", read.Name, what, why)
		return nil
	})
	if err != nil {
		return nil, err
	}
	h.layerWrites.Wrote(written.DeepCopy())
	return written, nil
}

// Executor returns the hands themselves.
func (h *hands) Executor(_ context.Context, o *layers.Observation) (round.Executor, error) {
	return &executor{hands: h, o: o}, nil
}

// Persist writes a status where it differs.
func (h *hands) Persist(_ context.Context, o *layers.Observation, status v1alpha1.AddonsLayerStatus) error {
	if equality.Semantic.DeepEqual(h.stored.Status, status) {
		o.Layer = h.stored
		return nil
	}
	written, err := h.writeLayer(h.stored, string(status.State), conditionIn(status.Conditions, v1alpha1.ReadyCondition).Message, func(l *v1alpha1.AddonsLayer) {
		// Only what is stored counts for what comes later.
		h.judgeStatus(o, &status)
		l.Status = *status.DeepCopy()
	})
	if err != nil {
		if h.cluster.layer(o.Layer.Name) == nil {
			return round.ErrGone
		}
		return err
	}
	h.layerWrites.WroteStatus(written.Name, h.Now())
	o.Layer, h.stored = written, written
	h.waits.Of(written, o.Now)
	return nil
}

// Withhold remembers a status that is not written yet.
func (h *hands) Withhold(_ *layers.Observation, status v1alpha1.AddonsLayerStatus, _ layers.Decision) {
	h.layerWrites.Withhold(h.stored, status, h.Now())
}

// Annotate changes annotations; one whose value is empty goes.
func (h *hands) Annotate(_ context.Context, o *layers.Observation, values map[string]string) error {
	written, err := h.writeLayer(o.Layer, "changes annotations", fmt.Sprint(values), func(l *v1alpha1.AddonsLayer) {
		for key, value := range values {
			if value == "" {
				delete(l.Annotations, key)
				continue
			}
			if l.Annotations == nil {
				l.Annotations = map[string]string{}
			}
			l.Annotations[key] = value
		}
	})
	if err != nil {
		return err
	}
	withheld := o.Layer.Status
	h.stored, o.Layer = written, written.DeepCopy()
	o.Layer.Status = withheld
	return nil
}

func keptName(layer *v1alpha1.AddonsLayer, digest string) string {
	return string(layer.UID) + "/" + digest
}

// Keep holds on to what the layer may have to go back to.
func (h *hands) Keep(_ context.Context, o *layers.Observation, before []v1alpha1.HistoryEntry, status *v1alpha1.AddonsLayerStatus) error {
	if o.Layer.DeletionTimestamp != nil {
		return nil
	}
	wanted := layers.KeptDigests(o.Layer, *status)
	kept := h.cluster.kept
	for i := range status.History {
		entry := &status.History[i]
		name := keptName(o.Layer, entry.Digest)
		switch is := slices.Contains(wanted, entry.Digest); {
		case is && !entry.Kept:
			directory := h.artifacts[entry.Digest]
			if directory == nil {
				continue
			}
			if kept[name] == nil {
				if err := h.write("keeps a content", func() error { kept[name] = directory; return nil }); err != nil {
					return err
				}
			}
			entry.Kept = true
		case !is && entry.Kept:
			if err := h.write("drops a content", func() error { delete(kept, name); return nil }); err != nil {
				return err
			}
			entry.Kept = false
		}
	}
	for _, entry := range before {
		if entry.Kept && !slices.ContainsFunc(status.History, func(e v1alpha1.HistoryEntry) bool { return e.Digest == entry.Digest }) {
			delete(kept, keptName(o.Layer, entry.Digest))
		}
	}
	return nil
}

// LeftBehind looks past the cache for what the layer had.
func (h *hands) LeftBehind(_ context.Context, layer *v1alpha1.AddonsLayer) (bool, error) {
	for _, entry := range layers.Inventory(layer.Status.Resources, nil) {
		store, err := h.writesTo(entry.ID.Cluster)
		if errors.Is(err, errNotConnected) {
			return true, nil
		} else if err != nil {
			return false, err
		}
		if release := store.release(keyOf(entry.ID)); release != nil && release.GetLabels()[v1alpha1.LayerLabel] == layer.Name {
			return true, nil
		}
	}
	return false, nil
}

// Finalize lets a deleted layer go.
func (h *hands) Finalize(_ context.Context, layer *v1alpha1.AddonsLayer) error {
	_, err := h.writeLayer(layer, "goes", "nothing is left", func(l *v1alpha1.AddonsLayer) {
		h.judgeLeaving(l)
		l.Finalizers = nil
		maps.DeleteFunc(h.cluster.kept, func(name string, _ *directories.Directory) bool {
			return len(name) > len(l.UID) && name[:len(l.UID)] == string(l.UID)
		})
	})
	if h.cluster.layer(layer.Name) == nil {
		return nil
	}
	return err
}

// Acted remembers what was written.
func (h *hands) Acted(_ *layers.Observation, _ v1alpha1.AddonsLayerStatus, results []dependents.Result) {
	h.writes.Wrote(results, h.Now())
}

// Reported tells nobody.
func (h *hands) Reported(*layers.Observation, layers.Decision) {}

// Note remembers what the layer waits for.
func (h *hands) Note(o *layers.Observation, d layers.Decision) {
	waits, groups := d.WaitsForOthers(*o)
	h.listings.SetWaiting(o.Layer.Name, waits, groups)
}

// Now returns the virtual time.
func (h *hands) Now() time.Time { return h.now.time() }

// SafetyNet returns the layer's interval.
func (h *hands) SafetyNet(o *layers.Observation) time.Duration {
	return o.Layer.Spec.Interval.Duration
}

// KeepBack spaces statuses out as the controller does.
func (h *hands) KeepBack(o *layers.Observation, status v1alpha1.AddonsLayerStatus, wrote bool) time.Duration {
	return h.layerWrites.Spaced(o.Layer.Name, h.Now(), layers.Spacing(o.Layer.Status, status, wrote), wrote)
}

// KindIsComing is never so: all kinds are served.
func (h *hands) KindIsComing(*layers.Observation, layers.Decision) bool { return false }
