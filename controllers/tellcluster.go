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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// tell writes events for what has changed since before, after the status says it:
// a RemoteCluster is ready and was not, is not any more, or is not for another
// reason; or its credentials begin to end.
func (r *RemoteClusterReconciler) tell(cluster *v1alpha1.RemoteCluster, before []metav1.Condition) {
	is := cluster.Status.Conditions
	r.tellReady(cluster, v1alpha1.RemoteClusterKind, cluster.Status.Version, is, before)
	ending := meta.FindStatusCondition(is, v1alpha1.CredentialsExpiringCondition)
	if ending != nil && ending.Status == metav1.ConditionTrue && !meta.IsStatusConditionTrue(before, v1alpha1.CredentialsExpiringCondition) {
		r.tellCondition(cluster, v1alpha1.RemoteClusterKind, cluster.Status.Version, corev1.EventTypeWarning, ending)
	}
}

// tellReady tells that an object is ready and was not, is not any more, or is not for
// another reason.
func (p *Process) tellReady(obj client.Object, of, version string, is, before []metav1.Condition) {
	ready := meta.FindStatusCondition(is, v1alpha1.ReadyCondition)
	was := meta.FindStatusCondition(before, v1alpha1.ReadyCondition)
	if ready == nil || was != nil && was.Status == ready.Status && was.Reason == ready.Reason {
		return
	}
	kind := corev1.EventTypeNormal
	if ready.Status == metav1.ConditionFalse {
		kind = corev1.EventTypeWarning
	}
	p.tellCondition(obj, of, version, kind, ready)
}

// tellCondition tells Kubernetes, and whoever else listens, of a condition of an
// object of a kind.
func (p *Process) tellCondition(obj client.Object, of, version, kind string, condition *metav1.Condition) {
	p.Events.Eventf(obj, nil, kind, condition.Reason, "Reconcile", "%s", shorten(condition.Message, maxEventNote))
	if p.Notifier != nil {
		p.Notifier.Send(p.notificationOf(obj, of, version, kind, condition))
	}
}

// notificationOf is a condition as Flux's notification-controller takes it. What has
// no namespace speaks in the controller's.
func (p *Process) notificationOf(obj client.Object, of, version, kind string, condition *metav1.Condition) eventv1.Event {
	now := metav1.NewTime(p.now())
	group := v1alpha1.GroupVersion.Group + "/"
	// What happens twice within minutes is news both times; without a token the
	// receiver takes the second for the first.
	metadata := map[string]string{group + eventv1.MetaTokenKey: now.UTC().Format(time.RFC3339Nano)}
	if version != "" {
		metadata[group+"version"] = version
	}
	return eventv1.Event{
		InvolvedObject: corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: of,
			Namespace: cmp.Or(obj.GetNamespace(), p.Settings.Namespace), Name: obj.GetName(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
		},
		Severity: severityOf(kind), Timestamp: now, Reason: condition.Reason,
		Message: shorten(cmp.Or(condition.Message, condition.Reason), maxNotification), Metadata: metadata,
		ReportingController: "strata", ReportingInstance: p.Instance,
	}
}
