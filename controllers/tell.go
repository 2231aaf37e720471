// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/layers"
)

// maxEventNote is the API server's limit for what an event says.
const maxEventNote = 1024

// verbEvents says which actions are told, and how.
var verbEvents = []struct {
	verb   dependents.Verb
	reason string
	words  string
}{
	{dependents.VerbAdopt, v1alpha1.ReasonAdopted, "adopted"},
	{dependents.VerbSupersede, v1alpha1.ReasonSuperseded, "suspended, because another one takes over its Helm release"},
	{dependents.VerbSuspend, v1alpha1.ReasonSuspended, "suspended due to hold"},
	{dependents.VerbResume, v1alpha1.ReasonResumed, "resumed"},
	{dependents.VerbMark, v1alpha1.ReasonOrphaned, "marked as orphaned"},
	{dependents.VerbRelease, v1alpha1.ReasonReleased, "released and kept"},
	{dependents.VerbDelete, v1alpha1.ReasonPruned, "removed"},
}

// tell writes events for what has changed, after the status says it.
func (r *AddonsLayerReconciler) tell(layer *v1alpha1.AddonsLayer, before v1alpha1.AddonsLayerStatus, d layers.Decision, results []dependents.Result) {
	for _, told := range verbEvents {
		r.tellDone(layer, results, told.reason, told.words, func(result dependents.Result) bool {
			return result.Action.Verb == told.verb
		})
	}
	r.tellDone(layer, results, v1alpha1.ReasonAdopted, "adopted", func(result dependents.Result) bool {
		return result.Action.Verb == dependents.VerbWrite && len(result.Action.From) > 0
	})
	r.tellDone(layer, results, v1alpha1.ReasonCorrected, "restored", func(result dependents.Result) bool {
		return result.Action.Verb == dependents.VerbWrite && result.Action.Correction && result.Changed
	})
	if before.State == d.State && sameReason(before, d) {
		return
	}
	kind := corev1.EventTypeNormal
	if d.State == v1alpha1.StateFailed || d.Reason == v1alpha1.ReasonDeletionBlocked || d.Reason == v1alpha1.ReasonSuspendedRelease {
		kind = corev1.EventTypeWarning
	}
	r.event(layer, kind, string(d.State), d.Message)
}

// sameReason tells whether a status already gave this decision's reason. A new
// revision that leaves a layer's directory as it was is no news.
func sameReason(before v1alpha1.AddonsLayerStatus, d layers.Decision) bool {
	ready := meta.FindStatusCondition(before.Conditions, v1alpha1.ReadyCondition)
	if ready == nil || ready.Reason != d.Reason {
		return false
	}
	return d.State != v1alpha1.StateDeployed || d.Target.Digest == before.Digest && d.Target.Version == before.Version
}

// tellDone writes one event for all actions of a sort that were carried out.
func (r *AddonsLayerReconciler) tellDone(layer *v1alpha1.AddonsLayer, results []dependents.Result, reason, words string, is func(dependents.Result) bool) {
	var objects []string
	for _, result := range results {
		if result.Err == nil && !result.Outdated && is(result) {
			objects = append(objects, result.Action.ID.String())
		}
	}
	if len(objects) > 0 {
		r.event(layer, corev1.EventTypeNormal, reason, fmt.Sprintf("%s %s", strings.Join(objects, ", "), words))
	}
}

func (r *AddonsLayerReconciler) event(layer *v1alpha1.AddonsLayer, kind, reason, message string) {
	if len(message) > maxEventNote {
		message = strings.ToValidUTF8(message[:maxEventNote-3], "") + "..."
	}
	r.Events.Eventf(layer, nil, kind, reason, "Reconcile", "%s", message)
}
