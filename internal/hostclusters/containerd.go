// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostclusters

import "github.com/strata-project/strata/internal/versions"

// LeastContainerd returns the major version of containerd that a version of Kubernetes needs
// at least: v1.35 is the last one that runs on containerd 1.
func LeastContainerd(version string) uint64 {
	parsed := versions.Semantic(version)
	if parsed != nil && (parsed.Major() > 1 || parsed.Minor() >= 36) {
		return 2
	}
	return 1
}

// IsOldContainerd tells whether a version of Kubernetes does not run on a containerd. One
// whose version is not known is not held against a host.
func IsOldContainerd(containerd, version string) bool {
	parsed := versions.Semantic(containerd)
	return parsed != nil && parsed.Major() < LeastContainerd(version)
}
