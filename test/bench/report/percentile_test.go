// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPercentile(t *testing.T) {
	twenty := make([]float64, 0, 20)
	for i := 20; i >= 1; i-- {
		twenty = append(twenty, float64(i))
	}
	for _, test := range []struct {
		reason string
		values []float64
		p      float64
		want   float64
		ok     bool
	}{
		{"no values", nil, 50, 0, false},
		{"p of 0 has no rank", []float64{1}, 0, 0, false},
		{"p above 100", []float64{1}, 101, 0, false},
		{"one value is every percentile", []float64{7}, 1, 7, true},
		{"the lower of two is the median", []float64{2, 1}, 50, 1, true},
		{"the middle of three", []float64{3, 1, 2}, 50, 2, true},
		{"95 percent of 20 are 19 exactly", twenty, 95, 19, true},
		{"a little more is the next rank", twenty, 95.1, 20, true},
		{"100 is the largest", twenty, 100, 20, true},
		{"5 percent of 20 are one", twenty, 5, 1, true},
	} {
		t.Run(test.reason, func(t *testing.T) {
			before := slices.Clone(test.values)
			got, ok := Percentile(test.values, test.p)
			if got != test.want || ok != test.ok {
				t.Errorf("got %v, %t, want %v, %t", got, ok, test.want, test.ok)
			}
			if diff := cmp.Diff(before, test.values); diff != "" {
				t.Errorf("the values were changed:\n%s", diff)
			}
		})
	}
}

func TestPercentileIsNearestRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 60).Draw(t, "values")
		p := float64(rapid.IntRange(1, 100).Draw(t, "p"))
		got, ok := Percentile(values, p)
		if !ok || !slices.Contains(values, got) {
			t.Fatalf("%v, %t is not one of the values", got, ok)
		}
		atMost, below := 0, 0
		for _, v := range values {
			if v <= got {
				atMost++
			}
			if v < got {
				below++
			}
		}
		if n := float64(len(values)); float64(atMost)*100 < p*n || float64(below)*100 >= p*n {
			t.Fatalf("%v is no nearest rank: %d of %d are not above it, %d are below", got, atMost, len(values), below)
		}
	})
}

func TestPercentiles(t *testing.T) {
	want := []Figure{
		{Name: "a", Unit: Seconds, Value: 2}, {Name: "b", Unit: Seconds, Value: 3}, {Name: "c", Unit: Seconds, Value: 3},
	}
	if diff := cmp.Diff(want, Percentiles([]float64{1, 2, 3}, "a", "b", "c")); diff != "" {
		t.Error(diff)
	}
	if got := Percentiles(nil, "a", "b", "c"); got != nil {
		t.Errorf("figures of nothing: %v", got)
	}
}
