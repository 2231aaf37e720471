// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostkeeper

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hostplans"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/observe"
	"github.com/strata-project/strata/internal/provision"
)

// What comes back by itself is Reconciling, and what somebody has to see to is Stalled.
func TestStatusOf(t *testing.T) {
	at := func(exit hosts.Outcome, reason hosts.Reason, message string) *hostplans.Plan {
		return &hostplans.Plan{Version: "v1.36.3", Hosts: make([]hostplans.Host, 3), Decision: hosts.Decision{Outcome: exit, Reason: reason, Message: message}}
	}
	unasked := at(hosts.Error, hosts.QuorumLost, "no API server is healthy")
	unasked.NotQueried = "asked through cp-0: it answers with a list of more than 32768 KiB"
	for name, test := range map[string]struct {
		moment
		ready   metav1.ConditionStatus
		reason  string
		beside  string
		message string
	}{
		"at work":        {moment{doing: "cp-1 joins"}, metav1.ConditionUnknown, v1alpha1.ReasonProgressing, v1alpha1.ReconcilingCondition, "cp-1 joins"},
		"healthy":        {moment{plan: at(hosts.Done, "", "")}, metav1.ConditionTrue, v1alpha1.ReasonHostsHealthy, "", "3 hosts are healthy at v1.36.3"},
		"taken over":     {moment{plan: at(hosts.Update, "", "changes settings: label a of cp-0")}, metav1.ConditionUnknown, v1alpha1.ReasonProgressing, v1alpha1.ReconcilingCondition, "changes settings"},
		"a host is away": {moment{plan: at(hosts.Blocked, hosts.HostsDown, "cp-1 cannot be reached")}, metav1.ConditionFalse, "HostsDown", v1alpha1.ReconcilingCondition, "cp-1 cannot be reached"},
		"no majority":    {moment{plan: at(hosts.Error, hosts.QuorumLost, "no API server is healthy")}, metav1.ConditionFalse, "QuorumLost", v1alpha1.StalledCondition, "no API server is healthy"},
		"an answer that is not read": {
			moment{plan: unasked},
			metav1.ConditionFalse, "QuorumLost", v1alpha1.StalledCondition,
			"no API server is healthy; the cluster was not asked: asked through cp-0: it answers with a list of more than 32768 KiB",
		},
		"a wrong spec":      {moment{err: &problem{v1alpha1.ReasonInvalidSpec, "spec.version", false}}, metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec, v1alpha1.StalledCondition, "spec.version"},
		"no Secret yet":     {moment{err: &problem{v1alpha1.ReasonPending, "there is no Secret ssh", true}}, metav1.ConditionFalse, v1alpha1.ReasonPending, v1alpha1.ReconcilingCondition, "there is no Secret ssh"},
		"held":              {moment{err: &problem{v1alpha1.ReasonHold, "spec.hold is set", false}}, metav1.ConditionUnknown, v1alpha1.ReasonHold, "", "spec.hold is set"},
		"somebody is there": {moment{err: &provision.LockedError{Where: "cp-0", Holder: "root@admin"}}, metav1.ConditionUnknown, v1alpha1.ReasonHostsLocked, v1alpha1.ReconcilingCondition, "root@admin"},
		"it has failed":     {moment{err: errors.New("kubeadm has failed\x1b[31m\nhere")}, metav1.ConditionFalse, v1alpha1.ReasonActionFailed, v1alpha1.ReconcilingCondition, "kubeadm has failed"},
	} {
		t.Run(name, func(t *testing.T) {
			object := &v1alpha1.HostCluster{ObjectMeta: metav1.ObjectMeta{Generation: 4}}
			test.now = time.Unix(1000, 0)
			if test.plan != nil {
				test.sight = &observe.Sight{}
			}
			status := statusOf(object, test.moment)
			ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition)
			if ready == nil || ready.Status != test.ready || ready.Reason != test.reason || !strings.Contains(ready.Message, test.message) || strings.ContainsAny(ready.Message, "\n\x1b") {
				t.Errorf("%+v", ready)
			}
			for _, kind := range []string{v1alpha1.ReconcilingCondition, v1alpha1.StalledCondition} {
				if meta.IsStatusConditionTrue(status.Conditions, kind) != (kind == test.beside) {
					t.Errorf("%+v", status.Conditions)
				}
			}
		})
	}
}

// What is not seen at one look stays as it was: the ID of the cluster above all, by which it
// is known elsewhere. So does that a request was handled, whose annotation Flux drops.
func TestWhatWasNotSeenStays(t *testing.T) {
	object := &v1alpha1.HostCluster{}
	object.Status = v1alpha1.HostClusterStatus{ID: "fleet/edge/0a1b2c3d", Version: "v1.36.3", Etcd: "3/3", KubeConfig: "edge-kubeconfig", LastHandledReconcileAt: "now"}
	plan := &hostplans.Plan{Hosts: []hostplans.Host{{Name: "cp-0", Class: hosts.Unreachable, Note: strings.Repeat("x", 1000)}}, Decision: hosts.Decision{Outcome: hosts.Error, Reason: hosts.ReasonUnreachable}}
	status := statusOf(object, moment{plan: plan, sight: &observe.Sight{}})
	if status.ID != object.Status.ID || status.Version != "v1.36.3" || status.Etcd != "3/3" || status.KubeConfig == "" || status.Healthy != "0/1" || status.LastHandledReconcileAt != "now" {
		t.Errorf("%+v", status)
	}
	if note := status.Hosts[0].Note; len(note) > maxNote {
		t.Errorf("a note of %d bytes", len(note))
	}
}
