// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ApplicationBundleKind is the kind of ApplicationBundle.
const ApplicationBundleKind = "ApplicationBundle"

// ApplicationBundleSpec is one version of a set of applications that were tested
// together: its layers, and from which versions it may be entered. Only what is
// said of the version may change: preview, endOfLife and withdrawn.
//
// +kubebuilder:validation:XValidation:rule="self.family == oldSelf.family",message="a bundle that is published cannot get another family: make another bundle"
// +kubebuilder:validation:XValidation:rule="self.version == oldSelf.version",message="a bundle that is published cannot get another version: make another bundle"
// +kubebuilder:validation:XValidation:rule="has(self.upgradesFrom) == has(oldSelf.upgradesFrom) && (!has(self.upgradesFrom) || self.upgradesFrom == oldSelf.upgradesFrom)",message="a bundle that is published cannot get other upgradesFrom: make another bundle"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.kubernetes) || has(self.kubeVersion) == has(oldSelf.kubeVersion) && (!has(self.kubeVersion) || self.kubeVersion == oldSelf.kubeVersion)",message="a bundle that is published cannot get another range of Kubernetes versions: make another bundle"
// +kubebuilder:validation:XValidation:rule="self.layers.map(l, l.name) == oldSelf.layers.map(l, l.name)",message="a bundle that is published cannot get other layers: make another bundle"
type ApplicationBundleSpec struct {
	// Description says in a sentence or two what the bundle is for.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`

	// Family is what the versions of a bundle have in common: a Platform names a
	// family, and a version of it.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="family must be a name of small letters, digits and dashes"
	// +required
	Family string `json:"family"`

	// Version is a semantic version; v1.0.0 and 1.0.0 are the same.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^v?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z]([0-9A-Za-z.-]*[0-9A-Za-z])?)?$`
	// +required
	Version string `json:"version"`

	// UpgradesFrom lists the ranges of versions from which a platform may go to
	// this one in one step, such as ">=1.1 <1.3". Without any, it can only be
	// installed anew.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=atomic
	// +optional
	UpgradesFrom []string `json:"upgradesFrom,omitempty"`

	// KubeVersion is the range of Kubernetes versions that the bundle was tested
	// with: a minimum such as 1.31, or a range such as >=1.31 <1.36. Empty for any.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[v0-9<>=!~^*xX.,| a-zA-Z+-]+$') && self.matches('[0-9*]')",message="kubeVersion must be a minimum such as 1.31 or a range such as >=1.31 <1.36"
	// +optional
	KubeVersion string `json:"kubeVersion,omitempty"`

	// Capabilities lists those that clusters have, wherever they come from, as
	// category/type: it is not told that no layer of the bundle provides them.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=127
	// +listType=set
	// +optional
	Capabilities []string `json:"capabilities,omitempty"`

	// Inputs are what whoever installs the bundle decides.
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=name
	// +optional
	Inputs []BundleInput `json:"inputs,omitempty"`

	// Layers of the bundle, in any order.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=name
	// +required
	Layers []BundleLayer `json:"layers"`

	// Preview is true for a version that is chosen only by who names it.
	// +optional
	Preview bool `json:"preview,omitempty"`

	// EndOfLife is when the version is no longer maintained.
	// +optional
	EndOfLife *metav1.Time `json:"endOfLife,omitempty"`

	// Withdrawn says why the version is not to be installed any more. Somebody who has it
	// keeps it.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Withdrawn string `json:"withdrawn,omitempty"`

	OldBundleWords `json:",inline"`
}

