// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"time"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// tell writes events for what has changed since before, after the status says it:
// a RemoteCluster is ready and was not, is not any more, or is not for another
// reason; or its credentials begin to end.
func (r *RemoteClusterReconciler) tell(cluster *v1alpha1.RemoteCluster, before []metav1.Condition) {
	is := cluster.Status.Conditions
	if ready := meta.FindStatusCondition(is, v1alpha1.ReadyCondition); ready != nil {
		was := meta.FindStatusCondition(before, v1alpha1.ReadyCondition)
		if was == nil || was.Status != ready.Status || was.Reason != ready.Reason {
			kind := corev1.EventTypeNormal
			if ready.Status == metav1.ConditionFalse {
				kind = corev1.EventTypeWarning
			}
			r.event(cluster, kind, ready)
		}
	}
	ending := meta.FindStatusCondition(is, v1alpha1.CredentialsExpiringCondition)
	if ending != nil && ending.Status == metav1.ConditionTrue && !meta.IsStatusConditionTrue(before, v1alpha1.CredentialsExpiringCondition) {
		r.event(cluster, corev1.EventTypeWarning, ending)
	}
}

// event tells Kubernetes, and whoever else listens, of a condition.
func (r *RemoteClusterReconciler) event(cluster *v1alpha1.RemoteCluster, kind string, condition *metav1.Condition) {
	r.Layers.Events.Eventf(cluster, nil, kind, condition.Reason, "Reconcile", "%s", shorten(condition.Message, maxEventNote))
	if r.Layers.Notifier != nil {
		r.Layers.Notifier.Send(r.notification(cluster, kind, condition))
	}
}

// notification is a condition as Flux's notification-controller takes it.
func (r *RemoteClusterReconciler) notification(cluster *v1alpha1.RemoteCluster, kind string, condition *metav1.Condition) eventv1.Event {
	now := metav1.NewTime(r.Layers.now())
	group := v1alpha1.GroupVersion.Group + "/"
	// A cluster that is lost twice within minutes is news both times; without a
	// token the receiver takes the second for the first.
	metadata := map[string]string{group + eventv1.MetaTokenKey: now.UTC().Format(time.RFC3339Nano)}
	if cluster.Status.Version != "" {
		metadata[group+"version"] = cluster.Status.Version
	}
	return eventv1.Event{
		InvolvedObject: corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.RemoteClusterKind,
			Namespace: cluster.Namespace, Name: cluster.Name, UID: cluster.UID, ResourceVersion: cluster.ResourceVersion,
		},
		Severity: severityOf(kind), Timestamp: now, Reason: condition.Reason,
		Message: shorten(cmp.Or(condition.Message, condition.Reason), maxNotification), Metadata: metadata,
		ReportingController: "strata", ReportingInstance: r.Layers.Instance,
	}
}
