// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// told returns the events of one look.
func told(before v1alpha1.AddonsLayerStatus, d layers.Decision, results ...dependents.Result) []string {
	recorder := events.NewFakeRecorder(20)
	(&AddonsLayerReconciler{Process: &Process{Events: recorder}}).tell(&v1alpha1.AddonsLayer{}, before, d, results)
	close(recorder.Events)
	var found []string
	for event := range recorder.Events {
		found = append(found, event)
	}
	return found
}

func TestTellStates(t *testing.T) {
	was := func(state v1alpha1.State, reason, digest string) v1alpha1.AddonsLayerStatus {
		return v1alpha1.AddonsLayerStatus{
			State: state, Revision: "1", Digest: digest,
			Conditions: []metav1.Condition{{Type: v1alpha1.ReadyCondition, Reason: reason}},
		}
	}
	is := func(state v1alpha1.State, reason, message string) layers.Decision {
		return layers.Decision{State: state, Reason: reason, Message: message, Target: layers.Target{Revision: "2", Digest: "2"}}
	}
	tests := map[string]struct {
		reason string
		before v1alpha1.AddonsLayerStatus
		after  layers.Decision
		want   []string
	}{
		"first look":    {"a layer appears", v1alpha1.AddonsLayerStatus{}, is("Pending", "SourceNotFound", "no source"), []string{"Normal Pending no source"}},
		"another state": {"it moves on", was("Applying", "Applying", "1"), is("Deployed", "Deployed", "all of it"), []string{"Normal Deployed all of it"}},
		"another reason": {
			"the same state for another cause", was("Pending", "SourceNotFound", ""), is("Pending", "SourceNotReady", "no artifact"),
			[]string{"Normal Pending no artifact"},
		},
		"another message":  {"counters and names that change are no news", was("Applying", "Applying", "1"), is("Applying", "Applying", "next one"), nil},
		"the same content": {"a revision that leaves the directory as it was is no news", was("Deployed", "Deployed", "2"), is("Deployed", "Deployed", "all of it"), nil},
		"another content": {
			"what is deployed is another content", was("Deployed", "Deployed", "1"), is("Deployed", "Deployed", "all of it"),
			[]string{"Normal Deployed all of it"},
		},
		"failed": {"people look for warnings", was("Applying", "Applying", "1"), is("Failed", "Timeout", "too long"), []string{"Warning Failed too long"}},
		"stalled": {
			"only an author can mend it", was("Applying", "Applying", "1"),
			layers.Decision{State: "Pending", Reason: "InvalidSpec", Message: "no such version", Stalled: true},
			[]string{"Warning Pending no such version"},
		},
		"rolled back": {
			"what was asked for is not what runs", was("Applying", "Applying", "1"), is("Deployed", "RolledBack", "2.0.0 has failed"),
			[]string{"Warning Deployed 2.0.0 has failed"},
		},
		"would break dependants": {
			"somebody has to decide", was("Deployed", "Deployed", "1"), is("ApplyPending", "WouldBreakDependants", "apps wants <2"),
			[]string{"Warning ApplyPending apps wants <2"},
		},
		"a suspended release": {
			"deletion would not uninstall it", was("Deployed", "Deployed", "1"), is("Deployed", "SuspendedRelease", "ingress is suspended"),
			[]string{"Warning Deployed ingress is suspended"},
		},
		"waits": {
			"a dependency that is on its way is nobody's fault", was("Deployed", "Deployed", "1"), is("ApplyPending", "DependencyVersion", "waits for base"),
			[]string{"Normal ApplyPending waits for base"},
		},
		"deletion is blocked": {
			"somebody waits for it", was("Deployed", "Deployed", "1"), is("Deployed", "DeletionBlocked", "apps depends on it"),
			[]string{"Warning Deployed apps depends on it"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, told(test.before, test.after)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

func TestTellActions(t *testing.T) {
	settled := layers.Decision{State: v1alpha1.StateApplying, Reason: "Applying"}
	before := v1alpha1.AddonsLayerStatus{
		State:      v1alpha1.StateApplying,
		Conditions: []metav1.Condition{{Type: v1alpha1.ReadyCondition, Reason: "Applying"}},
	}
	did := func(verb dependents.Verb, name string, change func(*dependents.Result)) dependents.Result {
		result := dependents.Result{Changed: true, Action: dependents.Action{
			Verb: verb, ID: objects.ID{Kind: "HelmRelease", Namespace: "default", Name: name},
		}}
		if change != nil {
			change(&result)
		}
		return result
	}
	got := told(before, settled,
		did(dependents.VerbWrite, "plain", nil),
		did(dependents.VerbWrite, "taken", func(r *dependents.Result) { r.Action.From = []string{"apps"} }),
		did(dependents.VerbWrite, "drifted", func(r *dependents.Result) { r.Action.Correction = true }),
		did(dependents.VerbWrite, "same", func(r *dependents.Result) { r.Action.Correction, r.Changed = true, false }),
		did(dependents.VerbDisown, "kraans", nil), did(dependents.VerbUnmark, "listed-again", nil),
		did(dependents.VerbAdopt, "adopted", nil), did(dependents.VerbSupersede, "renamed", nil),
		did(dependents.VerbSuspend, "held", func(r *dependents.Result) { r.Action.Mark = v1alpha1.SuspendedByHoldAnnotation }),
		did(dependents.VerbSuspend, "lost", func(r *dependents.Result) { r.Action.Mark = v1alpha1.SuspendedByLossAnnotation }),
		did(dependents.VerbResume, "resumed", nil),
		did(dependents.VerbMark, "orphan-a", nil), did(dependents.VerbMark, "orphan-b", nil),
		did(dependents.VerbMark, "changed", func(r *dependents.Result) { r.Outdated = true }),
		did(dependents.VerbRelease, "kept", nil),
		did(dependents.VerbRelease, "spared", func(r *dependents.Result) { r.Action.Spared = "somebody else's" }),
		did(dependents.VerbRelease, "spared-too", func(r *dependents.Result) { r.Action.Spared = "somebody else's" }), did(dependents.VerbDelete, "gone", nil),
		did(dependents.VerbDelete, "refused", func(r *dependents.Result) { r.Err = errors.New("refused") }),
	)
	want := []string{
		"Normal Adopted HelmRelease default/adopted adopted",
		"Normal Superseded HelmRelease default/renamed suspended, because another one takes over its Helm release",
		"Normal Suspended HelmRelease default/held suspended due to hold",
		"Normal Suspended HelmRelease default/lost suspended, because its cluster is away or given up",
		"Normal Resumed HelmRelease default/resumed resumed",
		"Normal Orphaned HelmRelease default/orphan-a, HelmRelease default/orphan-b marked as orphaned",
		"Normal Released HelmRelease default/kept released and kept; HelmRelease default/spared, HelmRelease default/spared-too released and kept: somebody else's",
		"Normal Pruned HelmRelease default/gone removed",
		"Normal Adopted HelmRelease default/taken adopted",
		"Normal DriftCorrected HelmRelease default/drifted restored",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestTellShortensWhatTheServerRefuses(t *testing.T) {
	got := told(v1alpha1.AddonsLayerStatus{}, layers.Decision{State: "Pending", Reason: "x", Message: strings.Repeat("ä", maxEventNote)})
	note := strings.TrimPrefix(got[0], "Normal Pending ")
	if len(note) > maxEventNote || !utf8.ValidString(note) || !strings.HasSuffix(note, "...") {
		t.Errorf("the note has %d bytes and ends with %q", len(note), note[len(note)-6:])
	}
}