// BundleInput is one thing that whoever installs a bundle decides.
type BundleInput struct {
	// Name of the input; templates have it as inputs.NAME.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z][a-zA-Z0-9_]*$')",message="the name of an input must begin with a letter and go on with letters, digits and _"
	// +required
	Name string `json:"name"`
	// Type of its values: String (the default), Integer, Number, Boolean, Object or
	// Array.
	// +kubebuilder:validation:XValidation:rule="self in ['String', 'Integer', 'Number', 'Boolean', 'Object', 'Array']",message="type must be String, Integer, Number, Boolean, Object or Array"
	// +optional
	Type InputType `json:"type,omitempty"`
	// Description says what it is for.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`
	// Default is its value where nobody gives one.
	// +optional
	Default *apiextensionsv1.JSON `json:"default,omitempty"`
	// Required is true where somebody must give it a value. An input that is not
	// required and has no default is null.
	// +optional
	Required bool `json:"required,omitempty"`
	// Enum lists the values that a String may have; empty for any.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +optional
	Enum []string `json:"enum,omitempty"`
	// Schema of its values, in the words of OpenAPI v3 that CustomResourceDefinitions
	// have, such as pattern, minimum, maxItems, items and properties. Its type is that of
	// the input.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Schema *apiextensionsv1.JSON `json:"schema,omitempty"`
}

// InputType is the type of an input's values.
type InputType string

// The types of inputs.
const (
	InputString  InputType = "String"
	InputInteger InputType = "Integer"
	InputNumber  InputType = "Number"
	InputBoolean InputType = "Boolean"
	InputObject  InputType = "Object"
	InputArray   InputType = "Array"
)

// BundleLayer is one layer of a bundle. It becomes an AddonsLayer on each cluster
// that the bundle is installed on. One with nothing but waitFor only waits.
//
// +kubebuilder:validation:XValidation:rule="[has(self.applications), has(self.objects), has(self.remoteCluster), has(self.source)].filter(x, x).size() == 1 || has(self.waitFor) && !has(self.job) && !(has(self.applications) || has(self.objects) || has(self.remoteCluster) || has(self.source))",message="a layer must have exactly one of applications, objects, remoteCluster and source, or nothing but waitFor"
type BundleLayer struct {
	// Name of the layer in the bundle.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a layer must be of small letters, digits and dashes"
	// +required
	Name string `json:"name"`

	// DependsOn names the layers of the bundle that must be deployed before.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=40
	// +listType=set
	// +optional
	DependsOn []string `json:"dependsOn,omitempty"`

	// When is an expression of CEL over inputs, cluster and instance. The layer is
	// there while it is true; without it, always.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	When string `json:"when,omitempty"`

	// On names the layer whose remoteCluster this one goes to. It waits for that
	// layer as if it were in dependsOn. Empty for the cluster that the bundle is
	// installed on. It is not written as on, which YAML takes for true.
	// +kubebuilder:validation:MaxLength=40
	// +optional
	On string `json:"onClusterOf,omitempty"`

	// Applications that are installed side by side.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=name
	// +optional
	Applications []BundleApplication `json:"applications,omitempty"`

	// Objects that are applied as they are, but for the templates in them.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	Objects []Manifest `json:"objects,omitempty"`

	// RemoteCluster is a cluster that appears with this layer and that other layers
	// go to.
	// +optional
	RemoteCluster *BundleCluster `json:"remoteCluster,omitempty"`

	// Source is a directory that is used as it stands.
	// +optional
	Source *SourceSpec `json:"source,omitempty"`

	// WaitFor lists objects that must be as their conditions say before the layer
	// counts as deployed. Templates can read those that have a name for that (as).
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	WaitFor []BundleWaitFor `json:"waitFor,omitempty"`

	// WatchHealth as in AddonsLayers.
	// +optional
	WatchHealth *HealthWatch `json:"watchHealth,omitempty"`

	// DeleteBefore lists objects that must be gone before anything of the layer is
	// uninstalled.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	DeleteBefore []DeleteBefore `json:"deleteBefore,omitempty"`

	// Job runs to its end once everything else of the layer is ready, anew for each
	// content that it has.
	// +optional
	Job *BundleJob `json:"job,omitempty"`

	// DeletionPolicy of the layer: Delete, Orphan (what it has stays without owner) or
	// Abandon (and its cluster is not contacted). It defaults to the Platform's; of both,
	// the one that leaves more is taken.
	// +kubebuilder:validation:XValidation:rule="self in ['', 'Delete', 'Orphan', 'Abandon']",message="deletionPolicy must be Delete (uninstall what the layer has), Orphan (leave it without owner) or Abandon (leave it, and do not contact its cluster)"
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// TeardownAfter names the layers of the bundle that must be gone before this one is
	// uninstalled. It takes the place of the usual rule, by which those that depend on it
	// go first; an empty list waits for none.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=40
	// +listType=set
	// +optional
	TeardownAfter []string `json:"teardownAfter,omitzero"`

	OldBundleLayerWords `json:",inline"`

	// Timeout as in AddonsLayers. Defaults to 30m for a layer with a remoteCluster.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="timeout must be at least 1s"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// Manifest is an object of any kind.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type Manifest struct {
	apiextensionsv1.JSON `json:",inline"`
}

