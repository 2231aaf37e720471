// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"slices"
)

// Percentile returns the p-th percentile of values by nearest rank: the
// smallest value such that at least p percent of all are not above it. It is
// always one of the values, never something between two of them. The values
// may be in any order and stay as they are; p is above 0 and at most 100. It
// returns false when there are no values or p is out of range.
func Percentile(values []float64, p float64) (float64, bool) {
	if len(values) == 0 || !(p > 0 && p <= 100) {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(values))
	// Multiplied first: 95*20/100 is 19 exactly, 0.95*20 is not.
	rank := int(math.Ceil(p * float64(len(sorted)) / 100))
	return sorted[max(rank, 1)-1], true
}

// Percentiles returns p50, p95 and max of values in seconds as figures with
// the given names; none when there are no values.
func Percentiles(values []float64, p50, p95, highest string) []Figure {
	var figures []Figure
	for _, f := range []struct {
		name string
		p    float64
	}{{p50, 50}, {p95, 95}, {highest, 100}} {
		if value, ok := Percentile(values, f.p); ok {
			figures = append(figures, Figure{Name: f.name, Unit: Seconds, Value: value})
		}
	}
	return figures
}
