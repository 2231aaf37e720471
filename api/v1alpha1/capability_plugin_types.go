// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// PluginRun says how the program of a provider is run.
type PluginRun string

// PluginProcess has the controller run it, as a process of its own user.
const PluginProcess PluginRun = "Process"

// CapabilityPlugin is a program that says of what instances are made, in place of templates. It
// has no access to a cluster: what it says is made and read as the provider's account, as
// templates are.
type CapabilityPlugin struct {
	// Digest of the program's file, as sha256:HEX. Nothing else is run.
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=71
	// +required
	Digest string `json:"digest"`

	// Run is Process: the controller runs it, where it was started with --plugin-processes, from
	// the file sha256-HEX of the folder that names.
	// +kubebuilder:validation:XValidation:rule="self in ['Process']",message="run must be Process (the controller runs the program, with --plugin-processes)"
	// +required
	Run PluginRun `json:"run"`

	// Kinds of which instances may have objects, or observe some. Of others it makes none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +required
	Kinds []CapabilityKind `json:"kinds"`
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