// BundleApplication is an application of a layer, at one version.
//
// +kubebuilder:validation:XValidation:rule="!has(self.chart) || !has(self.application)",message="an application must have a chart of its own, or be one of the catalogue (application), not both"
type BundleApplication struct {
	// Name of the application in the layer, and of its HelmRelease.
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of an application must be of small letters, digits and dashes"
	// +required
	Name string `json:"name"`
	// Application names the HelmApplication. Defaults to name.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Application string `json:"application,omitempty"`
	// Chart that the application installs, instead of one of the catalogue; its version
	// is by default the application's. The namespace is made where it is missing, and
	// stays when the application goes.
	// +optional
	Chart *ChartSource `json:"chart,omitempty"`
	// Version of the HelmApplication, or of the chart, exactly.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^v?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z]([0-9A-Za-z.-]*[0-9A-Za-z])?)?$`
	// +required
	Version string `json:"version"`
	// When is an expression of CEL over inputs, cluster and instance. The application is
	// there while it is true; without it, always. What depends on one that is not there
	// depends on what that depends on.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	When string `json:"when,omitempty"`
	// ForEach is an expression of CEL that comes to a list of names, or of objects with a
	// name: the application is there once for each of them, named NAME-ITEM, with the
	// object as item in its templates and in when.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	ForEach string `json:"forEach,omitempty"`
	// Namespace to install into; a text with templates. Defaults to that of the
	// HelmApplication, and without that to name.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// ReleaseName of the Helm release; a text with templates. Defaults to that of
	// the HelmApplication, and without that to name.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	ReleaseName string `json:"releaseName,omitempty"`
	// Values over those of the HelmApplication, with templates in texts: ${...}
	// with an expression of CEL over inputs, cluster and instance.
	// +optional
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
	// ValuesFrom lists ConfigMaps and Secrets of the application's namespace, on its
	// cluster or, where they are not there, beside Flux, with further values,
	// under the values given here. It is the way of everything secret.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	ValuesFrom []ValuesReference `json:"valuesFrom,omitempty"`
	// Parameters as in a HelmApplication, with templates in their values; they win
	// over values.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +optional
	Parameters []Parameter `json:"parameters,omitempty"`
	// Requires refines what the HelmApplication requires, by its name, with templates in the
	// provider and in the parameters; or adds to it.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	// +optional
	Requires []CapabilityRequirement `json:"requires,omitempty"`
	// DependsOn names applications of the same layer that must be ready before.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=53
	// +listType=set
	// +optional
	DependsOn []string `json:"dependsOn,omitempty"`
	// ReleaseSettings as in a HelmApplication, which they win over.
	ReleaseSettings `json:",inline"`
	// Ready as in a HelmApplication, which it wins over.
	// +kubebuilder:validation:XValidation:rule="self in ['', 'Healthy', 'Applied']",message="ready must be Healthy (wait until all that the chart has made is) or Applied (wait until it is made)"
	// +optional
	Ready ApplicationReadiness `json:"ready,omitempty"`
}

