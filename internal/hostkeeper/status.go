// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostkeeper

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/conditions"
	"github.com/strata-project/strata/internal/hostplans"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/observe"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/provision"
)

// maxNote bounds what is said of one host, in bytes: there may be hundreds.
const maxNote = 300

// moment is what is known of a HostCluster at one time.
type moment struct {
	now time.Time
	// plan and sight of the last look; nil before the first one.
	plan  *hostplans.Plan
	sight *observe.Sight
	// doing says what goes on; empty where nothing does.
	doing string
	// err is why it could not be done.
	err error
}

// statusOf returns the status of a HostCluster. What was not seen now stays as it was.
func statusOf(object *v1alpha1.HostCluster, m moment) v1alpha1.HostClusterStatus {
	status := *object.Status.DeepCopy()
	status.ObservedGeneration = object.Generation
	// Flux drops the annotation where git lacks it, and a request that was handled stays so.
	status.LastHandledReconcileAt = cmp.Or(object.Annotations[v1alpha1.ReconcileRequestAnnotation], object.Status.LastHandledReconcileAt)
	if m.plan != nil {
		fillHosts(&status, m)
	}
	set := conditions.New(object.Status.Conditions, object.Generation, m.now)
	kind, state, reason, message := verdict(m)
	set.Put(v1alpha1.ReadyCondition, state, reason, message)
	if kind != "" {
		set.Put(kind, metav1.ConditionTrue, reason, message)
	}
	status.Conditions = set.List
	return status
}

// verdict says whether a HostCluster is ready, and which condition it has beside that.
func verdict(m moment) (kind string, ready metav1.ConditionStatus, reason, message string) {
	var wrong *problem
	var locked *provision.LockedError
	switch {
	case m.doing != "":
		return v1alpha1.ReconcilingCondition, metav1.ConditionUnknown, v1alpha1.ReasonProgressing, m.doing
	case errors.As(m.err, &wrong) && wrong.reason == v1alpha1.ReasonHold:
		return "", metav1.ConditionUnknown, wrong.reason, wrong.message
	case errors.As(m.err, &wrong) && wrong.passes:
		return v1alpha1.ReconcilingCondition, metav1.ConditionFalse, wrong.reason, wrong.message
	case errors.As(m.err, &wrong):
		return v1alpha1.StalledCondition, metav1.ConditionFalse, wrong.reason, wrong.message
	case errors.As(m.err, &locked):
		return v1alpha1.ReconcilingCondition, metav1.ConditionUnknown, v1alpha1.ReasonHostsLocked, m.err.Error()
	case m.err != nil:
		return v1alpha1.ReconcilingCondition, metav1.ConditionFalse, v1alpha1.ReasonActionFailed, m.err.Error()
	case m.plan.Outcome == hosts.Done:
		return "", metav1.ConditionTrue, v1alpha1.ReasonHostsHealthy, healthyMessage(m.plan)
	case isLeft(m.plan):
		return v1alpha1.ReconcilingCondition, metav1.ConditionUnknown, v1alpha1.ReasonProgressing, messageOf(m.plan)
	case m.plan.Reason == hosts.HostsDown || m.plan.Reason == hosts.ReasonUnreachable:
		// They may come back by themselves.
		return v1alpha1.ReconcilingCondition, metav1.ConditionFalse, string(m.plan.Reason), messageOf(m.plan)
	}
	return v1alpha1.StalledCondition, metav1.ConditionFalse, string(m.plan.Reason), messageOf(m.plan)
}

// messageOf says what a plan says, and why the cluster was not asked: an answer that is not
// read looks like one that has not come.
func messageOf(plan *hostplans.Plan) string {
	if plan.NotQueried == "" {
		return plan.Message
	}
	return plan.Message + "; the cluster was not asked: " + plan.NotQueried
}

// isLeft tells whether a run has left something to the next one, as a take-over does: it saves
// the specification alone.
func isLeft(plan *hostplans.Plan) bool {
	return plan.Outcome != hosts.Done && plan.Outcome != hosts.Blocked && plan.Outcome != hosts.Error
}

// healthyMessage says what there is.
func healthyMessage(plan *hostplans.Plan) string {
	text := fmt.Sprintf("%d hosts are healthy at %s", len(plan.Hosts), plan.Version)
	if len(plan.Hosts) == 1 {
		text = "1 host is healthy at " + plan.Version
	}
	for _, warning := range plan.Warnings {
		text += "; " + warning
	}
	return text
}

// fillHosts says how the hosts are.
func fillHosts(status *v1alpha1.HostClusterStatus, m moment) {
	status.Hosts = nil
	healthy := 0
	for _, host := range m.plan.Hosts {
		status.Hosts = append(status.Hosts, v1alpha1.HostStatus{
			Name: host.Name, Role: host.Role, Class: string(host.Class), Version: host.Version, Note: printable.Line(host.Note, maxNote),
		})
		if host.Class == hosts.Healthy {
			healthy++
		}
	}
	status.Healthy = fmt.Sprintf("%d/%d", healthy, len(m.plan.Hosts))
	if m.sight.Cluster == nil {
		return // the rest was not asked for
	}
	members := 0
	for _, member := range m.plan.Members {
		if member.Healthy && !member.Learner {
			members++
		}
	}
	status.Etcd = fmt.Sprintf("%d/%d", members, len(m.plan.Members))
	status.Version = m.sight.Observation.Cluster.Version
	if m.plan.ID != "" {
		status.ID = m.plan.ID
	}
	status.CertificatesEnd = nil
	for _, facts := range m.sight.Facts {
		if ends := metav1.NewTime(facts.Expires()); !ends.IsZero() && (status.CertificatesEnd == nil || ends.Before(status.CertificatesEnd)) {
			status.CertificatesEnd = &ends
		}
	}
}
