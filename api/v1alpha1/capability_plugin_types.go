// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// PluginRun says how the program of a provider is run.
type PluginRun string

const (
	// PluginDeployment has the cluster run it, as a Deployment of the provider's namespace. It is
	// the default.
	PluginDeployment PluginRun = "Deployment"
	// PluginProcess has the controller run it, as a process of its own user.
	PluginProcess PluginRun = "Process"
)

// CapabilityPlugin is a program that says of what instances are made, in place of templates. It
// has no access to a cluster: what it says is made and read as the provider's account, as
// templates are.
//
// +kubebuilder:validation:XValidation:rule="has(self.image) || (has(self.run) && self.run == 'Process')",message="a plug-in that the cluster runs needs image; without one run must be Process"
// +kubebuilder:validation:XValidation:rule="has(self.image) || !(has(self.verify) || has(self.pullSecretRef))",message="verify and pullSecretRef are for image"
// +kubebuilder:validation:XValidation:rule="!(has(self.run) && self.run == 'Process') || !(has(self.egress) || has(self.memory))",message="egress and memory are for a plug-in that the cluster runs"
type CapabilityPlugin struct {
	// Image of the program, as oci://HOST/PATH; a tag is for people. Its entrypoint is the
	// program. It is empty for a file of the folder that --plugin-processes names.
	// +kubebuilder:validation:Pattern=`^oci://[^\s@]+$`
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Image string `json:"image,omitempty"`

	// Digest of the image, or of its index; without image that of the program's file, as
	// sha256:HEX. Nothing else is run.
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=71
	// +required
	Digest string `json:"digest"`

	// PullSecretRef is a Secret of the provider's namespace with the login of the registry, of
	// the type kubernetes.io/dockerconfigjson.
	// +optional
	PullSecretRef *LocalSecretReference `json:"pullSecretRef,omitempty"`

	// Verify says who must have signed the image.
	// +optional
	Verify *CapabilityPluginVerify `json:"verify,omitempty"`

	// Run is Deployment, the default: the cluster runs it, in the provider's namespace and with
	// the rights of nobody. Or it is Process: the controller runs it, where it was started with
	// --plugin-processes, and with --plugin-process-images for images.
	// +kubebuilder:validation:XValidation:rule="self in ['Deployment','Process']",message="run must be Deployment (the cluster runs the program) or Process (the controller runs it, with --plugin-processes)"
	// +optional
	Run PluginRun `json:"run,omitempty"`

	// Memory that the program may have in a Deployment; 256Mi without it.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`

	// Egress says where the program may connect to from a Deployment; without any nowhere. It
	// holds where the cluster's network keeps NetworkPolicies.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Egress []CapabilityPluginEgress `json:"egress,omitempty"`

	// Kinds of which instances may have objects, or observe some. Of others it makes none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +required
	Kinds []CapabilityKind `json:"kinds"`
}

// LocalSecretReference names a Secret of the same namespace.
type LocalSecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// CapabilityPluginStatus is the program that serves new claims.
type CapabilityPluginStatus struct {
	// Image and Digest, as in the specification.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Image string `json:"image,omitempty"`
	// +kubebuilder:validation:MaxLength=71
	// +required
	Digest string `json:"digest"`
	// Name and Version, as the program says.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Name string `json:"name,omitempty"`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Version string `json:"version,omitempty"`
}

// CapabilityPluginVerify says who must have signed an image.
type CapabilityPluginVerify struct {
	// Keys are public keys in PEM, as cosign generate-key-pair writes them. One of them must have
	// signed the image.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=8192
	// +listType=atomic
	// +required
	Keys []string `json:"keys"`
}

// CapabilityPluginEgress is something that a program may connect to: addresses, or a namespace.
//
// +kubebuilder:validation:XValidation:rule="has(self.cidr) != has(self.namespace)",message="give cidr or namespace"
type CapabilityPluginEgress struct {
	// CIDR of addresses, such as 10.0.0.5/32.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	CIDR string `json:"cidr,omitempty"`
	// Namespace whose Pods they are.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Port of TCP.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port"`
}

// CapabilityKind is a kind of objects.
type CapabilityKind struct {
	// APIVersion of it, such as apps/v1.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	APIVersion string `json:"apiVersion"`
	// Kind of it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`
}