// ValuesReference names a ConfigMap or Secret with values of a chart.
type ValuesReference struct {
	// Kind is ConfigMap or Secret.
	// +kubebuilder:validation:XValidation:rule="self in ['ConfigMap', 'Secret']",message="kind must be ConfigMap or Secret"
	// +required
	Kind string `json:"kind"`
	// Name of the object; a text with templates.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Name string `json:"name"`
	// ValuesKey is the key that holds the values. Defaults to values.yaml.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ValuesKey string `json:"valuesKey,omitempty"`
	// TargetPath is where in the values the key's one value goes; empty for the key
	// to hold a document of values.
	// +kubebuilder:validation:MaxLength=250
	// +optional
	TargetPath string `json:"targetPath,omitempty"`
	// Optional is true where the object may be missing.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// BundleCluster says where the kubeconfig of a cluster appears.
//
// +kubebuilder:validation:XValidation:rule="has(self.kubeConfig) || has(self.secretRef) || has(self.__namespace__)",message="kubeConfig is missing: its secretRef names the Secret with the kubeconfig"
// +kubebuilder:validation:XValidation:rule="!has(self.kubeConfig) || has(self.kubeConfig.secretRef.__namespace__) || has(self.__namespace__)",message="kubeConfig.secretRef.namespace is missing: it is where the Secret is"
type BundleCluster struct {
	// KubeConfig names the Secret with the kubeconfig. It is required. Where an old
	// field stands in its place, the API server names that field.
	// +optional
	KubeConfig BundleKubeConfig `json:"kubeConfig,omitzero"`

	OldBundleClusterWords `json:",inline"`

	// Labels of the RemoteCluster, with templates in their values.
	// +kubebuilder:validation:MaxProperties=50
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Interval as in RemoteClusters.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="interval must be at least 1s"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// DeletionPolicy as in RemoteClusters. The layers of the bundle that are on the
	// cluster follow it, too, when they go with the cluster.
	// +kubebuilder:validation:XValidation:rule="self in ['', 'Delete', 'Orphan', 'Abandon']",message="deletionPolicy must be Delete (uninstall what is there), Orphan (leave it without owner) or Abandon (leave it, and do not contact the cluster)"
	// +optional
	DeletionPolicy ClusterDeletionPolicy `json:"deletionPolicy,omitempty"`
}

// BundleKubeConfig says where the kubeconfig of a cluster appears: on the cluster that the
// layer is on.
type BundleKubeConfig struct {
	// SecretRef names the Secret.
	// +required
	SecretRef TemplatedSecretKey `json:"secretRef"`
}

// TemplatedSecretKey names a key of a Secret whose name is a text with templates.
type TemplatedSecretKey struct {
	// Name of the Secret; a text with templates.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Name string `json:"name"`
	// Namespace of the Secret, and of the RemoteCluster that is made for it; a text
	// with templates. The RemoteCluster of a layer that itself is on a RemoteCluster is
	// in the namespace of that one, and this is where on that cluster the Secret is. It is
	// required. Where an old field stands in its place, the API server names that field.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Key of the Secret's data. Where it is not given, value, config,
	// kubeconfig and Config are tried.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Key string `json:"key,omitempty"`
}

// BundleJob is a Job that is run for a layer.
type BundleJob struct {
	// Name of the Job; a digest of its content is put behind it.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a job must be of small letters, digits and dashes"
	// +required
	Name string `json:"name"`
	// Namespace of the Job; a text with templates.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Namespace string `json:"namespace"`
	// Spec of the Job as batch/v1 has it, with templates in texts.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +required
	Spec apiextensionsv1.JSON `json:"spec"`
}

// ApplicationBundle is one version of a set of applications that were tested
// together.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=applicationbundles,scope=Cluster,shortName=bundle
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Family",type=string,JSONPath=`.spec.family`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Preview",type=boolean,JSONPath=`.spec.preview`,priority=1
// +kubebuilder:printcolumn:name="End of life",type=string,JSONPath=`.spec.endOfLife`,priority=1
// +kubebuilder:printcolumn:name="Platforms",type=integer,JSONPath=`.status.platforms`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,priority=1
type ApplicationBundle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec ApplicationBundleSpec `json:"spec,omitempty"`
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status ApplicationBundleStatus `json:"status,omitempty"`
}

// ApplicationBundleList is a list of ApplicationBundles.
//
// +kubebuilder:object:root=true
type ApplicationBundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ApplicationBundle `json:"items"`
}
