// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/address"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/sources"
)

// maxEventNote is the API server's limit for what an event says, and
// maxNotification ours for what people are sent.
const (
	maxEventNote    = 1024
	maxNotification = 4096
)

// Notifier takes what is told of layers and RemoteClusters. It does not make the caller wait.
type Notifier interface {
	Send(event eventv1.Event)
}

// warnings are reasons that somebody has to act on, whatever the state.
var warnings = map[string]bool{
	v1alpha1.ReasonRolledBack: true, v1alpha1.ReasonRollbackFailed: true, v1alpha1.ReasonRollbackNotPossible: true,
	v1alpha1.ReasonUnhealthy: true, v1alpha1.ReasonDeletionBlocked: true, v1alpha1.ReasonSuspendedRelease: true, v1alpha1.ReasonWouldBreakDependants: true,
	v1alpha1.ReasonWouldReinstall: true,
}

// story is one thing that is told of a layer.
type story struct {
	kind, reason, message string
	// cause is the condition's reason where the story is of a state.
	cause string
}

// verbEvents says which actions are told, and how. mark is that of a suspension.
var verbEvents = []struct {
	verb   dependents.Verb
	mark   string
	reason string
	words  string
}{
	{verb: dependents.VerbAdopt, reason: v1alpha1.ReasonAdopted, words: "adopted"},
	{verb: dependents.VerbSupersede, reason: v1alpha1.ReasonSuperseded, words: "suspended, because another one takes over its Helm release"},
	{verb: dependents.VerbSuspend, mark: v1alpha1.SuspendedByHoldAnnotation, reason: v1alpha1.ReasonSuspended, words: "suspended due to hold"},
	{
		verb: dependents.VerbSuspend, mark: v1alpha1.SuspendedByLossAnnotation, reason: v1alpha1.ReasonSuspended,
		words: "suspended, because its cluster is away or given up",
	},
	{verb: dependents.VerbResume, reason: v1alpha1.ReasonResumed, words: "resumed"},
	{verb: dependents.VerbMark, reason: v1alpha1.ReasonOrphaned, words: "marked as orphaned"},
	{verb: dependents.VerbRelease, reason: v1alpha1.ReasonReleased, words: "released and kept"},
	{verb: dependents.VerbDelete, reason: v1alpha1.ReasonPruned, words: "removed"},
}

// tell writes events for what has changed, after the status says it.
func (r *AddonsLayerReconciler) tell(layer *v1alpha1.AddonsLayer, before v1alpha1.AddonsLayerStatus, d layers.Decision, results []dependents.Result) {
	for _, told := range verbEvents {
		r.tellDone(layer, d, results, told.reason, told.words, func(result dependents.Result) bool {
			return result.Action.Verb == told.verb && result.Action.Mark == told.mark
		})
	}
	r.tellLeftBehind(layer, d)
	r.tellDone(layer, d, results, v1alpha1.ReasonAdopted, "adopted", func(result dependents.Result) bool {
		return result.Action.Verb == dependents.VerbWrite && result.IsAdoption()
	})
	r.tellDone(layer, d, results, v1alpha1.ReasonDriftCorrected, "restored", dependents.Result.IsCorrection)
	r.tellState(layer, before, d)
}

// tellLeftBehind writes an event that names what is left behind on a cluster that
// was given up.
func (r *AddonsLayerReconciler) tellLeftBehind(layer *v1alpha1.AddonsLayer, d layers.Decision) {
	if len(d.Plan.Forsaken) == 0 {
		return
	}
	objects := make([]string, 0, len(d.Plan.Forsaken))
	for _, id := range d.Plan.Forsaken {
		objects = append(objects, id.String())
	}
	r.event(layer, d, story{
		kind: corev1.EventTypeWarning, reason: v1alpha1.ReasonLeftBehind,
		message: fmt.Sprintf("left behind with the cluster: %s", strings.Join(objects, ", ")),
	})
}

