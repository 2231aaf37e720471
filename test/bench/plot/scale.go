// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package plot

import "math"

// scale is a logarithmic axis: equal factors have equal lengths.
type scale struct {
	low, high float64 // the values at its ends, above 0
	from, to  float64 // where its ends are drawn
}

// newScale returns an axis that holds all values, with ends at 1, 2 or 5 of
// a power of ten.
func newScale(values []float64, from, to float64) scale {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	s := scale{low: roundTo(low, false), high: roundTo(high, true), from: from, to: to}
	if s.low == s.high {
		s.low, s.high = roundTo(low*0.99, false), roundTo(high*1.01, true)
	}
	return s
}

// at returns where a value is drawn.
func (s scale) at(v float64) float64 {
	return s.from + (s.to-s.from)*math.Log(v/s.low)/math.Log(s.high/s.low)
}

// ticks returns the values that are written at the axis: powers of ten, and
// twice and five times those where there are few.
func (s scale) ticks() []float64 {
	steps := []float64{1, 2, 5}
	if s.high/s.low > 200 {
		steps = []float64{1}
	}
	var ticks []float64
	for e := math.Floor(math.Log10(s.low)); ; e++ {
		for _, step := range steps {
			v := step * math.Pow(10, e)
			if v > s.high*1.0001 {
				return ticks
			}
			if v >= s.low*0.9999 {
				ticks = append(ticks, v)
			}
		}
	}
}

// roundTo returns the next 1, 2 or 5 of a power of ten, above or below v.
func roundTo(v float64, up bool) float64 {
	base := math.Pow(10, math.Floor(math.Log10(v)))
	last := base
	for _, step := range []float64{1, 2, 5, 10} {
		bound := step * base
		if up && bound >= v*0.9999 {
			return bound
		}
		if !up && bound > v*1.0001 {
			return last
		}
		last = bound
	}
	return last
}
