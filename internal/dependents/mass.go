// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

// minMass is how many may always go at once.
const minMass = 3

// IsMass tells whether so many of a total are too many to go at once without somebody saying
// that it is meant: more than minMass, and more than so many percent; 0 percent is no limit.
func IsMass(going, total, maxPercent int) bool {
	return maxPercent > 0 && going > minMass && going*100 > total*maxPercent
}
