// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"time"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
)

// Target is one content of a layer.
type Target struct {
	Version  string
	Revision string
	Digest   string
	// Artifact that holds it; nil where that is not known.
	Artifact *v1alpha1.ArtifactReference
}

// Decision is what is to be done for a layer, and what to say of it.
type Decision struct {
	State   v1alpha1.State
	Reason  string
	Message string
	// Stalled is true where only an author can mend it.
	Stalled bool
	// Retry is an error that passes; the layer backs off and tries again.
	Retry error
	// Causes are what stands in the way, where that is neither the layer itself nor an
	// object of the plan.
	Causes []v1alpha1.Cause
	// Waits is true where an object of the plan is waited for.
	Waits bool
	// Hold is what keeps the layer as it is.
	Hold Hold
	// Health says how what the releases have made fares; nil where nobody asks.
	Health *health
	// SourceMessage says why the source is not Ready although its last
	// artifact is used; empty where it is.
	SourceMessage string
	// Plan for the objects of the layer.
	Plan dependents.Plan
	// Target is the content that the plan works towards; it is deployed when
	// State is Deployed.
	Target Target
	// KeepsDeployed is true where what was deployed still counts as that.
	KeepsDeployed bool
	// Attempt is the roll-out to be recorded before anything is written.
	Attempt *v1alpha1.Attempt
	used
	// Rollback is what the layer has gone back from, or goes back from now.
	Rollback *v1alpha1.Rollback
	// Deleting is true when nothing is in the way of a layer's deletion. From
	// then on only dependants are.
	Deleting bool
	// Finalized is true when a deleted layer has nothing left.
	Finalized bool
	// Deadline of the roll-out that is under way; zero where there is none.
	Deadline time.Time
	// Until is the next moment at which the decision may differ although
	// nothing else has changed; zero where there is none.
	Until time.Time
}

// used are annotations that a decision uses up.
type used struct {
	// ConsumeFirst lists those that are removed when Attempt has been recorded, and before
	// anything is written.
	ConsumeFirst []string
	// ClearAfter lists those that are removed once the decision is recorded.
	ClearAfter []string
}
