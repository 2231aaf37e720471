// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories/directoriestest"
)

func TestDeadlineUnderAClockThatIsSet(t *testing.T) {
	began := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	minutes := func(n int) *time.Duration { d := time.Duration(n) * time.Minute; return &d }
	cases := map[string]struct {
		reason   string
		now      time.Time
		underWay *time.Duration
		began    time.Time
		want     time.Time
	}{
		"unknown":  {"by the status alone", began.Add(time.Hour), nil, began, began.Add(5*time.Minute + time.Second)},
		"steady":   {"both say the same, but for the second that is cut off", began.Add(time.Minute), minutes(1), began, began.Add(5*time.Minute + time.Second)},
		"forward":  {"of the hour only two minutes have passed", began.Add(time.Hour), minutes(2), began, began.Add(time.Hour + 3*time.Minute)},
		"new":      {"what is known is of another attempt", began.Add(time.Hour), minutes(2), began.Add(time.Hour), began.Add(time.Hour + 5*time.Minute + time.Second)},
		"too long": {"a clock that was set back has no part in what passed before", began.Add(time.Minute), minutes(90), began, began.Add(5*time.Minute + time.Second)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := &v1alpha1.AddonsLayer{}
			l.Status.Attempt = &v1alpha1.Attempt{Digest: "a", StartTime: metav1.NewTime(began)}
			o := Observation{Now: tc.now, Layer: l, UnderWay: tc.underWay}
			attempt := &v1alpha1.Attempt{Digest: "a", StartTime: metav1.NewTime(tc.began)}
			if got := o.deadline(attempt, 5*time.Minute); !got.Equal(tc.want) {
				t.Errorf("%s: the deadline is %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// A roll-out that seems to begin in the future begins now: its deadline is not
// put off by as much as the clock was set back.
func TestAttemptOfTheFutureBeginsNow(t *testing.T) {
	wanted := directoriestest.Of(newRevision, directoriestest.HelmRelease("a"))
	o := observation(layer(), wanted, lives())
	first, _ := Report(o, Decide(o), nil)
	o.Layer = withStatus(o.Layer, first)
	o.Now = o.Now.Add(-time.Hour)
	decision := Decide(o)
	if start := decision.Attempt.StartTime.Time; start.After(o.Now) || decision.Until.Sub(o.Now) > time.Hour {
		t.Errorf("at %s it began at %s and fails at %s", o.Now, start, decision.Until)
	}
}
