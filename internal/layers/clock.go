// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"time"

	"github.com/strata-project/strata/api/v1alpha1"
)

// deadline returns when a roll-out has taken too long. The attempt keeps whole
// seconds, cut off: it never fails sooner. A clock that was set forward does
// not bring it nearer, as far as UnderWay knows.
func (o Observation) deadline(attempt *v1alpha1.Attempt, timeout time.Duration) time.Time {
	deadline := attempt.StartTime.Add(timeout + time.Second)
	last := o.Layer.Status.Attempt
	if o.UnderWay == nil || last == nil || last.Digest != attempt.Digest || !last.StartTime.Equal(&attempt.StartTime) {
		return deadline
	}
	if steady := o.Now.Add(timeout - *o.UnderWay); steady.After(deadline) {
		return steady
	}
	return deadline
}
