// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Dependent is an object that a primary has, as its status lists it: where it stands, and
// what is needed to know it again. A primary deletes nothing that is not listed.
type Dependent struct {
	// ID of the object among those of its primary.
	// +kubebuilder:validation:MaxLength=253
	// +required
	ID string `json:"id"`
	// Of says who of its primary has it made, such as the provider of a claim; empty for the
	// primary itself. IDs are unique among those of one.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Of string `json:"of,omitempty"`
	// Group of the object; empty for the core group.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`
	// Kind of the object.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Kind string `json:"kind"`
	// Namespace of the object; empty for kinds without namespaces.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// Cluster that has the object, as NAMESPACE/NAME of a RemoteCluster; empty for the one
	// that Strata runs in.
	// +kubebuilder:validation:MaxLength=317
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// Status of the object in one word, such as Deployed, InProgress, NotDeployed or Failed.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Status string `json:"status,omitempty"`
	// Message says what is waited for, or what went wrong; empty for an object that is as it
	// should be, but for one that has done its work and is gone.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
	// LastTransitionTime is when Status became what it is.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty,omitzero"`

	// Digest of the object as it was last applied; empty before that.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Digest string `json:"digest,omitempty"`
	// UID is the beginning of the UID of the object that was last applied.
	// +kubebuilder:validation:MaxLength=36
	// +optional
	UID string `json:"uid,omitempty"`
	// Generation that the last apply led to; 0 for kinds without one.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// ResourceVersion that the last apply led to, for kinds without a generation.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Completed is true for a Job with ttlSecondsAfterFinished that was seen to complete with
	// the content of Digest: it is not run again when its TTL has taken it away.
	// +optional
	Completed bool `json:"completed,omitempty"`
	// DependsOn has the IDs of the objects that outlive this one.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	DependsOn []string `json:"dependsOn,omitempty"`
}
