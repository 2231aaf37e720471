// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package moments compares points in time of which some may be unset. It is pure,
// and imports no other package of Strata.
package moments

import "time"

// Earlier returns the earlier of two moments. A zero one is none and does not
// count; the result is zero where both are.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
