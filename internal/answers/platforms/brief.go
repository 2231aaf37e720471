// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/verdict"
)

// Brief is how a Platform fares as its status says it, without a decision of its own: what
// it takes does not grow with the fleet.
type Brief struct {
	Name   string        `json:"name"`
	Fares  verdict.State `json:"fares"`
	Family string        `json:"family"`
	// Version and Available as in Standing.
	Version   string `json:"version"`
	Available string `json:"available,omitempty"`
	// Ready, Reason and Why are those of the condition.
	Ready  string `json:"ready"`
	Reason string `json:"reason"`
	Why    string `json:"why"`
	Held   bool   `json:"held,omitempty"`
	// Stale is true where the controller has not looked at the latest generation.
	Stale    bool                   `json:"stale,omitempty"`
	Counts   v1alpha1.ClusterCount  `json:"counts"`
	Layers   v1alpha1.LayerCount    `json:"layers"`
	Stages   []v1alpha1.StageStatus `json:"stages"`
	Approval string                 `json:"approval,omitempty"`
	Next     *metav1.Time           `json:"next,omitempty"`
}

// BriefOf says how a Platform fares as its status says it.
func BriefOf(platform *v1alpha1.Platform) Brief {
	status := platform.Status
	b := Brief{
		Name: platform.Name, Family: familyOf(platform), Version: status.Version, Available: status.Available, Ready: "Unknown",
		Why: "has not been looked at yet", Held: platform.Spec.Hold, Stale: status.ObservedGeneration != platform.Generation, Counts: status.Clusters,
		Layers: status.Layers, Stages: append([]v1alpha1.StageStatus{}, status.Stages...), Next: status.NextChange,
	}
	if ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition); ready != nil {
		b.Ready, b.Reason, b.Why = string(ready.Status), ready.Reason, ready.Message
	}
	if b.Stale {
		b.Why = "has not been looked at since it was changed"
	}
	for _, stage := range b.Stages {
		if stage.State == "Active" && stage.Approval != "" {
			b.Approval = stage.Approval
		}
	}
	b.Fares = b.fares()
	return b
}

func (b Brief) fares() verdict.State {
	halted := slices.ContainsFunc(b.Stages, func(stage v1alpha1.StageStatus) bool { return stage.State == "Halted" })
	switch {
	case halted, b.Counts.Failed > 0, b.Counts.Unreachable > 0:
		return verdict.Failed
	case b.Held, b.Approval != "", b.Ready == string(metav1.ConditionFalse):
		return verdict.Waiting
	case b.Stale, b.Counts.Progressing > 0, b.Ready != string(metav1.ConditionTrue):
		return verdict.Moving
	}
	return verdict.Well
}

// Fares says how the cluster fares in one word.
func (c Cluster) Fares() verdict.State {
	switch c.State {
	case "Done":
		return verdict.Well
	case "Begins", "Moving":
		return verdict.Moving
	case "Waiting":
		return verdict.Waiting
	}
	return verdict.Failed
}
