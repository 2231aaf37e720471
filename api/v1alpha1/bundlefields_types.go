// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BundleFields say how a layer of an ApplicationBundle is filled.
type BundleFields struct {
	// Instance is the name that templates of an ApplicationBundle have as
	// instance.name: where one bundle is installed several times it tells the
	// installations apart. Defaults to the name of the layer.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="instance must be of small letters, digits, dashes and dots"
	// +optional
	Instance string `json:"instance,omitempty"`

	// Inputs of the ApplicationBundle by name, where the source is one.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Inputs *apiextensionsv1.JSON `json:"inputs,omitempty"`

	// Releases says how Flux looks after the releases that the layer makes of an
	// ApplicationBundle. What is given here wins over bundle and catalogue.
	// +optional
	Releases *ReleaseSettings `json:"releases,omitempty"`
}

// HealthWatch says what is watched of what releases have made: Deployments, StatefulSets
// and DaemonSets, at most 30 objects of a layer, as the layer's account may read them.
type HealthWatch struct {
	// After is how long an object may be other than ready before the layer is Unhealthy.
	// What has failed counts at once. Defaults to 5m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="after must not be negative"
	// +optional
	After *metav1.Duration `json:"after,omitempty"`
	// Kinds that are watched besides, as KIND.GROUP, such as Certificate.cert-manager.io.
	// Secrets are never read.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9]*([.][a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$') && self != 'Secret'",message="each of watchHealth.kinds must be KIND.GROUP, such as Certificate.cert-manager.io, and not Secret"
	// +listType=set
	// +optional
	Kinds []string `json:"kinds,omitempty"`
}

// ApplicationBundleStatus says whether a bundle can be installed.
type ApplicationBundleStatus struct {
	// ObservedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Digest of all of the bundle that must not change, as it was first seen.
	// +optional
	Digest string `json:"digest,omitempty"`

	// Layers is how many layers the bundle has, and Applications how many
	// applications are in them.
	// +optional
	Layers int32 `json:"layers,omitempty"`
	// Applications is how many applications are in the layers.
	// +optional
	Applications int32 `json:"applications,omitempty"`

	// Platforms counts the Platforms that have the bundle on some cluster.
	// +optional
	Platforms int32 `json:"platforms,omitempty"`

	// Problems says why the bundle cannot be installed, the first ten of it.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Problems []string `json:"problems,omitempty"`

	// Conditions in the form that kstatus understands.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// MAC authenticates, by the controller's key, what others act on in this status. Where it
	// does not match, that counts for nothing until the controller has written it again.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	MAC string `json:"mac,omitempty"`
}
