// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package acts

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/platforms"
)

// Each approval has its person and its reason, so that a second one takes nothing
// from the first.
func TestApproversAreKept(t *testing.T) {
	second := &platforms.Approval{Value: "second@1.1.0", Annotation: "first@1.1.0,second@1.1.0", Reason: "seen"}
	for reason, tc := range map[string]struct {
		has  map[string]string
		by   string
		want map[string]any
	}{
		"there is no other": {nil, "bo", map[string]any{"by": `{"second@1.1.0":"bo"}`, "why": `{"second@1.1.0":"seen"}`}},
		"one of before": {
			map[string]string{v1alpha1.ApproveAnnotation: "first@1.1.0", v1alpha1.ApprovedByAnnotation: "ann"},
			"bo",
			map[string]any{"by": `{"first@1.1.0":"ann","second@1.1.0":"bo"}`, "why": `{"second@1.1.0":"seen"}`},
		},
		"one by the plug-in": {
			map[string]string{v1alpha1.ApproveAnnotation: "first@1.1.0", v1alpha1.ApprovedByAnnotation: `{"first@1.1.0":"ann"}`, v1alpha1.ApproveReasonAnnotation: `{"first@1.1.0":"well"}`},
			"bo",
			map[string]any{"by": `{"first@1.1.0":"ann","second@1.1.0":"bo"}`, "why": `{"first@1.1.0":"well","second@1.1.0":"seen"}`},
		},
		"nobody is known": {
			map[string]string{v1alpha1.ApproveAnnotation: "first@1.1.0", v1alpha1.ApprovedByAnnotation: "ann"},
			"",
			map[string]any{"by": `{"first@1.1.0":"ann"}`, "why": `{"second@1.1.0":"seen"}`},
		},
	} {
		made := ApproveOf(second, tc.has, tc.by)
		got := map[string]any{"by": made[v1alpha1.ApprovedByAnnotation], "why": made[v1alpha1.ApproveReasonAnnotation]}
		if diff := cmp.Diff(tc.want, got); diff != "" || made[v1alpha1.ApproveAnnotation] != second.Annotation {
			t.Errorf("%s: %s", reason, diff)
		}
	}
}
