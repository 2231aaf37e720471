// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package round is one look at a layer, in its order: decide, record what is
// about to be done, use up what allows it, act, report, and say when to look
// again. It reads and writes through Hands alone, so that a controller and a
// simulation go the same way.
package round

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/decisions"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/layers"
)

// Writer changes what the cluster holds. Each method that changes the layer
// leaves it in the observation as it is then, and fails with a conflict where
// somebody else has changed it meanwhile.
type Writer interface {
	// Executor returns what carries out the layer's plan. An error counts as
	// that of the plan's first action.
	Executor(ctx context.Context, o *layers.Observation) (Executor, error)
	// Keep sees to it that the cluster holds what the layer may have to go back
	// to, and notes that in the status; before is the history as it was.
	Keep(ctx context.Context, o *layers.Observation, before []v1alpha1.HistoryEntry, status *v1alpha1.AddonsLayerStatus) error
	// Persist writes a status where it differs from the last one. It returns
	// ErrGone where the layer is no longer there.
	Persist(ctx context.Context, o *layers.Observation, status v1alpha1.AddonsLayerStatus) error
	// Withhold remembers a status that says what has just been written, until a
	// later one is persisted: the next look goes by it. It may be forgotten, as
	// it is when the process dies; what was written is then written again, which
	// changes nothing.
	Withhold(o *layers.Observation, status v1alpha1.AddonsLayerStatus, d layers.Decision)
	// Annotate changes annotations of the layer; one whose value is empty goes.
	Annotate(ctx context.Context, o *layers.Observation, values map[string]string) error
	// LeftBehind tells whether an object of a layer's inventory is there and the
	// layer's, although no cache shows it.
	LeftBehind(ctx context.Context, layer *v1alpha1.AddonsLayer) (bool, error)
	// Finalize lets a deleted layer go.
	Finalize(ctx context.Context, layer *v1alpha1.AddonsLayer) error
}

// Executor carries out a plan for a primary, and returns what became of every
// action that was tried. Before anything of it is done, record is called; its
// error stops all.
type Executor interface {
	Carry(ctx context.Context, owner string, plan dependents.Plan, record func(context.Context) error) ([]dependents.Result, error)
}

// Witness is told what happens.
type Witness interface {
	// Acted is told what was done, and the status that the layer had before.
	Acted(o *layers.Observation, before v1alpha1.AddonsLayerStatus, results []dependents.Result)
	// Reported is told that the status was written.
	Reported(o *layers.Observation, d layers.Decision)
	// Note is told how a look ends, so that it is known what the layer waits for.
	Note(o *layers.Observation, d layers.Decision)
}

// Timing says when.
type Timing interface {
	// Now returns the time.
	Now() time.Time
	// SafetyNet returns when a layer is looked at again that nothing wakes.
	SafetyNet(o *layers.Observation) time.Duration
	// KeepBack returns how long a status has to be kept back, because the last
	// one was written a moment ago; 0 where it need not be. Where wrote is
	// true, the status also says what has just been written.
	KeepBack(o *layers.Observation, status v1alpha1.AddonsLayerStatus, wrote bool) time.Duration
	// KindIsComing tells whether a kind that the layer waits for may be served
	// any moment.
	KindIsComing(o *layers.Observation, d layers.Decision) bool
}

// Hands are what a round is carried out with.
type Hands interface {
	Writer
	Witness
	Timing
}

// ErrGone says that a layer is no longer there, so that nothing more is done
// for it.
var ErrGone = errors.New("the layer is gone")

