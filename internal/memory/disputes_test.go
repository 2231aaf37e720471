// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"
	"time"

	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/fields"
	"github.com/strata-project/strata/internal/objects"
)

// A field that somebody changes each time it is corrected is corrected ever more rarely, at
// least once an hour; what comes to rest is forgotten, and so are corrections far apart.
func TestDisputes(t *testing.T) {
	begin := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	id := objects.ID{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "monitoring"}
	rival := fields.Rival{Field: "rules", Manager: "clusterrole-aggregation-controller"}
	other := fields.Rival{Field: "rules", Manager: "kubectl-edit"}
	corrected := func(by ...fields.Rival) []dependents.Result {
		return []dependents.Result{{Action: dependents.Action{Verb: dependents.VerbWrite, ID: id, Correction: true}, Changed: true, Rivals: by}}
	}

	disputes := &Disputes{}
	now := begin
	for range 2 {
		disputes.Corrected(corrected(rival), now)
		now = now.Add(time.Second)
	}
	if _, is := disputes.Of(id, now); is {
		t.Fatal("two corrections are a dispute")
	}
	disputes.Corrected(corrected(other), now)
	if _, is := disputes.Of(id, now); is {
		t.Fatal("corrections against two managers are one dispute")
	}
	for range 3 {
		disputes.Corrected(corrected(rival, other), now)
	}
	dispute, is := disputes.Of(id, now)
	if !is || dispute.Rival != rival || dispute.Times != 3 || !dispute.Until.Equal(now.Add(time.Minute)) {
		t.Fatalf("after three corrections in a minute it is %+v", dispute)
	}
	waited := []time.Duration{}
	for range 8 {
		now = dispute.Until
		disputes.Corrected(corrected(rival), now)
		dispute, _ = disputes.Of(id, now)
		waited = append(waited, dispute.Until.Sub(now))
	}
	for i, want := range []time.Duration{2, 4, 8, 16, 32, 60, 60, 60} {
		if waited[i] != want*time.Minute {
			t.Fatalf("pauses are %v, want them to double up to an hour", waited)
		}
	}
	if dispute.Times != 11 {
		t.Errorf("it was corrected %d times, want 11", dispute.Times)
	}
	if _, is := disputes.Of(id, dispute.Ends.Add(-time.Second)); !is {
		t.Error("it ends before")
	}
	if _, is := disputes.Of(id, dispute.Ends); is {
		t.Error("it does not end")
	}

	far := &Disputes{}
	for i := range 100 {
		far.Corrected(corrected(rival), begin.Add(time.Duration(i)*31*time.Second))
	}
	if dispute, is := far.Of(id, begin.Add(99*31*time.Second)); is {
		t.Errorf("corrections half a minute apart are the dispute %+v", dispute)
	}
	unchanged := corrected(rival)
	unchanged[0].Changed = false
	for range 5 {
		far.Corrected(unchanged, begin.Add(2*time.Hour))
	}
	if _, is := far.Of(id, begin.Add(2*time.Hour)); is {
		t.Error("what changed nothing is a dispute")
	}
}

// However many objects are corrected, a bounded number is remembered.
func TestDisputesAreBounded(t *testing.T) {
	disputes := &Disputes{}
	for i := range 3 * mostDisputed {
		disputes.corrected(objects.ID{Kind: "ConfigMap", Name: string(rune('a'+i%26)) + time.Duration(i).String()}, []fields.Rival{{Field: "data.a", Manager: "x"}}, time.Time{})
	}
	if got := len(disputes.objects); got > mostDisputed {
		t.Errorf("%d objects are remembered", got)
	}
}
