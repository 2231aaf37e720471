// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Stage is a part of the fleet that is rolled out to before the next.
type Stage struct {
	Name string
	// MaxUnavailable is how many clusters may be moving at a time, as a number or
	// as a percentage of all clusters of the stage, rounded down; nil for 1, and
	// never less than 1.
	MaxUnavailable *intstr.IntOrString
	// Soak is how long the last cluster must have been at the version before the
	// next stage begins.
	Soak time.Duration
	// MaxFailures is how many clusters may fail before everything halts, and how
	// many may be missing when the stage ends; counted as MaxUnavailable; nil for 0.
	MaxFailures *intstr.IntOrString
	// Approval is true where nothing of the stage begins before somebody approves.
	Approval bool
	// Asks is what approves the stage; empty for what ApprovalFor returns.
	Asks string
}

// asks returns what approves the stage for a version.
func (s Stage) asks(version string) string { return cmp.Or(s.Asks, ApprovalFor(s.Name, version)) }

// Rest is the name of the stage after all others, which holds the clusters that
// none of them has. No stage of a specification can be named so.
const Rest = "(rest)"

// ApprovalFor returns the value that approves a stage for a version.
func ApprovalFor(stage, version string) string { return stage + "@" + version }

// unavailable returns how many of a number of clusters may be moving.
func (s Stage) unavailable(total int) int { return max(1, amount(s.MaxUnavailable, total, 1)) }

// failures returns how many of a number of clusters may fail.
func (s Stage) failures(total int) int { return max(0, amount(s.MaxFailures, total, 0)) }

func amount(value *intstr.IntOrString, total, otherwise int) int {
	if value == nil {
		return otherwise
	}
	scaled, err := intstr.GetScaledValueFromIntOrPercent(value, total, false)
	if err != nil {
		return otherwise
	}
	return scaled
}

var stageName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// ValidateStages returns what is wrong with stages, each error with the name of
// its field.
func ValidateStages(stages []Stage) []error {
	var errs []error
	seen := map[string]bool{}
	for i, stage := range stages {
		wrong := func(field, format string, args ...any) {
			errs = append(errs, fmt.Errorf("stages[%d].%s: %s", i, field, fmt.Sprintf(format, args...)))
		}
		switch {
		case !stageName.MatchString(stage.Name):
			wrong("name", "%q is no name of lower case letters, digits and dashes, at most 63", stage.Name)
		case seen[stage.Name]:
			wrong("name", "%s is there twice", stage.Name)
		}
		seen[stage.Name] = true
		if message := wrongAmount(stage.MaxUnavailable, 1); message != "" {
			wrong("maxUnavailable", "%s", message)
		}
		if message := wrongAmount(stage.MaxFailures, 0); message != "" {
			wrong("maxFailures", "%s", message)
		}
		if stage.Soak < 0 {
			wrong("soak", "%s is less than 0", stage.Soak)
		}
	}
	return errs
}

func wrongAmount(value *intstr.IntOrString, least int) string {
	if value == nil {
		return ""
	}
	scaled, err := intstr.GetScaledValueFromIntOrPercent(value, 100, false)
	switch {
	case err != nil:
		return fmt.Sprintf("%q is neither a number nor a percentage such as 25%%", value.String())
	case scaled < least:
		return fmt.Sprintf("%s is less than %d", value.String(), least)
	case value.Type == intstr.String && scaled > 100:
		return value.String() + " is more than 100%"
	}
	return ""
}
