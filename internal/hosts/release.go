// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import "github.com/strata-project/strata/internal/versions"

// isHigher tells whether a version of Kubernetes is higher than another one. One that
// is unknown is not.
func isHigher(version, than string) bool {
	if version == than {
		return false // which most are, and costs nothing
	}
	a, b := versions.Semantic(version), versions.Semantic(than)
	return a != nil && b != nil && a.GreaterThan(b)
}

// minorsAbove returns how many minor versions one is above another; a major one counts as
// more than any.
func minorsAbove(version, below string) uint64 {
	if version == below {
		return 0
	}
	a, b := versions.Semantic(version), versions.Semantic(below)
	switch {
	case a == nil || b == nil || !a.GreaterThan(b):
		return 0
	case a.Major() != b.Major():
		return 1 << 32
	}
	return a.Minor() - b.Minor()
}
