// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/strata-project/strata/api/v1alpha1"
)

// toldOf returns the events of a RemoteCluster after one look, and what people are
// sent.
func toldOf(cluster *v1alpha1.RemoteCluster, before ...metav1.Condition) ([]string, []eventv1.Event) {
	recorder, box := events.NewFakeRecorder(20), &inbox{}
	r := &RemoteClusterReconciler{Process: &Process{
		Events: recorder, Notifier: box, Instance: "strata-0",
		Now: func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 7, time.UTC) },
	}}
	r.tell(cluster, before)
	var found []string
	for len(recorder.Events) > 0 {
		found = append(found, <-recorder.Events)
	}
	return found, box.got
}

func clusterWith(conditions ...metav1.Condition) *v1alpha1.RemoteCluster {
	return &v1alpha1.RemoteCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod", UID: "u", ResourceVersion: "7"},
		Status:     v1alpha1.RemoteClusterStatus{Version: "v1.30.1", Conditions: conditions},
	}
}

func conditionOf(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func TestTellOfClusters(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return conditionOf(v1alpha1.ReadyCondition, status, reason, message)
	}
	ending := func(status metav1.ConditionStatus) metav1.Condition {
		return conditionOf(v1alpha1.CredentialsExpiringCondition, status, v1alpha1.ReasonCredentialsExpiring, "the credentials end at noon")
	}
	well := ready("True", "Reachable", "it answers")
	for name, test := range map[string]struct {
		reason        string
		before, after []metav1.Condition
		want          []string
	}{
		"the first look":           {"it is told that it waits", nil, []metav1.Condition{ready("Unknown", "Pending", "waits for Secret a/b")}, []string{"Normal Pending waits for Secret a/b"}},
		"ready":                    {"what was waited for is there", []metav1.Condition{ready("Unknown", "Pending", "")}, []metav1.Condition{well}, []string{"Normal Reachable it answers"}},
		"as before":                {"nothing has happened", []metav1.Condition{well}, []metav1.Condition{ready("True", "Reachable", "it answers, at another version")}, nil},
		"away":                     {"people look for warnings", []metav1.Condition{well}, []metav1.Condition{ready("False", "Unreachable", "no route")}, []string{"Warning Unreachable no route"}},
		"for another reason":       {"what has to be done is something else", []metav1.Condition{ready("False", "Unreachable", "no route")}, []metav1.Condition{ready("False", "CredentialsRefused", "not accepted")}, []string{"Warning CredentialsRefused not accepted"}},
		"credentials end soon":     {"somebody has to act before they do", []metav1.Condition{well, ending("False")}, []metav1.Condition{well, ending("True")}, []string{"Warning CredentialsExpiring the credentials end at noon"}},
		"they still do":            {"it was told once", []metav1.Condition{well, ending("True")}, []metav1.Condition{well, ending("True")}, nil},
		"they last":                {"which is no news", []metav1.Condition{well}, []metav1.Condition{well, ending("False")}, nil},
		"both":                     {"each is told", nil, []metav1.Condition{well, ending("True")}, []string{"Normal Reachable it answers", "Warning CredentialsExpiring the credentials end at noon"}},
		"nothing is known of it":   {"there is nothing to tell", nil, nil, nil},
		"a condition without more": {"nobody is told of a cluster's reachability twice", nil, []metav1.Condition{conditionOf(v1alpha1.ReachableCondition, "False", "Unreachable", "no route")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, sent := toldOf(clusterWith(test.after...), test.before...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			if len(sent) != len(got) {
				t.Errorf("%d events, and %d notifications", len(got), len(sent))
			}
		})
	}
}

func TestNotificationsOfClusters(t *testing.T) {
	cluster := clusterWith(conditionOf(v1alpha1.ReadyCondition, "False", "Unreachable", "no route"))
	_, got := toldOf(cluster)
	want := []eventv1.Event{{
		InvolvedObject: corev1.ObjectReference{APIVersion: "kraan.io/v1alpha1", Kind: "RemoteCluster", Namespace: "fleet", Name: "prod", UID: "u", ResourceVersion: "7"},
		Severity:       "error", Timestamp: metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 7, time.UTC)), Reason: "Unreachable", Message: "no route",
		Metadata:            map[string]string{"kraan.io/version": "v1.30.1", "kraan.io/token": "2026-11-21T12:00:00.000000007Z"},
		ReportingController: "strata", ReportingInstance: "strata-0",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("notifications (-want +got):\n%s", diff)
	}
	cluster.Status.Version, cluster.Status.Conditions[0].Message = "", strings.Repeat("ä", 20_000)
	told, got := toldOf(cluster)
	if _, found := got[0].Metadata["kraan.io/version"]; found {
		t.Errorf("metadata is %v, want no version where none is known", got[0].Metadata)
	}
	if len(got[0].Message) > maxNotification || len(told[0]) > maxEventNote+len("Warning Unreachable ") || !utf8.ValidString(got[0].Message+told[0]) {
		t.Errorf("the notification has %d bytes, the event %d", len(got[0].Message), len(told[0]))
	}
}