// tellState writes an event for a state that is another one than before, or has
// another reason.
func (r *AddonsLayerReconciler) tellState(layer *v1alpha1.AddonsLayer, before v1alpha1.AddonsLayerStatus, d layers.Decision) {
	if before.State == d.State && sameReason(before, d) {
		return
	}
	kind := corev1.EventTypeNormal
	if d.State == v1alpha1.StateFailed || d.State == v1alpha1.StateUnknown || d.Stalled || warnings[d.Reason] {
		kind = corev1.EventTypeWarning
	}
	r.event(layer, d, story{kind: kind, reason: string(d.State), cause: d.Reason, message: d.Message})
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

// tellDone writes one event for all actions of a sort that were carried out. Those
// that spare an object follow with the reason: a second event of the same sort would
// be taken for the first one.
func (r *AddonsLayerReconciler) tellDone(
	layer *v1alpha1.AddonsLayer,
	d layers.Decision,
	results []dependents.Result,
	reason, words string,
	is func(dependents.Result) bool,
) {
	objects := map[string][]string{}
	for _, result := range results {
		if result.Err == nil && !result.Outdated && is(result) {
			objects[result.Action.Spared] = append(objects[result.Action.Spared], result.Action.ID.String())
		}
	}
	var told []string
	for _, why := range slices.Sorted(maps.Keys(objects)) {
		text := strings.Join(objects[why], ", ") + " " + words
		if why != "" {
			text += ": " + why
		}
		told = append(told, text)
	}
	if len(told) > 0 {
		r.event(layer, d, story{kind: corev1.EventTypeNormal, reason: reason, message: strings.Join(told, "; ")})
	}
}

// tellNotKept writes an event that says why the cluster does not keep what a layer has
// deployed.
func (r *AddonsLayerReconciler) tellNotKept(layer *v1alpha1.AddonsLayer, err error) {
	r.event(layer, layers.Decision{State: layer.Status.State}, story{
		kind: corev1.EventTypeWarning, reason: v1alpha1.ReasonRevisionNotKept,
		message: fmt.Sprintf("%v: the layer can go back to version %s only while its source has it", err, layer.Spec.Version),
	})
}

// event tells Kubernetes, and whoever else listens.
func (r *AddonsLayerReconciler) event(layer *v1alpha1.AddonsLayer, d layers.Decision, s story) {
	r.Events.Eventf(layer, nil, s.kind, s.reason, "Reconcile", "%s", shorten(s.message, maxEventNote))
	if r.Notifier != nil {
		r.Notifier.Send(r.notification(layer, d, s))
	}
}

// notification is a story as Flux's notification-controller takes it. That one
// asks for a namespace, which a layer has not: it speaks in the namespace of
// its source, where its author is at home.
func (r *AddonsLayerReconciler) notification(layer *v1alpha1.AddonsLayer, d layers.Decision, s story) eventv1.Event {
	now := metav1.NewTime(r.now())
	group := v1alpha1.GroupVersion.Group + "/"
	metadata := map[string]string{group + "state": string(d.State)}
	for key, value := range map[string]string{
		eventv1.MetaRevisionKey: cmp.Or(d.Target.Revision, layer.Status.Revision),
		"version":               cmp.Or(d.Target.Version, layer.Spec.Version),
	} {
		if value != "" {
			metadata[group+key] = value
		}
	}
	if s.cause != "" {
		// A state that comes back within minutes is news all the same, and
		// whoever was told Failed must be told Deployed; the receiver takes two
		// events that differ in their time alone for one.
		metadata[group+eventv1.MetaTokenKey] = now.UTC().Format(time.RFC3339Nano)
	}
	return eventv1.Event{
		InvolvedObject: corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.AddonsLayerKind,
			Namespace: sources.Of(layer, r.Settings.Namespace).Namespace, Name: layer.Name,
			UID: layer.UID, ResourceVersion: layer.ResourceVersion,
		},
		Severity: severityOf(s.kind), Timestamp: now, Reason: cmp.Or(s.cause, s.reason),
		Message: shorten(cmp.Or(s.message, s.reason), maxNotification), Metadata: metadata,
		ReportingController: "strata", ReportingInstance: r.Instance,
	}
}

// severityOf returns what Flux calls a kind of event.
func severityOf(kind string) string {
	if kind == corev1.EventTypeWarning {
		return eventv1.EventSeverityError
	}
	return eventv1.EventSeverityInfo
}

// shorten cuts a message, which may repeat what others say, to a number of bytes of
// one printable line, without what may not be shown of addresses.
func shorten(message string, limit int) string { return address.Line(message, limit) }
