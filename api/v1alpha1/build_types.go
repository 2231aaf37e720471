// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"reflect"

	"github.com/fluxcd/pkg/apis/kustomize"
)

// KustomizationFields say how objects are made of the layer's directory, in the words
// of Flux's Kustomization (kustomize.toolkit.fluxcd.io/v1) and with its meaning.
type KustomizationFields struct {
	GeneratorFields `json:",inline"`

	// CommonMetadata is put on every object of the layer.
	// +optional
	CommonMetadata *CommonMetadata `json:"commonMetadata,omitempty"`

	// Decryption says with which keys files of the directory are decrypted that SOPS has
	// encrypted.
	// +optional
	Decryption *Decryption `json:"decryption,omitempty"`

	// PostBuild says what happens to the objects once kustomize has made them.
	// +optional
	PostBuild *PostBuild `json:"postBuild,omitempty"`
}

// IsZero tells whether none of the fields is given.
func (f *KustomizationFields) IsZero() bool { return reflect.ValueOf(*f).IsZero() }

// GeneratorFields are those that become a part of the directory's kustomization. A
// directory without one gets one, with all its manifests.
type GeneratorFields struct {
	// TargetNamespace is the namespace of all objects that have one.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="targetNamespace must be the name of a namespace"
	// +optional
	TargetNamespace string `json:"targetNamespace,omitempty"`

	// NamePrefix is put before the names of all objects.
	// +kubebuilder:validation:MaxLength=200
	// +optional
	NamePrefix string `json:"namePrefix,omitempty"`

	// NameSuffix is put behind the names of all objects.
	// +kubebuilder:validation:MaxLength=200
	// +optional
	NameSuffix string `json:"nameSuffix,omitempty"`

	// Components are directories with a kustomize component each, as paths from the
	// layer's directory.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=atomic
	// +optional
	Components []string `json:"components,omitempty"`

	// IgnoreMissingComponents leaves out components that are not there.
	// +optional
	IgnoreMissingComponents bool `json:"ignoreMissingComponents,omitempty"`

	// Patches of objects: strategic merge patches, and JSON patches as RFC 6902 has them.
	// +kubebuilder:validation:MaxItems=200
	// +listType=atomic
	// +optional
	Patches []kustomize.Patch `json:"patches,omitempty"`

	// Images are other names, tags and digests of container images.
	// +kubebuilder:validation:MaxItems=200
	// +listType=atomic
	// +optional
	Images []kustomize.Image `json:"images,omitempty"`

	// BuildMetadata has every object say where it comes from: originAnnotations name its
	// file, transformerAnnotations what has changed it.
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=originAnnotations;transformerAnnotations
	// +listType=set
	// +optional
	BuildMetadata []string `json:"buildMetadata,omitempty"`
}

// Decryption says how encrypted files are decrypted.
type Decryption struct {
	// Provider is sops.
	// +kubebuilder:validation:Enum=sops
	// +required
	Provider string `json:"provider"`

	// SecretRef names a Secret in the layer's namespace with private keys: key files of
	// age whose names end with .agekey, and armored ones of PGP whose names end with .asc.
	// +required
	SecretRef SecretName `json:"secretRef"`
}

// SecretName names a Secret.
type SecretName struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// CommonMetadata are labels and annotations of every object of a layer. They take the
// place of those that an object has under the same key.
type CommonMetadata struct {
	// Annotations of every object.
	// +kubebuilder:validation:MaxProperties=100
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Labels of every object.
	// +kubebuilder:validation:MaxProperties=100
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}