// Run carries out one round for what was observed of a layer. It returns when
// the layer is looked at next, where nothing wakes it before; 0 means that
// nothing but a wake-up does. An error asks for another look, later each time.
func Run(ctx context.Context, h Hands, o *layers.Observation) (time.Duration, error) {
	decision := layers.Decide(*o)
	if decision.Finalized {
		return finalize(ctx, h, o.Layer)
	}
	before := o.Layer.Status
	results, err := act(ctx, h, o, decision)
	h.Acted(o, before, results)
	if err != nil {
		return 0, err
	}
	status, decision := layers.Report(*o, decision, results)
	keeping := h.Keep(ctx, o, before.History, &status)
	// A process that is told to stop still reports all that it has done.
	if late := keptBack(h, o, status, decision, results); late > 0 && keeping == nil && ctx.Err() == nil {
		if len(results) > 0 {
			h.Withhold(o, status, decision)
		}
		h.Note(o, decision)
		after, err := again(h, o, decision, results)
		return min(after, late), err
	}
	if err := h.Persist(ctx, o, status); err != nil {
		return 0, err
	}
	h.Reported(o, decision)
	h.Note(o, decision)
	if err := consume(ctx, h, o, decision.ClearAfter); err != nil || keeping != nil {
		return 0, errors.Join(err, keeping)
	}
	return again(h, o, decision, results)
}

// Outcome turns how a look has ended into when the next one is due. A conflict
// says that somebody else has changed the layer meanwhile, perhaps in a way that
// wakes nobody.
func Outcome(after time.Duration, err error) (time.Duration, error) {
	switch {
	case apierrors.IsConflict(err):
		return LookAgain, nil
	case errors.Is(err, ErrGone):
		return 0, nil
	}
	return after, err
}

// finalize lets a deleted layer go. That is the one step that nothing takes
// back, so what the layer had last is looked for past the cache once more.
func finalize(ctx context.Context, h Hands, layer *v1alpha1.AddonsLayer) (time.Duration, error) {
	left, err := h.LeftBehind(ctx, layer)
	if err != nil || left {
		return LookAgain, err
	}
	return 0, h.Finalize(ctx, layer)
}

// act carries out a decision's plan, after the inventory of what it is about
// to touch has been persisted.
func act(ctx context.Context, h Hands, o *layers.Observation, d layers.Decision) ([]dependents.Result, error) {
	if !d.Plan.Writes() && len(d.ConsumeFirst) == 0 {
		return nil, nil
	}
	before := func(ctx context.Context) error {
		if err := record(ctx, h, o, d); err != nil {
			return err
		}
		return consume(ctx, h, o, d.ConsumeFirst)
	}
	if !d.Plan.Writes() {
		return nil, before(ctx)
	}
	executor, err := h.Executor(ctx, o)
	if err != nil {
		return refused(d.Plan, err), nil
	}
	return executor.Carry(ctx, o.Layer.Name, d.Plan, before)
}

// record persists what must be known before anything is done.
func record(ctx context.Context, h Hands, o *layers.Observation, d layers.Decision) error {
	status, _ := layers.Report(*o, d, nil)
	if !layers.NeedsRecord(o.Layer.Status, status) {
		return nil
	}
	if status.Rollback != nil {
		// What the layer goes back to must be at hand until it is there.
		if err := h.Keep(ctx, o, o.Layer.Status.History, &status); err != nil {
			return err
		}
	}
	return h.Persist(ctx, o, status)
}

// consume removes annotations that are used up, when the attempt they allow has
// been recorded and before they have their effect: after a crash in between the
// next look finds both, and neither refuses what was allowed nor allows another
// revision. With them goes what was decided into an annotation of its own, which
// counts from then on.
func consume(ctx context.Context, h Hands, o *layers.Observation, keys []string) error {
	values := map[string]string{}
	for _, key := range keys {
		values[key] = ""
	}
	if decided := layers.Decided(o.Layer, decisions.Seal{Key: o.Settings.DigestKey}); decided != o.Layer.Annotations[v1alpha1.DecidedAnnotation] {
		values[v1alpha1.DecidedAnnotation] = decided
	}
	if len(values) == 0 {
		return nil
	}
	return h.Annotate(ctx, o, values)
}

// refused reports a plan that nobody may carry out: its first action failed,
// and no other one was tried.
func refused(plan dependents.Plan, err error) []dependents.Result {
	return []dependents.Result{{Action: plan.Actions[0], Err: err}}
}
