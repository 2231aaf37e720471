// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RolloutSpec says which clusters are moved before which.
type RolloutSpec struct {
	// StageInputs has other inputs go to the clusters as another version does: in
	// maintenance windows, stage by stage, and with approval. Otherwise they go
	// everywhere at once.
	// +optional
	StageInputs bool `json:"stageInputs,omitempty"`
	// Stages, one after the other; clusters that none of them selects come last, as
	// a stage of their own. Without stages all clusters are one.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	// +optional
	Stages []RolloutStage `json:"stages,omitempty"`
	// MaxUnavailable for the clusters that no stage selects. Defaults to 1.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// OnFailure says what happens when more clusters of a stage fail than may: Halt
	// (the default) or Rollback.
	// +kubebuilder:validation:XValidation:rule="self in ['', 'Halt', 'Rollback']",message="rollout.onFailure must be Halt (start nothing more) or Rollback (and take the stage back)"
	// +optional
	OnFailure RolloutFailure `json:"onFailure,omitempty"`
}

// RolloutFailure says what happens when a stage fails.
type RolloutFailure string

// What happens when a stage fails.
const (
	RolloutHalt     RolloutFailure = "Halt"
	RolloutRollback RolloutFailure = "Rollback"
)

// RolloutStage is a part of the clusters that is moved before the next.
type RolloutStage struct {
	// Name of the stage.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a stage must be of small letters, digits and dashes"
	// +required
	Name string `json:"name"`
	// Selector of the clusters by the labels of their RemoteClusters. A cluster is in
	// the first stage that selects it.
	// +optional
	Selector metav1.LabelSelector `json:"selector,omitempty,omitzero"`
	// MaxUnavailable is how many clusters may be moving at a time, as a number or a
	// percentage of the stage. Defaults to 1.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// Soak is how long the last cluster must have been at the version before the next
	// stage begins.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="soak must not be negative"
	// +optional
	Soak *metav1.Duration `json:"soak,omitempty"`
	// MaxFailures is how many clusters may fail before everything halts, as a number
	// or a percentage of the stage. Defaults to 0.
	// +optional
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`
	// Approval is true where nothing of the stage begins before somebody approves:
	// with the annotation kraan.io/approve, which lists STAGE@VERSION.
	// +optional
	Approval bool `json:"approval,omitempty"`
}

// StageStatus counts the clusters of a stage.
type StageStatus struct {
	// Name of the stage; (rest) for the clusters that no stage selects.
	Name string `json:"name"`
	// State is Waiting, Active, Halted or Done.
	// +optional
	State string `json:"state,omitempty"`
	// Total number of clusters.
	// +optional
	Total int32 `json:"total,omitempty"`
	// Updated clusters are well at the version.
	// +optional
	Updated int32 `json:"updated,omitempty"`
	// Moving clusters are on their way to it.
	// +optional
	Moving int32 `json:"moving,omitempty"`
	// Waiting clusters have yet to begin.
	// +optional
	Waiting int32 `json:"waiting,omitempty"`
	// Failed clusters have failed on their way.
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// Unhealthy clusters do not begin because they are not well.
	// +optional
	Unhealthy int32 `json:"unhealthy,omitempty"`
	// Stuck clusters have no way to the version.
	// +optional
	Stuck int32 `json:"stuck,omitempty"`
	// Unreachable clusters do not answer.
	// +optional
	Unreachable int32 `json:"unreachable,omitempty"`
	// Unfit clusters cannot run the version, by their version of Kubernetes, and are as
	// far as they can be.
	// +optional
	Unfit int32 `json:"unfit,omitempty"`
	// Approval is what somebody must approve before the stage goes on, as STAGE@VERSION;
	// empty where it waits for nobody.
	// +optional
	Approval string `json:"approval,omitempty"`
	// WaitingSince is since when it waits for that.
	// +optional
	WaitingSince *metav1.Time `json:"waitingSince,omitempty"`
}

// StageApproval is one approval of a stage of a roll-out.
type StageApproval struct {
	// Approval is STAGE@VERSION. It is STAGE@VERSION#SELECTOR where the stage had another
	// selector when it was approved first.
	Approval string `json:"approval"`
	// Selector identifies the selector that the stage had when the approval was first seen.
	// It covers no other one.
	// +optional
	Selector string `json:"selector,omitempty"`
	// By is who says to have approved it; empty where nobody does.
	// +optional
	By string `json:"by,omitempty"`
	// Reason that was given.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Seen is when it was first seen.
	Seen metav1.Time `json:"seen"`
}

// RolloutProgress remembers how far a roll-out has come.
type RolloutProgress struct {
	// Target is the version that is rolled out.
	Target string `json:"target"`
	// Since is when the roll-out of it began.
	Since metav1.Time `json:"since"`
	// Passed names the stages that are over.
	// +kubebuilder:validation:MaxItems=21
	// +listType=atomic
	// +optional
	Passed []string `json:"passed,omitempty"`
	// RolledBack names the stage that was taken back.
	// +optional
	RolledBack string `json:"rolledBack,omitempty"`
}
