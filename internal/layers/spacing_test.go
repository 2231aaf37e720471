// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/objects"
)

func TestSpacing(t *testing.T) {
	type status = v1alpha1.AddonsLayerStatus
	in := func(state v1alpha1.State) status {
		return status{
			State: state, Version: "1.0.0", Revision: "r", Digest: "d", ObservedGeneration: 1,
			Conditions: []metav1.Condition{{Type: "Ready", Status: "Unknown", Reason: "Applying", Message: "a is not ready", LastTransitionTime: longAgo}},
			Resources:  []v1alpha1.Resource{{Kind: "ConfigMap", Name: "a", Status: "InProgress", LastTransitionTime: longAgo, Generation: 1, Digest: "x"}},
			BlockedBy:  []v1alpha1.Cause{helm(0, "a", "InProgress", "m")},
		}
	}
	now := metav1.NewTime(testNow)
	cases := map[string]struct {
		reason string
		state  v1alpha1.State
		change func(*status)
		want   time.Duration
	}{
		"nothing":     {"nothing is written anyway", v1alpha1.StateApplying, func(*status) {}, progressSpacing},
		"message":     {"it is read, and nothing else", v1alpha1.StateApplying, func(s *status) { s.Conditions[0].Message = "b is not ready" }, progressSpacing},
		"readiness":   {"one of many objects", v1alpha1.StateApplying, func(s *status) { s.Resources[0].Status, s.Resources[0].LastTransitionTime = "Deployed", now }, progressSpacing},
		"failing":     {"Helm tries again and again", v1alpha1.StateFailed, func(s *status) { s.Resources[0].Status = "InstallFailed" }, progressSpacing},
		"causes":      {"another release is in the way", v1alpha1.StateApplying, func(s *status) { s.BlockedBy = nil }, progressSpacing},
		"repeated":    {"many layers may wait for one", v1alpha1.StateApplyPending, func(s *status) { s.BlockedBy[0].Message = "n" }, progressSpacing},
		"repair":      {"a layer that waits has objects of its own", v1alpha1.StateApplyPending, func(s *status) { s.Resources[0].Status = "Progressing" }, progressSpacing},
		"state":       {"it is waited for", v1alpha1.StateApplying, func(s *status) { s.State = v1alpha1.StateFailed }, 0},
		"deployed":    {"whatever is said of a deployed layer is final", v1alpha1.StateDeployed, func(s *status) { s.Conditions[0].Message = "1 suspended" }, 0},
		"reason":      {"it is waited for", v1alpha1.StateFailed, func(s *status) { s.Conditions[0].Reason = "Timeout" }, 0},
		"condition":   {"it is waited for", v1alpha1.StateApplying, func(s *status) { s.Conditions[0].Status = "False" }, 0},
		"another":     {"a condition comes", v1alpha1.StateApplying, func(s *status) { s.Conditions = append(s.Conditions, metav1.Condition{Type: "Stalled"}) }, 0},
		"version":     {"dependants compare it", v1alpha1.StateApplying, func(s *status) { s.Version = "2.0.0" }, 0},
		"revision":    {"it is waited for", v1alpha1.StateApplying, func(s *status) { s.Revision = "q" }, 0},
		"generation":  {"dependants compare it", v1alpha1.StateApplying, func(s *status) { s.ObservedGeneration = 2 }, 0},
		"asked for":   {"somebody waits for the answer", v1alpha1.StateApplying, func(s *status) { s.LastHandledReconcileAt = "x" }, 0},
		"attempt":     {"the deadline counts from it", v1alpha1.StateApplying, func(s *status) { s.Attempt = &v1alpha1.Attempt{Digest: "e"} }, 0},
		"history":     {"it is kept", v1alpha1.StateFailed, func(s *status) { s.History = []v1alpha1.HistoryEntry{{ID: "1"}} }, 0},
		"new object":  {"nothing is written before it is known", v1alpha1.StateApplying, func(s *status) { s.Resources = append(s.Resources, v1alpha1.Resource{Name: "b"}) }, 0},
		"gone":        {"it is no longer the layer's", v1alpha1.StateApplying, func(s *status) { s.Resources = nil }, 0},
		"applied":     {"the next look goes by it", v1alpha1.StateApplying, func(s *status) { s.Resources[0].Digest, s.Resources[0].Generation = "y", 2 }, 0},
		"orphaned":    {"the grace counts from it", v1alpha1.StateApplying, func(s *status) { s.Resources[0].Status = objects.StatusOrphaned }, 0},
		"not served":  {"the next look goes by it", v1alpha1.StateApplying, func(s *status) { s.Resources[0].Status = objects.StatusNotServed }, 0},
		"superseded":  {"the next look goes by it", v1alpha1.StateApplying, func(s *status) { s.Resources[0].Status = objects.StatusSuperseded }, 0},
		"rolled back": {"the next look goes by it", v1alpha1.StateFailed, func(s *status) { s.Rollback = &v1alpha1.Rollback{To: "1"} }, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			last, next := in(tc.state), in(tc.state)
			tc.change(&next)
			before := last.DeepCopy()
			if got := Spacing(last, next, false); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
			if diff := cmp.Diff(*before, last); diff != "" {
				t.Errorf("the status has changed:\n%s", diff)
			}
		})
	}
}

