// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPut(t *testing.T) {
	before := metav1.NewTime(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC))
	now := time.Date(2026, 1, 2, 4, 0, 0, 900_000_000, time.UTC)
	last := []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Deployed", LastTransitionTime: before},
		{Type: "Stalled", Status: metav1.ConditionTrue, Reason: "Broken", LastTransitionTime: before},
		{Type: "Gone", Status: metav1.ConditionTrue, Reason: "Old", LastTransitionTime: before},
	}
	set := New(last, 7, now)
	set.Put("Ready", metav1.ConditionTrue, "DeployedAgain", "another reason\nin two lines")
	set.Put("Stalled", metav1.ConditionFalse, "Fine", "as https://me:pw@example.com/a?token=x says")
	set.Put("New", metav1.ConditionUnknown, "Asked", "")
	second := metav1.NewTime(now.Truncate(time.Second))
	want := []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionTrue, Reason: "DeployedAgain", Message: "another reason in two lines", ObservedGeneration: 7, LastTransitionTime: before},
		{Type: "Stalled", Status: metav1.ConditionFalse, Reason: "Fine", ObservedGeneration: 7, LastTransitionTime: second},
		{Type: "New", Status: metav1.ConditionUnknown, Reason: "Asked", ObservedGeneration: 7, LastTransitionTime: second},
	}
	shown := set.List[1].Message
	want[1].Message = shown
	if diff := cmp.Diff(want, set.List); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.Contains(shown, "example.com") || strings.Contains(shown, "pw") || strings.Contains(shown, "token=x") {
		t.Errorf("the address is shown as %q", shown)
	}
}

// The API server refuses a message of more than 32768 bytes, and with it the status.
func TestMessagesAreBounded(t *testing.T) {
	set := New(nil, 1, time.Time{})
	set.Put("Ready", metav1.ConditionFalse, "Failed", strings.Repeat("ä", 40_000))
	if got := set.List[0].Message; len(got) > maxMessage || !strings.HasPrefix(got, "ää") {
		t.Errorf("it has %d bytes: %.20s", len(got), got)
	}
}
