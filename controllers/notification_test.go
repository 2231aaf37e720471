// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// inbox keeps what is sent.
type inbox struct{ got []eventv1.Event }

func (i *inbox) Send(event eventv1.Event) { i.got = append(i.got, event) }

// notified returns what people are sent after one look.
func notified(layer *v1alpha1.AddonsLayer, d layers.Decision, results ...dependents.Result) []eventv1.Event {
	box := &inbox{}
	r := &AddonsLayerReconciler{Process: &Process{
		Events: events.NewFakeRecorder(20), Notifier: box, Instance: "strata-0",
		Settings: layers.Settings{Namespace: "strata-system"},
		Now:      func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 7, time.UTC) },
	}}
	r.tell(layer, v1alpha1.AddonsLayerStatus{}, d, results)
	return box.got
}

func TestNotifications(t *testing.T) {
	layer := &v1alpha1.AddonsLayer{
		ObjectMeta: metav1.ObjectMeta{Name: "base", UID: "u", ResourceVersion: "7"},
		Spec:       v1alpha1.AddonsLayerSpec{Version: "1.0.0"},
	}
	layer.Spec.Source.Namespace = "team-a"
	decision := layers.Decision{
		State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonTimeout, Message: "ingress is not ready",
		Target: layers.Target{Version: "1.0.0", Revision: "main@sha1:abc", Digest: "d"},
	}
	pruned := dependents.Result{Changed: true, Action: dependents.Action{
		Verb: dependents.VerbDelete, ID: objects.ID{Kind: "HelmRelease", Namespace: "a", Name: "old"},
	}}
	object := corev1.ObjectReference{APIVersion: "kraan.io/v1alpha1", Kind: "AddonsLayer", Namespace: "team-a", Name: "base", UID: "u", ResourceVersion: "7"}
	now := metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 7, time.UTC))
	want := []eventv1.Event{
		{
			InvolvedObject: object, Severity: "info", Timestamp: now, Reason: "Pruned", Message: "HelmRelease a/old removed",
			Metadata:            map[string]string{"kraan.io/state": "Failed", "kraan.io/revision": "main@sha1:abc", "kraan.io/version": "1.0.0"},
			ReportingController: "strata", ReportingInstance: "strata-0",
		},
		{
			InvolvedObject: object, Severity: "error", Timestamp: now, Reason: "Timeout", Message: "ingress is not ready",
			Metadata: map[string]string{
				"kraan.io/state": "Failed", "kraan.io/revision": "main@sha1:abc", "kraan.io/version": "1.0.0",
				"kraan.io/token": "2026-11-21T12:00:00.000000007Z",
			},
			ReportingController: "strata", ReportingInstance: "strata-0",
		},
	}
	if diff := cmp.Diff(want, notified(layer, decision, pruned)); diff != "" {
		t.Errorf("notifications (-want +got):\n%s", diff)
	}
}

func TestNotificationsOfALayerWithoutMuch(t *testing.T) {
	got := notified(&v1alpha1.AddonsLayer{}, layers.Decision{State: v1alpha1.StatePending, Reason: "SourceNotFound"})[0]
	if got.InvolvedObject.Namespace != "strata-system" {
		t.Errorf("the namespace is %q, want the controller's, where sources without one are", got.InvolvedObject.Namespace)
	}
	if got.Message == "" || got.Reason == "" {
		t.Errorf("the receiver refuses an event without reason or message: %+v", got)
	}
	if _, found := got.Metadata["kraan.io/revision"]; found {
		t.Errorf("metadata is %v, want no revision where there is none", got.Metadata)
	}
}

func TestNotificationsAreBounded(t *testing.T) {
	got := notified(&v1alpha1.AddonsLayer{}, layers.Decision{State: v1alpha1.StateFailed, Reason: "x", Message: strings.Repeat("ä", 20_000)})[0]
	if len(got.Message) > maxNotification || !utf8.ValidString(got.Message) {
		t.Errorf("the message has %d bytes", len(got.Message))
	}
}

// What a layer's Secrets hold is in no event, whatever is done with them.
func TestNobodyIsToldSecrets(t *testing.T) {
	secret := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "namespace": "a"},
		"stringData": map[string]any{"password": "hunter2"},
	}
	for _, verb := range []dependents.Verb{dependents.VerbWrite, dependents.VerbAdopt, dependents.VerbMark, dependents.VerbRelease, dependents.VerbDelete} {
		wanted := &dependents.Dependent{Object: dependents.ContentOf(&unstructured.Unstructured{Object: secret})}
		result := dependents.Result{Changed: true, Action: dependents.Action{
			Verb: verb, ID: objects.ID{Kind: "Secret", Namespace: "a", Name: "s"}, Correction: true, Wanted: wanted,
		}}
		u := untold{}
		u.add("base", v1alpha1.AddonsLayerStatus{}, []dependents.Result{result})
		_, done := u.take("base")
		text, err := json.Marshal(struct {
			Events []eventv1.Event
			Kept   []dependents.Result
		}{notified(&v1alpha1.AddonsLayer{}, layers.Decision{State: v1alpha1.StateApplying}, done...), done})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "hunter2") {
			t.Errorf("%v: %s", verb, text)
		}
	}
}
