// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kinds of capabilities.
const (
	CapabilityProviderKind = "CapabilityProvider"
	CapabilityClaimKind    = "CapabilityClaim"
)

// BindingTypePrefix begins the types of bindings, as the Service Binding specification has
// them.
const BindingTypePrefix = "servicebinding.io/"

// CapabilityPlacement says on which cluster a provider's objects are.
type CapabilityPlacement string

const (
	// PlacementClaimCluster has them on the cluster of the application that claims.
	PlacementClaimCluster CapabilityPlacement = "ClaimCluster"
	// PlacementHome has them on the cluster that Strata runs in.
	PlacementHome CapabilityPlacement = "Home"
	// PlacementCluster has them on one cluster, which the provider names.
	PlacementCluster CapabilityPlacement = "Cluster"
)

// CapabilityProviderSpec says which capability somebody has, and of which objects an
// instance is made.
//
// +kubebuilder:validation:XValidation:rule="!has(self.objects) || self.objects.size() == 0 || has(self.serviceAccountName)",message="serviceAccountName must name the account that makes the objects"
// +kubebuilder:validation:XValidation:rule="!has(self.passwords) || self.passwords.size() == 0 || has(self.serviceAccountName)",message="serviceAccountName must name the account that keeps the passwords"
// +kubebuilder:validation:XValidation:rule="has(self.cluster) == (has(self.placement) && self.placement == 'Cluster')",message="cluster names the RemoteCluster that objects with placement Cluster are on: give both, or neither"
// +kubebuilder:validation:XValidation:rule="!has(self.plugin) || !has(self.objects) && !has(self.passwords) && !has(self.publishes) && !has(self.ready) && !has(self.parameters)",message="objects, passwords, publishes, ready and parameters are what the plug-in says: give either them or plugin"
// +kubebuilder:validation:XValidation:rule="!has(self.credentialsRef) || has(self.plugin) && has(self.plugin.image) && !(has(self.plugin.run) && self.plugin.run == 'Process')",message="credentialsRef is for a plug-in that the cluster runs; a process has a folder of --plugin-process-credentials"
// +kubebuilder:validation:XValidation:rule="!has(self.plugin) || has(self.serviceAccountName)",message="serviceAccountName must name the account that makes the objects"
type CapabilityProviderSpec struct {
	// Description says in a sentence or two what somebody gets who claims it.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`

	// Capability as category/type, such as database/postgresql. Case does not matter.
	// +kubebuilder:validation:MaxLength=127
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?/[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`
	// +required
	Capability string `json:"capability"`

	// Versions that instances may have, such as 16.4. A claim gets the highest one that its
	// range takes. A provider without versions is taken by claims without a range.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +listType=set
	// +optional
	Versions []string `json:"versions,omitempty"`

	// Default has the provider chosen where several fit.
	// +optional
	Default bool `json:"default,omitempty"`

	// Namespace of the provider: of its account, of the objects with placement Home that name
	// none, and the one whose claims are served where allowedNamespaces is not given. It is the
	// controller's where it is not given.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be the name of a namespace"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// ServiceAccountName is the account of that namespace as which all objects of instances
	// are read and written, and the bindings of claims. On another cluster it is the account of
	// that name in the namespace of the same name there.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// AllowedNamespaces selects by their labels the namespaces whose claims are served. Where
	// it is not given, only claims of the provider's own namespace are; where it is empty, all.
	// +optional
	AllowedNamespaces *metav1.LabelSelector `json:"allowedNamespaces,omitempty"`

	// AllowedClusters are the RemoteClusters of their namespaces whose claims are served, by
	// their names. Where it is not given, those of all clusters are, and of the one that Strata
	// runs in.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	AllowedClusters []string `json:"allowedClusters,omitempty"`

	// AllowedClusterNamespaces are the namespaces of those clusters whose claims are served;
	// those of all are where it is not given. A claim of a cluster says which namespace it is
	// of, and whoever writes it says that.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	AllowedClusterNamespaces []string `json:"allowedClusterNamespaces,omitempty"`

	// Placement says on which cluster the objects are: ClaimCluster, which it is where it is
	// not given, Home, or Cluster. Objects without a namespace go into the claim's with
	// ClaimCluster, and otherwise into one of the name of the provider's.
	// +kubebuilder:validation:XValidation:rule="self in ['ClaimCluster', 'Home', 'Cluster']",message="placement must be ClaimCluster (where the application is that claims), Home (where Strata runs) or Cluster (the RemoteCluster that cluster names)"
	// +optional
	Placement CapabilityPlacement `json:"placement,omitempty"`

	// Cluster is the RemoteCluster of the provider's namespace that objects with placement
	// Cluster are on.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// Plugin is a program that says of what instances are made, which parameters claims may give,
	// and which versions there are. With versions, no others of those are offered.
	// +optional
	Plugin *CapabilityPlugin `json:"plugin,omitempty"`

	// CredentialsRef is a Secret of the provider's namespace with what the plug-in needs to hand
	// out what is outside of any cluster. A Deployment has it as files; Strata never reads it.
	// +optional
	CredentialsRef *LocalSecretReference `json:"credentialsRef,omitempty"`

	// Parameters that a claim may give; none where it is not given.
	// +optional
	Parameters *CapabilityParameters `json:"parameters,omitempty"`

	// Passwords are made for each instance, and kept in a Secret beside the claim. Templates
	// have each as passwords.NAME, and as previous.NAME the one of before, as long as that is
	// to be valid; empty otherwise.
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=name
	// +optional
	Passwords []CapabilityPassword `json:"passwords,omitempty"`

	// Objects of an instance. Their templates have the variables claim, parameters, objects
	// and, in Secrets alone, passwords and previous.
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=id
	// +optional
	Objects []CapabilityObject `json:"objects,omitempty"`

	// Ready is an expression over claim, parameters and objects that says when an instance
	// is ready, once each of its objects is.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Ready string `json:"ready,omitempty"`

	// Publishes is what a claim's binding has beside type and provider.
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=key
	// +optional
	Publishes []CapabilityValue `json:"publishes,omitempty"`
}

// CapabilityParameters are those that a claim may give.
type CapabilityParameters struct {
	// Schema of OpenAPI v3 for an object, as in a CustomResourceDefinition. What it says of
	// defaults is filled in.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +required
	Schema apiextensionsv1.JSON `json:"schema"`
}

// CapabilityPassword is one that is made for each instance.
type CapabilityPassword struct {
	// Name by which templates have it.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z][a-zA-Z0-9]*$`
	// +required
	Name string `json:"name"`
	// Length in characters. Defaults to 32.
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=256
	// +optional
	Length int32 `json:"length,omitempty"`
}

// CapabilityMode says how an object is brought about.
type CapabilityMode string

const (
	// CapabilityApply keeps the object as its template has it.
	CapabilityApply CapabilityMode = "Apply"
	// CapabilityCreateOnce makes it where it is missing, and leaves it from then on.
	CapabilityCreateOnce CapabilityMode = "CreateOnce"
	// CapabilityObserve waits for an object that somebody else has, and reads it.
	CapabilityObserve CapabilityMode = "Observe"
)

// CapabilityOnRename says what becomes of an object whose template gives another name.
type CapabilityOnRename string

const (
	// OnRenameKeep leaves it until the claim goes.
	OnRenameKeep CapabilityOnRename = "Keep"
	// OnRenameDelete deletes it.
	OnRenameDelete CapabilityOnRename = "Delete"
)

// CapabilityObject is an object of an instance.
//
// +kubebuilder:validation:XValidation:rule="!has(self.holdsData) || !self.holdsData || !has(self.onRename) || self.onRename != 'Delete'",message="what holds data is not deleted because of its name"
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'Observe' || !has(self.holdsData) && !has(self.onRename)",message="what is only observed is never deleted: holdsData and onRename are for objects that are made"
type CapabilityObject struct {
	// ID by which other objects, conditions and values name it.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z][a-zA-Z0-9]*$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['binding', 'passwords'])",message="binding and passwords are those of the claim"
	// +required
	ID string `json:"id"`

	// Template of the object.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +required
	Template apiextensionsv1.JSON `json:"template"`

	// Mode is Apply, which keeps the object as its template has it, and which it is where it
	// is not given, CreateOnce, which makes it where it is missing, or Observe, which waits
	// for what somebody else has: the template has its name then, and no more. It is read as
	// the provider's account, which must be allowed to get, list and watch it.
	// +kubebuilder:validation:XValidation:rule="self in ['', 'Apply', 'CreateOnce', 'Observe']",message="mode must be Apply (keep the object as its template has it), CreateOnce (make it where it is missing) or Observe (wait for what somebody else has)"
	// +optional
	Mode CapabilityMode `json:"mode,omitempty"`

	// HoldsData is true for an object that data go with, such as a database. It is deleted
	// with its claim once kraan.io/confirm-deletion on the claim is "true".
	// +optional
	HoldsData bool `json:"holdsData,omitempty"`

	// OnRename is Keep, which leaves an object until the claim goes once its template gives it
	// another name, and which it is where it is not given, or Delete.
	// +kubebuilder:validation:XValidation:rule="self in ['', 'Keep', 'Delete']",message="onRename must be Keep (leave what had another name until the claim goes) or Delete"
	// +optional
	OnRename CapabilityOnRename `json:"onRename,omitempty"`

	// DependsOn names objects that must be ready before, and that go later. An object waits
	// for those that its template reads, too.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	DependsOn []string `json:"dependsOn,omitempty"`

	// Ready is an expression over object that says when it is ready; as kstatus sees it
	// where it is not given.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Ready string `json:"ready,omitempty"`
}

// CapabilityValue is a key of a binding.
//
// +kubebuilder:validation:XValidation:rule="has(self.value) != has(self.secretKeyRef)",message="give either value or secretKeyRef"
type CapabilityValue struct {
	// Key of the binding's Secret, such as uri. type and provider are given.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]+$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['type', 'provider'])",message="type and provider are those of the claim"
	// +required
	Key string `json:"key"`

	// Value is a text with templates over claim, parameters, objects, passwords and previous.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Value string `json:"value,omitempty"`

	// SecretKeyRef is a key of a Secret of the instance.
	// +optional
	SecretKeyRef *CapabilitySecretKey `json:"secretKeyRef,omitempty"`
}

// CapabilitySecretKey is a key of a Secret that is an object of the instance, or that one of
// its objects owns. No other Secret is read, whatever the account may do.
type CapabilitySecretKey struct {
	// Name of the Secret, with templates.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Name string `json:"name"`
	// Namespace of the Secret, with templates. Defaults to that of objects without one.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Key in it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Key string `json:"key"`
}

// CapabilityProviderStatus says how a provider fares.
type CapabilityProviderStatus struct {
	// ObservedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Claims counts the claims that are bound to the provider.
	// +optional
	Claims int32 `json:"claims"`

	// Plugin is the program that serves new claims: the last one of the specification's that has
	// described itself.
	// +optional
	Plugin *CapabilityPluginStatus `json:"plugin,omitempty"`

	// Versions that the provider's plug-in has, and Parameters that it takes; empty for a provider
	// with templates, whose specification says that.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Versions []string `json:"versions,omitempty"`
	// +optional
	Parameters *CapabilityParameters `json:"parameters,omitempty"`

	// Problems says what is wrong with the provider, the first ten of it.
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
}

// CapabilityProvider says who has a capability, and of which objects an instance of it is
// made. A user who may write one may have its account do whatever that may.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=capabilityproviders,scope=Cluster,shortName=cprov
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Capability",type=string,JSONPath=`.spec.capability`
// +kubebuilder:printcolumn:name="Versions",type=string,JSONPath=`.spec.versions`
// +kubebuilder:printcolumn:name="Default",type=boolean,JSONPath=`.spec.default`
// +kubebuilder:printcolumn:name="Claims",type=integer,JSONPath=`.status.claims`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,priority=1
type CapabilityProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec CapabilityProviderSpec `json:"spec,omitempty"`
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status CapabilityProviderStatus `json:"status,omitempty"`
}

// CapabilityProviderList is a list of CapabilityProviders.
//
// +kubebuilder:object:root=true
type CapabilityProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CapabilityProvider `json:"items"`
}