// PostBuild puts values in the place of variables such as ${region}, in the objects that
// kustomize has made. An object with the label or annotation
// kustomize.toolkit.fluxcd.io/substitute: disabled is left as it is.
type PostBuild struct {
	// Substitute holds values by the names of variables. They count more than those of
	// substituteFrom.
	// +kubebuilder:validation:MaxProperties=1000
	// +optional
	Substitute map[string]string `json:"substitute,omitempty"`

	// SubstituteFrom lists ConfigMaps and Secrets whose keys are names of variables. The
	// last one counts most.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	SubstituteFrom []SubstituteReference `json:"substituteFrom,omitempty"`

	// SubstituteStrategy is WithVariables (the default), which substitutes where at least
	// one variable is given, or Always, for what has defaults.
	// +kubebuilder:validation:Enum=WithVariables;Always
	// +optional
	SubstituteStrategy SubstituteStrategy `json:"substituteStrategy,omitempty"`

	// Strict refuses a variable without a default that nobody gives. Without it such a
	// variable is empty, as with Flux, and a condition names it.
	// +optional
	Strict bool `json:"strict,omitempty"`
}

// SubstituteStrategy says when variables are substituted.
type SubstituteStrategy string

const (
	// SubstituteWithVariables substitutes where a variable is given.
	SubstituteWithVariables SubstituteStrategy = "WithVariables"
	// SubstituteAlways substitutes always.
	SubstituteAlways SubstituteStrategy = "Always"
)

// SubstituteReference names a ConfigMap or Secret with variables, in the layer's
// namespace.
type SubstituteReference struct {
	// Kind is ConfigMap or Secret.
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	// +required
	Kind string `json:"kind"`

	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// Optional goes on without the object where it does not exist. Without it the layer
	// waits for the object.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// RolloutFields say how the objects of a layer are applied, judged and removed, in the
// words of Flux's Kustomization.
type RolloutFields struct {
	// Wait has the layer count as deployed when all its objects are ready (the default).
	// Where it is false, it counts when all are applied and healthChecks are ready.
	// +optional
	Wait *bool `json:"wait,omitempty"`

	// HealthChecks lists objects on the layer's cluster that must be ready, as kstatus
	// has it, before the layer counts as deployed.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	HealthChecks []HealthCheck `json:"healthChecks,omitempty"`

	// HealthCheckExprs say in CEL when objects of a kind are ready. They count for the
	// layer's own objects and for those of healthChecks.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	HealthCheckExprs []HealthCheckExpr `json:"healthCheckExprs,omitempty"`

	// Force recreates an object where a field is to change that cannot be changed. It
	// never recreates Namespaces, CustomResourceDefinitions, PersistentVolumeClaims and
	// HelmReleases. The annotation kustomize.toolkit.fluxcd.io/force: enabled does the
	// same for one object.
	// +optional
	Force bool `json:"force,omitempty"`

	// Prune removes what leaves the layer (the default). Where it is false, it stays
	// without owner, also when the layer is deleted and deletionPolicy says nothing else.
	// +optional
	Prune *bool `json:"prune,omitempty"`
}

// Waits tells whether the layer waits for its objects to be ready.
func (f *RolloutFields) Waits() bool { return f.Wait == nil || *f.Wait }

// Prunes tells whether what leaves the layer is removed.
func (f *RolloutFields) Prunes() bool { return f.Prune == nil || *f.Prune }

// HealthCheck names an object that must be ready.
type HealthCheck struct {
	// APIVersion of the object. Defaults to apps/v1.
	// +kubebuilder:validation:MaxLength=317
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// Namespace of the object. Defaults to the layer's where objects of the kind have one.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// HealthCheckExpr says in CEL when objects of a kind are ready. The variables are the
// fields at the top of the object, such as status. What an expression reads and the object
// lacks leaves it in progress.
type HealthCheckExpr struct {
	// APIVersion of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +required
	APIVersion string `json:"apiVersion"`
	// Kind of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`
	// InProgress is true for an object that is on its way. It counts before the others.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	InProgress string `json:"inProgress,omitempty"`
	// Failed is true for an object that does not get on by itself.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Failed string `json:"failed,omitempty"`
	// Current is true for an object that is ready.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Current string `json:"current"`
}

// BuildFlux is the way of Flux's kustomize-controller to make objects of a directory.
const BuildFlux = "Flux"
