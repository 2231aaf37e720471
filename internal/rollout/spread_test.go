// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"testing"
	"time"
)

func TestOffsetIsStable(t *testing.T) {
	// These must never change: a new release would move every cluster to another
	// time of the night.
	for cluster, want := range map[string]string{"prod-1": "41m33.324880336s", "prod-2": "5m48.23309032s"} {
		if got := Offset("8c6a6b1e", cluster, 2*time.Hour).String(); got != want {
			t.Errorf("Offset of %s = %s, want %s", cluster, got, want)
		}
	}
	if Offset("a", "bc", time.Hour) == Offset("ab", "c", time.Hour) {
		t.Error("a Platform and a cluster run into each other")
	}
	if Offset("a", "b", 0) != 0 || Offset("a", "b", -time.Hour) != 0 {
		t.Error("no spread is no offset")
	}
}

func TestOffsetIsEven(t *testing.T) {
	const clusters, bins, spread = 12000, 24, 2 * time.Hour
	for _, uid := range []string{"", "8c6a6b1e", "7f2d"} {
		var counts [bins]int
		for i := range clusters {
			offset := Offset(uid, fmt.Sprintf("cluster-%d", i), spread)
			if offset < 0 || offset >= spread {
				t.Fatalf("offset %s is not in [0, %s)", offset, spread)
			}
			counts[offset/(spread/bins)]++
		}
		// Chi squared of 23 degrees of freedom exceeds 50 once in a thousand.
		chi := 0.0
		for _, count := range counts {
			d := float64(count - clusters/bins)
			chi += d * d / (clusters / bins)
		}
		if chi > 50 {
			t.Errorf("uid %q: chi squared %.1f, counts %v", uid, chi, counts)
		}
	}
}
