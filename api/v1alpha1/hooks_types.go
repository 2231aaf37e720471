// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LayerHooks say what a layer waits for, and what goes before it.
type LayerHooks struct {
	// WaitFor lists objects on the layer's cluster that must be as their conditions
	// say before the layer counts as deployed.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	WaitFor []WaitFor `json:"waitFor,omitempty"`

	// DeleteBefore lists objects on the layer's cluster that are deleted, and must be
	// gone, before anything of the layer is uninstalled when the layer is deleted.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	DeleteBefore []DeleteBefore `json:"deleteBefore,omitempty"`

	// TeardownAfter names the layers that must be gone before this one is uninstalled.
	// Where it is given, layers that depend on this one and are themselves being
	// deleted need not go first; those that stay still keep it. Its own name stands
	// for nobody.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	TeardownAfter []string `json:"teardownAfter,omitempty"`

	OldLayerWords `json:",inline"`
}

// WaitFor is an object that must be as a condition says before a layer counts as
// deployed. It is looked up on the layer's cluster.
type WaitFor struct {
	// APIVersion of the object, such as v1 or apps/v1.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +required
	APIVersion string `json:"apiVersion"`
	// Kind of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`
	// Namespace of the object; empty where its kind has none. In a bundle it is a
	// text with templates over inputs and instance.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object. In a bundle it is a text with templates over inputs and
	// instance.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Name string `json:"name"`
	// ReadyExpr is an expression of CEL over object, such as
	// "object.status.phase == 'Ready'". Without it the object must exist.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	ReadyExpr string `json:"readyExpr,omitempty"`

	OldWaitWords `json:",inline"`
}

// BundleWaitFor is an object that a layer of a bundle waits for.
type BundleWaitFor struct {
	WaitFor `json:",inline"`

	// As is the name by which templates of all layers of the bundle read the object, once
	// it is as readyExpr says: objects.NAME.status.address, for example. It is read as the
	// account of the layer that has the template; one on another cluster is read only for
	// layers that have an account. Of a Secret there is all but its data.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z][a-zA-Z0-9]*$`
	// +optional
	As string `json:"as,omitempty"`
}

// DeleteBefore are objects that are deleted, and must be gone, before anything of
// a layer is uninstalled: such as Services of type LoadBalancer before the
// controller that gives them up in the cloud.
type DeleteBefore struct {
	// APIVersion of the objects, such as v1 or apps/v1.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +required
	APIVersion string `json:"apiVersion"`
	// Kind of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`
	// Namespace of the objects; empty for all. In a bundle it is a text with
	// templates over inputs and instance.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Selector narrows the objects by their labels; without it they are all.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Where narrows the objects by an expression of CEL over object, such as
	// "object.spec.type == 'LoadBalancer'".
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Where string `json:"where,omitempty"`
	// Timeout is how long the objects may take to be gone. From then on the layer
	// is Failed; it still waits, until they are gone or the annotation
	// kraan.io/force-delete lets them stay. Defaults to 10m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="timeout must be at least 1s"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}
