// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CapabilityClaimSpec says what an application needs.
//
// +kubebuilder:validation:XValidation:rule="!has(self.boundTo) || !has(self.parameters) && !has(self.rotation) && !has(self.allowedNamespaces)",message="with boundTo the instance is the other claim's: parameters, rotation and allowedNamespaces are given there"
// +kubebuilder:validation:XValidation:rule="has(self.cluster) == has(oldSelf.cluster) && (!has(self.cluster) || self.cluster == oldSelf.cluster)",message="cluster cannot change: make another claim"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.clusterNamespace) || has(self.clusterNamespace) && self.clusterNamespace == oldSelf.clusterNamespace",message="clusterNamespace cannot change: make another claim"
type CapabilityClaimSpec struct {
	// Capability as category/type. It cannot change.
	// +kubebuilder:validation:MaxLength=127
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?/[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="capability cannot change: make another claim"
	// +required
	Capability string `json:"capability"`

	// Version is a version, or a range such as >=15; any where it is not given.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Version string `json:"version,omitempty"`

	// Provider by its name; the one that fits where it is not given.
	// +kubebuilder:validation:MaxLength=253
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

	// BoundTo names a claim whose instance serves this one, too, instead of one of its own:
	// it gets a binding with the same connection details. A claim of another namespace must
	// allow this one's.
	// +optional
	BoundTo *CapabilityClaimReference `json:"boundTo,omitempty"`

	// AllowedNamespaces selects by their labels the namespaces whose claims may be bound to
	// this one. Where it is not given, only those of the same namespace may.
	// +optional
	AllowedNamespaces *metav1.LabelSelector `json:"allowedNamespaces,omitempty"`

	// Rotation makes the next passwords.
	// +optional
	Rotation *CapabilityRotation `json:"rotation,omitempty"`

	// Cluster is the RemoteCluster of the claim's namespace that the application is on; it is
	// on the cluster that Strata runs in where it is not given. A claim of a layer is given its
	// layer's. It cannot change.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// ClusterNamespace is the namespace of that cluster that objects without one go into; one
	// of the name of the claim's where it is not given. A claim of a layer is given the one
	// that it has in the layer's directory. It cannot change.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	ClusterNamespace string `json:"clusterNamespace,omitempty"`

	// ClusterBinding is the name of a Secret of that namespace that is to have the connection
	// details, too, for workloads that read them themselves. On the cluster that Strata runs in
	// they have the claim's binding, and this says nothing.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^$|^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	ClusterBinding string `json:"clusterBinding,omitempty"`
}

// CapabilityClaimReference names a claim.
type CapabilityClaimReference struct {
	// Namespace of the claim. Defaults to that of the claim that names it.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the claim.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// CapabilityRotation says which passwords an instance has. Those of before stay valid until
// everybody who reads the binding has the next ones.
type CapabilityRotation struct {
	// Number of the passwords. A higher one than before makes the next; a lower one nothing.
	// +kubebuilder:validation:Minimum=0
	// +required
	Number int64 `json:"number"`
	// KeepPrevious is for how long those of before stay valid at least, once the binding has
	// the next ones. Defaults to 1m where releases read the binding, and to 1h where none
	// does: of others it is not known when they have read it.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:MaxLength=32
	// +optional
	KeepPrevious *metav1.Duration `json:"keepPrevious,omitempty"`
}

// BindingReference names the Secret that a claim's connection details are in, in its
// namespace: the claim is a Provisioned Service of the Service Binding specification.
type BindingReference struct {
	// Name of the Secret.
	// +required
	Name string `json:"name"`
}

// CapabilityClaimStatus says who serves a claim, and where that stands.
type CapabilityClaimStatus struct {
	// ObservedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Provider that serves the claim, by its name; empty where none was chosen.
	// +optional
	Provider string `json:"provider,omitempty"`

	// Version that it has.
	// +optional
	Version string `json:"version,omitempty"`

	// Binding is the Secret with the connection details, once it is there.
	// +optional
	Binding *BindingReference `json:"binding,omitempty"`

	// BoundTo is the claim whose instance serves this one; not there for a claim with an
	// instance of its own.
	// +optional
	BoundTo *CapabilityClaimReference `json:"boundTo,omitempty"`

	// Rotation is the number of the passwords that the binding has.
	// +optional
	Rotation int64 `json:"rotation,omitempty"`

	// Objects that the claim has.
	// +kubebuilder:validation:MaxItems=200
	// +listType=atomic
	// +optional
	Objects []Dependent `json:"objects,omitempty"`

	// ObjectsMAC authenticates Objects by the controller's key. Where it does not match, the
	// controller ignores the list and finds the objects by their label.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ObjectsMAC string `json:"objectsMAC,omitempty"`

	// Conditions in the form that kstatus understands.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CapabilityClaim is what an application needs, wherever it comes from. It binds to a
// provider that fits, and stays with it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=capabilityclaims,scope=Namespaced,shortName=cclaim
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Capability",type=string,JSONPath=`.spec.capability`
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.status.provider`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Binding",type=string,JSONPath=`.status.binding.name`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 200",message="the name of a CapabilityClaim must have at most 200 characters"
type CapabilityClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec CapabilityClaimSpec `json:"spec,omitempty"`
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status CapabilityClaimStatus `json:"status,omitempty"`
}

// CapabilityClaimList is a list of CapabilityClaims.
//
// +kubebuilder:object:root=true
type CapabilityClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CapabilityClaim `json:"items"`
}
