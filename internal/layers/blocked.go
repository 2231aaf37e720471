// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"time"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
)

// A gate looks at an observation and returns why the layer may not go on, or
// nil. To add a gate, write a function and put it into its place below.
type gate func(o Observation) *Blocked

// Blocked says which gate is closed, and what is waited for.
type Blocked struct {
	State   v1alpha1.State
	Reason  string
	Message string
	// Stalled is true where only an author can mend it.
	Stalled bool
	// Retry is an error that passes; the layer backs off and tries again.
	Retry error
	// Causes are what stands in the way, for status.blockedBy; nil where that is the
	// layer itself. The gate that closes names them: it knows what it has met.
	Causes []v1alpha1.Cause
	// Again is when it is looked at again, where no watch tells of what opens the gate; zero
	// where one does.
	Again time.Time
}

func contentBlocked(err *directories.ContentError) *Blocked {
	return &Blocked{State: v1alpha1.StateFailed, Reason: err.Reason, Message: err.Error(), Stalled: true}
}

func colon(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}
