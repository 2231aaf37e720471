// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/objects"
)

// How something stands.
const (
	// Good is as it should be.
	Good = "good"
	// Busy is on its way.
	Busy = "busy"
	// Warning asks for a look.
	Warning = "warning"
	// Bad has failed.
	Bad = "bad"
)

// Standing says how the state of a layer, of an object or of a condition stands:
// Good, Busy, Warning or Bad. It is empty where there is no state.
func Standing(state string) string {
	switch state {
	case string(v1alpha1.StateDeployed), "True", "Ready", "Running", "Current", "yes":
		return Good
	case string(v1alpha1.StateApplying), string(v1alpha1.StatePruning), string(v1alpha1.StatePending), objects.StatusMissing, objects.StatusProgress, "Unknown":
		return Busy
	case string(v1alpha1.StateFailed), "False", "no":
		return Bad
	case "", nothing:
		return ""
	}
	return Warning
}
