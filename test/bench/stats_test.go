// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// at returns a time some milliseconds after a fixed one.
func at(milliseconds int) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(milliseconds) * time.Millisecond)
}

// ms returns durations in milliseconds.
func ms(values ...int) []time.Duration {
	var durations []time.Duration
	for _, value := range values {
		durations = append(durations, time.Duration(value)*time.Millisecond)
	}
	return durations
}

func TestHops(t *testing.T) {
	chain := newWorkload(3, 2, true, false).layers
	seen := func(times ...int) map[string]releaseTimes {
		found := map[string]releaseTimes{}
		for i, l := range chain {
			for j, release := range l.Releases {
				if k := 2 * (2*i + j); k+1 < len(times) {
					found[release] = releaseTimes{Created: at(times[k]), FirstReady: at(times[k+1])}
				}
			}
		}
		return found
	}
	for _, c := range []struct {
		reason string
		layers []layer
		seen   map[string]releaseTimes
		want   []time.Duration
	}{
		{"from the last Ready to the first created", chain, seen(0, 100, 5, 130, 180, 300, 170, 290, 310, 400, 320, 410), ms(40, 10)},
		{"a layer that came too early shows as a negative hop", chain, seen(0, 100, 0, 100, 50, 200, 60, 200), ms(-50)},
		{"what was not seen has no hop", chain, seen(0, 100, 0, 100), nil},
		{"a layer that depends on none has no hop", newWorkload(3, 2, false, false).layers, seen(0, 100, 0, 100, 1, 100, 1, 100), nil},
	} {
		if diff := cmp.Diff(c.want, hops(c.layers, c.seen)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, diff)
		}
	}
}

func TestLastCreated(t *testing.T) {
	seen := map[string]releaseTimes{"a": {Created: at(3)}, "b": {Created: at(9)}, "c": {Created: at(5)}}
	if got := lastCreated(seen); !got.Equal(at(9)) {
		t.Errorf("the last is created at %s, want %s", got, at(9))
	}
	if got := lastCreated(nil); !got.IsZero() {
		t.Errorf("without releases it is %s", got)
	}
}
