// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostplans

import (
	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hosts"
)

// StepVerb is what a Step does.
type StepVerb string

// The verbs of steps.
const (
	// Install and Upgrade are for releases of the first layers, and for Strata itself.
	Install StepVerb = "Install"
	Upgrade StepVerb = "Upgrade"
	// Create is for objects that the cluster lacks.
	Create StepVerb = "Create"
	// Await waits for what others do.
	Await StepVerb = "Await"
	// HandOver makes a release of a first layer helm-controller's, as it runs.
	HandOver StepVerb = "HandOver"
)

// Step is something that is done in a cluster once its hosts are as the manifest says.
type Step struct {
	Verb StepVerb `json:"verb"`
	// Object that it is about, such as "HelmRelease network/plugin", in words.
	Object string `json:"object"`
	// Layer that it belongs to; empty where it belongs to none.
	Layer string `json:"layer,omitempty"`
	// Note says more, such as the version of a chart.
	Note string `json:"note,omitempty"`
}

// String says the step in a line.
func (s Step) String() string {
	text := string(s.Verb) + " " + s.Object
	if s.Layer != "" {
		text += " of layer " + s.Layer
	}
	if s.Note != "" {
		text += ": " + s.Note
	}
	return text
}

// SetSteps says what is done once the hosts are as the manifest says.
func (p *Plan) SetSteps(cluster *v1alpha1.HostCluster, steps []Step) {
	p.Steps = steps
	if p.Outcome == hosts.Done && len(steps) > 0 {
		p.Outcome, p.Message = hosts.Fill, "fills the cluster"
	}
	p.Digest = p.digest(cluster)
}
