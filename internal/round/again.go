// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package round

import (
	"slices"
	"time"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/ownwrites"
)

const (
	// LookAgain is how soon a layer is looked at again that was not as the
	// plan had seen it, when no watch comes first.
	LookAgain = 200 * time.Millisecond
	// othersUnread is how soon a layer looks again at what another one lists
	// that could not be fetched.
	othersUnread = 5 * time.Second
	// discoveryLag is how soon a layer looks again for a kind whose definition
	// is there already; discovery follows it a moment later.
	discoveryLag = 500 * time.Millisecond
	// afterProgress is how soon a layer is looked at again of which some objects
	// were written and others were not.
	afterProgress = time.Second
)

// again says when the layer is looked at next, when nothing wakes it before.
func again(t Timing, o *layers.Observation, d layers.Decision, results []dependents.Result) (time.Duration, error) {
	switch {
	case d.Retry == nil || d.Stalled:
	case progressed(results):
		return afterProgress, nil
	default:
		return 0, d.Retry
	}
	for _, result := range results {
		if result.Outdated || wakesNobody(o, result) {
			return LookAgain, nil
		}
	}
	after := t.SafetyNet(o)
	if t.KindIsComing(o, d) {
		after = min(after, discoveryLag)
	}
	if o.OthersUnread {
		after = min(after, othersUnread)
	}
	if len(o.Stale) > 0 {
		after = min(after, ownwrites.StaleFor)
	}
	if !d.Until.IsZero() {
		after = min(after, max(d.Until.Sub(t.Now()), time.Millisecond))
	}
	return after, nil
}

// keptBack returns how long a status is kept back that says only how the layer
// gets on, because the last one was written a moment ago; the look that follows
// computes it anew. What has just been written may be a part of how it gets on.
// Nothing is kept back after an error, or after anything but writes.
func keptBack(t Timing, o *layers.Observation, status v1alpha1.AddonsLayerStatus, d layers.Decision, results []dependents.Result) time.Duration {
	if len(d.ClearAfter) > 0 || d.Retry != nil || slices.ContainsFunc(results, isNoWrite) {
		return 0
	}
	return t.KeepBack(o, status, len(results) > 0)
}

// isNoWrite tells whether an action was anything but a write that succeeded.
func isNoWrite(result dependents.Result) bool {
	return result.Err != nil || result.Outdated || result.Action.Verb != dependents.VerbWrite
}

// progressed tells whether something new has been written, so that an error
// beside it is no reason to wait ever longer.
func progressed(results []dependents.Result) bool {
	return slices.ContainsFunc(results, func(result dependents.Result) bool {
		return result.Err == nil && !result.Outdated && result.Changed && !result.Action.Correction
	})
}

// wakesNobody tells whether a write has found an object to be as it is wanted,
// so that no event follows it although the object now counts as applied.
func wakesNobody(o *layers.Observation, result dependents.Result) bool {
	live := o.Live[result.Action.ID]
	switch {
	case result.Action.Verb != dependents.VerbWrite || result.Err != nil || live == nil:
		return false
	case live.GetGeneration() != 0:
		return live.GetGeneration() == result.Generation
	default:
		return !result.Changed
	}
}
