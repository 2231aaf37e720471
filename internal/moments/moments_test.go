// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package moments

import (
	"testing"
	"time"
)

func TestEarlier(t *testing.T) {
	none, noon := time.Time{}, time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		reason     string
		a, b, want time.Time
	}{
		{"none and none are none", none, none, none},
		{"none does not count", none, noon, noon},
		{"the earlier one", noon, noon.Add(time.Second), noon},
		{"the same", noon, noon, noon},
	} {
		if got := Earlier(tc.a, tc.b); !got.Equal(tc.want) {
			t.Errorf("%s: got %s", tc.reason, got)
		}
		if got := Earlier(tc.b, tc.a); !got.Equal(tc.want) {
			t.Errorf("%s, the other way round: got %s", tc.reason, got)
		}
	}
}
