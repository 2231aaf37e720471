// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// told is a change of release a.
func told(kind, version string, generation int64, mark, status string, milliseconds int) change {
	seen := change{Type: kind, At: at(milliseconds)}
	seen.Object.Metadata.Name = "a"
	seen.Object.Metadata.ResourceVersion = version
	seen.Object.Metadata.Generation = generation
	seen.Object.Spec.Values.Mark = mark
	seen.Object.Status = json.RawMessage(status)
	return seen
}

func TestReleaseRecord(t *testing.T) {
	ready := func(generation int64) string {
		status, err := json.Marshal(map[string]any{
			"observedGeneration": generation,
			"conditions":         []any{map[string]any{"type": "Ready", "status": "True"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(status)
	}
	for _, c := range []struct {
		reason  string
		changes []change
		want    releaseTimes
		ready   bool
	}{
		{
			"created",
			[]change{told("ADDED", "1", 1, "x", "", 5)},
			releaseTimes{Created: at(5), Mark: "x", MarkAt: at(5), Generation: 1, Writes: 1},
			false,
		},
		{
			"Ready, which is no write of another",
			[]change{told("ADDED", "1", 1, "x", "", 5), told("MODIFIED", "2", 1, "x", ready(1), 9)},
			releaseTimes{Created: at(5), Mark: "x", MarkAt: at(5), Generation: 1, Writes: 1, ReadyGeneration: 1, ReadyAt: at(9), FirstReady: at(9)},
			true,
		},
		{
			"changed and Ready as it was before",
			[]change{
				told("ADDED", "1", 1, "x", "", 5), told("MODIFIED", "2", 1, "x", ready(1), 9), told("MODIFIED", "3", 2, "y", ready(1), 12),
			},
			releaseTimes{Created: at(5), Mark: "y", MarkAt: at(12), Generation: 2, Writes: 2, ReadyGeneration: 1, ReadyAt: at(9), FirstReady: at(9)},
			false,
		},
		{
			"Ready again",
			[]change{
				told("ADDED", "1", 1, "x", ready(1), 5), told("MODIFIED", "3", 2, "y", ready(1), 12), told("MODIFIED", "4", 2, "y", ready(2), 20),
			},
			releaseTimes{Created: at(5), Mark: "y", MarkAt: at(12), Generation: 2, Writes: 2, ReadyGeneration: 2, ReadyAt: at(20), FirstReady: at(5)},
			true,
		},
		{
			"told again when a watch begins again",
			[]change{told("ADDED", "1", 1, "x", "", 5), told("ADDED", "1", 1, "x", "", 50)},
			releaseTimes{Created: at(5), Mark: "x", MarkAt: at(5), Generation: 1, Writes: 1},
			false,
		},
		{
			"written without a new generation",
			[]change{told("ADDED", "1", 1, "x", "", 5), told("MODIFIED", "2", 1, "x", "", 6)},
			releaseTimes{Created: at(5), Mark: "x", MarkAt: at(5), Generation: 1, Writes: 2},
			false,
		},
		{
			"deleted",
			[]change{told("ADDED", "1", 1, "x", "", 5), told("DELETED", "2", 1, "x", "", 6)},
			releaseTimes{},
			false,
		},
	} {
		record := newReleaseRecord()
		for _, seen := range c.changes {
			record.tell(seen, readyGeneration(seen.Object.Status))
		}
		got := record.get("a")
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, diff)
		}
		if got.isReady() != c.ready {
			t.Errorf("%s: Ready is %t, want %t", c.reason, got.isReady(), c.ready)
		}
	}
}

func TestLayerRecord(t *testing.T) {
	record := newLayerRecord()
	record.tell(told("ADDED", "1", 1, "", "", 1), "")
	record.tell(told("MODIFIED", "2", 1, "", "", 2), "r1")
	record.tell(told("MODIFIED", "3", 1, "", "", 3), "r1")
	record.tell(told("ADDED", "3", 1, "", "", 4), "r1")
	if count, last := record.settled("r1"); count != 1 || !last.Equal(at(2)) {
		t.Errorf("%d settled, the last at %s; want 1 at %s", count, last, at(2))
	}
	if count, _ := record.settled("r2"); count != 0 {
		t.Errorf("%d settled at a revision that nothing has", count)
	}
	if diff := cmp.Diff(map[string]int{"a": 2}, record.changes()); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestSourceRecord(t *testing.T) {
	record := newSourceRecord()
	arrived := record.arrival("r1")
	record.tell("a", "r2", at(1))
	select {
	case <-arrived:
		t.Fatal("another revision counts as this one")
	default:
	}
	record.tell("a", "r1", at(2))
	record.tell("b", "r1", at(3))
	<-arrived
	if got := record.arrived("r1"); !got.Equal(at(2)) {
		t.Errorf("arrived at %s, want %s", got, at(2))
	}
	if got := record.arrived(arrivalAt("b", "r1")); !got.Equal(at(3)) {
		t.Errorf("arrived at source b at %s, want %s", got, at(3))
	}
	if got := record.arrived(arrivalAt("b", "r2")); !got.IsZero() {
		t.Errorf("arrived at source b, where it never was, at %s", got)
	}
}
