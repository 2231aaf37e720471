// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CapabilityRequirement is a capability that an application needs.
type CapabilityRequirement struct {
	// Name by which values refer to it. The claim is named after the application and it.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	Name string `json:"name"`
	// Capability as category/type, such as database/postgresql. Case does not matter. It may
	// be left out where it refines what the catalogue requires.
	// +kubebuilder:validation:MaxLength=127
	// +kubebuilder:validation:Pattern=`^$|^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?/[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`
	// +optional
	Capability string `json:"capability,omitempty"`
	// Version is a version, or a range such as >=15; any where it is not given.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Version string `json:"version,omitempty"`
	// Provider by its name; the one that fits where it is not given.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Provider string `json:"provider,omitempty"`
	// ProviderSelector selects providers by their labels.
	// +optional
	ProviderSelector *metav1.LabelSelector `json:"providerSelector,omitempty"`
	// Parameters as the provider's schema has them.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Parameters *apiextensionsv1.JSON `json:"parameters,omitempty"`
	// BoundTo names a claim whose instance serves the application, as in CapabilityClaims. Its
	// parameters are those of that claim; the ones that are given here do not count.
	// +optional
	BoundTo *CapabilityClaimReference `json:"boundTo,omitempty"`
	// AllowedNamespaces as in CapabilityClaims.
	// +optional
	AllowedNamespaces *metav1.LabelSelector `json:"allowedNamespaces,omitempty"`
	// Rotation as in CapabilityClaims.
	// +optional
	Rotation *CapabilityRotation `json:"rotation,omitempty"`
	// ClusterBinding as in CapabilityClaims.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^$|^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	ClusterBinding string `json:"clusterBinding,omitempty"`
}

// ProvidedCapability is a capability that an application has.
type ProvidedCapability struct {
	// Name of it among those of the application.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	Name string `json:"name"`
	// Capability as category/type, such as http/shop. Case does not matter.
	// +kubebuilder:validation:MaxLength=127
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?/[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`
	// +required
	Capability string `json:"capability"`
	// Version of it. Defaults to that of the application.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Version string `json:"version,omitempty"`
	// Default has it chosen where several providers fit.
	// +optional
	Default bool `json:"default,omitempty"`
	// ServiceAccountName is the account of the application's namespace that writes the
	// bindings of those who claim it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	ServiceAccountName string `json:"serviceAccountName"`
	// AllowedNamespaces selects by their labels the namespaces whose claims are served. Where
	// it is not given, only those of the application's own namespace are; where it is empty,
	// all.
	// +optional
	AllowedNamespaces *metav1.LabelSelector `json:"allowedNamespaces,omitempty"`
	// Publishes is what a binding has beside type and provider.
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=key
	// +optional
	Publishes []PublishedValue `json:"publishes,omitempty"`
}
