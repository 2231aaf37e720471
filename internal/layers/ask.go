// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import "github.com/strata-project/strata/internal/dependencies"

// Unmet returns the reason why a dependency of the observed layer does not hold,
// and what is seen of it; an empty reason where it holds. Without a Source it does
// not ask whether a newer revision changes the dependency.
func (o Observation) Unmet(dependency dependencies.Dependency) (reason, seen string) {
	if lacks := unmet(o, dependency); lacks != nil {
		return lacks.reason, lacks.seen
	}
	return "", ""
}
