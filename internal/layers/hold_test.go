// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/api/v1alpha1"
)

func TestHoldOf(t *testing.T) {
	holds := func(reason string) layerChange { return annotation(v1alpha1.HoldAnnotation, reason) }
	until := func(text string) layerChange { return annotation(v1alpha1.HoldUntilAnnotation, text) }
	bySpec := func(l *v1alpha1.AddonsLayer) { l.Spec.Hold = true }
	later := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		layer  *v1alpha1.AddonsLayer
		want   Hold
	}{
		"none":           {"nothing holds it", layer(), Hold{}},
		"specification":  {"it holds until it is taken away", layer(bySpec), Hold{Active: true, Reason: "spec.hold is true"}},
		"annotation":     {"its value is the reason", layer(holds("freeze")), Hold{Active: true, Reason: "freeze"}},
		"without reason": {"its presence holds", layer(holds("")), Hold{Active: true}},
		"false":          {"the word for no", layer(holds("false")), Hold{}},
		"until": {
			"it ends by itself", layer(holds("freeze"), until("2026-12-01T08:00:00Z")),
			Hold{Active: true, Reason: "freeze", Until: later},
		},
		"until, elsewhere": {
			"a time zone is understood", layer(holds("freeze"), until("2026-12-01T10:00:00+02:00")),
			Hold{Active: true, Reason: "freeze", Until: later},
		},
		"over":              {"at that very moment", layer(holds("freeze"), until(testNow.Format(time.RFC3339Nano))), Hold{}},
		"end without hold":  {"an end holds nothing", layer(until("2026-12-01T08:00:00Z")), Hold{}},
		"both":              {"the specification outlives the annotation", layer(bySpec, holds("freeze"), until("2026-12-01T08:00:00Z")), Hold{Active: true, Reason: "freeze"}},
		"both, one over":    {"the specification holds still", layer(bySpec, holds("freeze"), until("2026-01-01T08:00:00Z")), Hold{Active: true, Reason: "spec.hold is true"}},
		"both, no words":    {"the specification is the reason", layer(bySpec, holds("true")), Hold{Active: true, Reason: "spec.hold is true"}},
		"releases":          {"they are suspended too", layer(bySpec, annotation(v1alpha1.HoldReleasesAnnotation, "true")), Hold{Active: true, Reason: "spec.hold is true", Releases: true}},
		"releases, a typo":  {"only the word for yes counts", layer(bySpec, annotation(v1alpha1.HoldReleasesAnnotation, "yes")), Hold{Active: true, Reason: "spec.hold is true"}},
		"releases, no hold": {"nothing is held", layer(annotation(v1alpha1.HoldReleasesAnnotation, "true")), Hold{Releases: true}},
		"unreadable end": {
			"it does not end by itself, and says so", layer(holds("freeze"), until("tomorrow")),
			Hold{Active: true, Reason: `freeze (the annotation kraan.io/hold-until is "tomorrow", which is no RFC 3339 time, so the hold does not end by itself)`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := HoldOf(tc.layer, testNow)
			got.Until = got.Until.UTC()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func FuzzHold(f *testing.F) {
	f.Add("freeze", "2026-12-01T08:00:00Z", false)
	f.Add("", "tomorrow", true)
	f.Add("false", "", false)
	f.Add("true", "0001-01-01T00:00:00Z", false)
	f.Fuzz(func(t *testing.T, reason, until string, bySpec bool) {
		l := layer(annotation(v1alpha1.HoldAnnotation, reason), annotation(v1alpha1.HoldUntilAnnotation, until))
		l.Spec.Hold = bySpec
		hold := HoldOf(l, testNow)
		if bySpec && !hold.Active {
			t.Error("spec.hold holds, whatever an annotation says")
		}
		if !hold.Until.IsZero() && (!hold.Active || !testNow.Before(hold.Until)) {
			t.Errorf("an end that is past, or of nothing: %+v", hold)
		}
		if !hold.Until.IsZero() && HoldOf(l, hold.Until).Active {
			t.Errorf("it does not end when it says: %+v", hold)
		}
	})
}