func TestSpacingAfterWrites(t *testing.T) {
	for _, last := range []v1alpha1.State{v1alpha1.StateApplying, v1alpha1.StateDeployed, v1alpha1.StatePruning, v1alpha1.StateFailed, v1alpha1.StateHold} {
		for _, next := range []v1alpha1.State{v1alpha1.StateApplying, v1alpha1.StateDeployed, v1alpha1.StatePruning, v1alpha1.StateFailed, v1alpha1.StateHold} {
			want := time.Duration(0)
			if last == v1alpha1.StateApplying && next == v1alpha1.StateApplying {
				want = progressSpacing
			}
			got := Spacing(v1alpha1.AddonsLayerStatus{State: last}, v1alpha1.AddonsLayerStatus{State: next}, true)
			if got != want {
				t.Errorf("%s after %s: %s, want %s", next, last, got, want)
			}
		}
	}
}

// A status that is kept back is not missed: the next look decides the same
// from the one before it.
func TestWhatIsKeptBackDecidesNothing(t *testing.T) {
	kept := 0
	rapid.Check(t, func(t *rapid.T) {
		o := drawObservation(t)
		// Let the layer come to rest, then let its objects fare otherwise.
		for range 2 {
			report, _ := Report(o, Decide(o), nil)
			o.Layer = withStatus(o.Layer, report)
		}
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			id := releaseID(name)
			if obj := o.Live[id]; obj != nil && chance(t, 50, "moves") {
				moved := obj.DeepCopy()
				rapid.SampledFrom([]func(){func() { failing(moved) }, func() { gaveUp(moved) }, func() { moved.Object["status"] = map[string]any{} }}).Draw(t, "to")()
				o.Live[id] = moved
			}
		}
		d := Decide(o)
		next, _ := Report(o, d, nil)
		if Spacing(o.Layer.Status, next, false) == 0 || d.Plan.Writes() {
			return
		}
		kept++
		written := o
		written.Layer = withStatus(o.Layer, next)
		later := Decide(written)
		if later.State != d.State || later.Reason != d.Reason || later.Message != d.Message || verbs(later.Plan) != verbs(d.Plan) || later.Until != d.Until {
			t.Fatalf("%s %s %q %s until %s, and with the status that was kept back %s %s %q %s until %s",
				d.State, d.Reason, d.Message, verbs(d.Plan), d.Until, later.State, later.Reason, later.Message, verbs(later.Plan), later.Until)
		}
	})
	if kept == 0 {
		t.Error("nothing was kept back: the test shows nothing")
	}
}

func TestOnlyRevision(t *testing.T) {
	last := v1alpha1.AddonsLayerStatus{
		State: v1alpha1.StateDeployed, Version: "1.0.0", Revision: "main@1", Digest: "d", ObservedGeneration: 2,
		Attempt:    &v1alpha1.Attempt{Version: "1.0.0", Revision: "main@1", Digest: "d", Artifact: &v1alpha1.ArtifactReference{Digest: "a"}},
		Conditions: []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Deployed", Message: "main@1 is deployed"}},
		History:    []v1alpha1.HistoryEntry{{ID: "1", Revision: "main@1", Digest: "d", Artifact: &v1alpha1.ArtifactReference{Digest: "a"}}},
		Resources:  []v1alpha1.Resource{{Kind: "HelmRelease", Name: "a", Digest: "x"}},
	}
	tests := map[string]struct {
		change func(*v1alpha1.AddonsLayerStatus)
		want   bool
	}{
		"all that names the revision": {func(s *v1alpha1.AddonsLayerStatus) {
			s.Attempt.Revision, s.Attempt.Artifact = "main@2", nil
			s.History[0].Revision, s.History[0].Artifact = "main@2", &v1alpha1.ArtifactReference{Digest: "b"}
			s.Conditions[0].Message = "main@2 is deployed"
		}, true},
		"nothing":            {func(s *v1alpha1.AddonsLayerStatus) { s.Revision = "main@1" }, false},
		"a condition":        {func(s *v1alpha1.AddonsLayerStatus) { s.Conditions[0].Status = metav1.ConditionFalse }, false},
		"a reason":           {func(s *v1alpha1.AddonsLayerStatus) { s.Conditions[0].Reason = "Other" }, false},
		"the content":        {func(s *v1alpha1.AddonsLayerStatus) { s.Digest = "e" }, false},
		"the version":        {func(s *v1alpha1.AddonsLayerStatus) { s.Version = "2.0.0" }, false},
		"the state":          {func(s *v1alpha1.AddonsLayerStatus) { s.State = v1alpha1.StateApplying }, false},
		"the generation":     {func(s *v1alpha1.AddonsLayerStatus) { s.ObservedGeneration++ }, false},
		"an object":          {func(s *v1alpha1.AddonsLayerStatus) { s.Resources[0].Digest = "y" }, false},
		"a deployment":       {func(s *v1alpha1.AddonsLayerStatus) { s.History = append(s.History, v1alpha1.HistoryEntry{ID: "2"}) }, false},
		"an answer to a nod": {func(s *v1alpha1.AddonsLayerStatus) { s.LastHandledReconcileAt = "now" }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			next := *last.DeepCopy()
			next.Revision = "main@2"
			test.change(&next)
			before := last.DeepCopy()
			if got := OnlyRevision(last, next); got != test.want {
				t.Errorf("only the revision differs: %t, want %t", got, test.want)
			}
			if diff := cmp.Diff(*before, last); diff != "" {
				t.Errorf("it was changed:\n%s", diff)
			}
		})
	}
	applying := *last.DeepCopy()
	applying.State = v1alpha1.StateApplying
	next := *applying.DeepCopy()
	next.Revision = "main@2"
	if OnlyRevision(applying, next) {
		t.Error("what is being applied counts as deployed")
	}
}
