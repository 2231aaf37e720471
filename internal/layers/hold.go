// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"fmt"
	"time"

	"github.com/strata-project/strata/api/v1alpha1"
)

// Hold is what keeps a layer as it is.
type Hold struct {
	// Active is true while the layer is held.
	Active bool
	// Reason is what the person who holds it said.
	Reason string
	// Until is when the hold ends by itself; zero where it does not.
	Until time.Time
	// Releases says that the layer's HelmReleases are suspended too.
	Releases bool
}

// HoldOf returns the hold on a layer at a moment. spec.hold stays until it is
// taken away; the annotation may end by itself. An end that cannot be
// understood does not end the hold, and the reason says so.
func HoldOf(layer *v1alpha1.AddonsLayer, now time.Time) Hold {
	hold := Hold{Releases: layer.Annotations[v1alpha1.HoldReleasesAnnotation] == "true"}
	if reason, set := layer.Annotations[v1alpha1.HoldAnnotation]; set && reason != "false" {
		hold.Active, hold.Reason = true, reason
		if text := layer.Annotations[v1alpha1.HoldUntilAnnotation]; text != "" {
			until, err := time.Parse(time.RFC3339, text)
			switch {
			case err != nil:
				hold.Reason += fmt.Sprintf(" (the annotation %s is %q, which is no RFC 3339 time, so the hold does not end by itself)",
					v1alpha1.HoldUntilAnnotation, text)
			case now.Before(until):
				hold.Until = until
			default:
				hold.Active, hold.Reason = false, ""
			}
		}
	}
	if layer.Spec.Hold {
		hold.Active, hold.Until = true, time.Time{}
		if hold.Reason == "" || hold.Reason == "true" {
			hold.Reason = "spec.hold is true"
		}
	}
	return hold
}
