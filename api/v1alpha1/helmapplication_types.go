// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HelmApplicationKind is the kind of HelmApplication.
const HelmApplicationKind = "HelmApplication"

// HelmApplicationSpec is one entry of the catalogue: what an application is, and
// the versions of it that there are.
//
// +kubebuilder:validation:XValidation:rule="self.versions.all(v, has(v.chart)) || has(self.defaults) && has(self.defaults.chart)",message="each version must have a chart, or defaults must"
type HelmApplicationSpec struct {
	// Description says in a sentence or two what the application is for.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`

	// Documentation is the URL at which people read about the application.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^https?://.+')",message="documentation must be a URL that begins with https:// or http://"
	// +optional
	Documentation string `json:"documentation,omitempty"`

	// License that the application is under, best as an SPDX expression such as
	// Apache-2.0.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	License string `json:"license,omitempty"`

	OldApplicationWords `json:",inline"`

	// Icon is a picture for catalogues that people look at: a URL, or a data: URI.
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="self == '' || self.startsWith('https://') || self.startsWith('http://') || self.startsWith('data:image/')",message="icon must be a URL or begin with data:image/"
	// +optional
	Icon string `json:"icon,omitempty"`

	// Tags group applications for people, such as network or database.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Tags []string `json:"tags,omitempty"`

	// Defaults are what all versions share. They are a part of each: a change of them
	// changes what was published, and stalls the application.
	// +optional
	Defaults *ApplicationContent `json:"defaults,omitempty"`

	// Versions of the application, in any order. What a version is made of cannot
	// change once it is published: add another one.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.version.startsWith('v') || !self.exists(b, 'v' + b.version == a.version))",message="versions must not hold one version twice: v1.0.0 and 1.0.0 are the same"
	// +listType=map
	// +listMapKey=version
	// +required
	Versions []HelmApplicationVersion `json:"versions"`
}

// ApplicationContent is what is installed of an application, and what it needs: of one
// version, or of all where it is what they share.
type ApplicationContent struct {
	// Chart that the version installs. It may be left out where defaults have one.
	// +optional
	Chart ChartSource `json:"chart,omitzero"`

	// ReleaseName is the name of the Helm release. Defaults to the name under which
	// the application is installed.
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="releaseName must be a name of small letters, digits and dashes"
	// +optional
	ReleaseName string `json:"releaseName,omitempty"`

	// Namespace that the application is installed into. Defaults to the name under
	// which it is installed.
	// +optional
	Namespace *ApplicationNamespace `json:"namespace,omitempty"`

	// Values of the chart. Whoever installs the application may add to them.
	// +optional
	Values *apiextensionsv1.JSON `json:"values,omitempty"`

	// Parameters are single values in the manner of helm --set; they win over
	// values.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +optional
	Parameters []Parameter `json:"parameters,omitempty"`

	// ServerSideApply says how Helm writes the objects of the chart: true or false;
	// left out, as helm-controller does by itself.
	// +optional
	ServerSideApply *bool `json:"serverSideApply,omitempty"`

	ReleaseSettings `json:",inline"`

	// IgnoreDifferences lists fields that others may change: they are not taken
	// back.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	IgnoreDifferences []IgnoredDifference `json:"ignoreDifferences,omitempty"`

	// Ready says when the application counts as ready: Healthy (the default), when
	// all that it has made is; Applied, when it is made, for what cannot be healthy
	// before something later is there.
	// +kubebuilder:validation:XValidation:rule="self in ['Healthy', 'Applied']",message="ready must be Healthy (wait until all that the chart has made is) or Applied (wait until it is made)"
	// +optional
	Ready ApplicationReadiness `json:"ready,omitempty"`

	// Timeout of one action of Helm. Defaults to 5m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="timeout must be at least 1s"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// DependsOn lists the applications that must be installed before this one.
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=name
	// +optional
	DependsOn []ApplicationRequirement `json:"dependsOn,omitempty"`

	// Recommends lists applications that are installed beside this one where they can
	// be.
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=name
	// +optional
	Recommends []ApplicationRequirement `json:"recommends,omitempty"`

	// Requires lists the capabilities that the application needs, wherever they come from.
	// A CapabilityClaim is made for each, and the release waits for it.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	// +optional
	Requires []CapabilityRequirement `json:"requires,omitempty"`

	// ValuesFrom lists values of the chart that come from what is required.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	ValuesFrom []BindingValue `json:"valuesFrom,omitempty"`

	// Provides lists the capabilities that the application has, once it is ready. A
	// CapabilityProvider is made for each, named after the layer, the application and it.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	// +optional
	Provides []ProvidedCapability `json:"provides,omitempty"`

	// KubeVersion is the range of Kubernetes versions that the version runs on: a
	// minimum such as 1.31, or a range such as >=1.31 <1.36. Empty for any.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	KubeVersion string `json:"kubeVersion,omitempty"`
}

// HelmApplicationVersion is one version of an application: a chart, and how it is
// installed.
//
// +kubebuilder:validation:XValidation:rule="has(self.chart) == has(oldSelf.chart) && (!has(self.chart) || self.chart == oldSelf.chart)",message="a version that is published cannot get another chart: add another version"
// +kubebuilder:validation:XValidation:rule="has(self.releaseName) == has(oldSelf.releaseName) && (!has(self.releaseName) || self.releaseName == oldSelf.releaseName)",message="a version that is published cannot get another releaseName: add another version"
// +kubebuilder:validation:XValidation:rule="has(self.__namespace__) == has(oldSelf.__namespace__) && (!has(self.__namespace__) || self.__namespace__.name == oldSelf.__namespace__.name)",message="a version that is published cannot get another namespace: add another version"
// +kubebuilder:validation:XValidation:rule="has(self.parameters) == has(oldSelf.parameters) && (!has(self.parameters) || self.parameters == oldSelf.parameters)",message="a version that is published cannot get other parameters: add another version"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.dependencies) || has(self.dependsOn) == has(oldSelf.dependsOn) && (!has(self.dependsOn) || self.dependsOn == oldSelf.dependsOn)",message="a version that is published cannot get other dependencies: add another version"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.recommendations) || has(self.recommends) == has(oldSelf.recommends) && (!has(self.recommends) || self.recommends == oldSelf.recommends)",message="a version that is published cannot get other recommendations: add another version"
// +kubebuilder:validation:XValidation:rule="has(self.valuesFrom) == has(oldSelf.valuesFrom) && (!has(self.valuesFrom) || self.valuesFrom == oldSelf.valuesFrom)",message="a version that is published cannot get other values: add another version"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.kubernetes) || has(self.kubeVersion) == has(oldSelf.kubeVersion) && (!has(self.kubeVersion) || self.kubeVersion == oldSelf.kubeVersion)",message="a version that is published cannot get another range of Kubernetes versions: add another version"
type HelmApplicationVersion struct {
	// Version is a semantic version; v1.0.0 and 1.0.0 are the same.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^v?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z]([0-9A-Za-z.-]*[0-9A-Za-z])?)?$`
	// +required
	Version string `json:"version"`

	ApplicationContent `json:",inline"`

	OldVersionWords `json:",inline"`

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
}

// ReleaseSettings says how Flux looks after a release.
type ReleaseSettings struct {
	// Interval at which Flux looks at a release to which nothing has happened, and takes
	// back what others have changed of its objects. Defaults to 15m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s')",message="interval must be at least 10s"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// DriftDetection says what happens to what others have changed of its objects:
	// Enabled (the default) takes it back, Warn tells of it, and Disabled does not look.
	// +kubebuilder:validation:XValidation:rule="self in ['', 'Enabled', 'Warn', 'Disabled']",message="driftDetection must be Enabled (take back what others change), Warn (tell of it) or Disabled (do not look)"
	// +optional
	DriftDetection DriftDetection `json:"driftDetection,omitempty"`
}

// DriftDetection says what happens to what others change of a release's objects.
type DriftDetection string

const (
	// DriftDetectionEnabled takes it back.
	DriftDetectionEnabled DriftDetection = "Enabled"
	// DriftDetectionWarn tells of it in an event.
	DriftDetectionWarn DriftDetection = "Warn"
	// DriftDetectionDisabled does not look.
	DriftDetectionDisabled DriftDetection = "Disabled"
)

// ApplicationReadiness says when an application counts as ready.
type ApplicationReadiness string

const (
	// ApplicationHealthy waits until all that the chart has made is healthy.
	ApplicationHealthy ApplicationReadiness = "Healthy"
	// ApplicationApplied waits until the chart's objects are made.
	ApplicationApplied ApplicationReadiness = "Applied"
)

// ApplicationNamespace is the namespace that an application is installed into.
type ApplicationNamespace struct {
	// Name of the namespace.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace.name must be the name of a namespace"
	// +required
	Name string `json:"name"`
	// Create makes the namespace where it is missing. It stays when the application
	// goes.
	// +optional
	Create bool `json:"create,omitempty"`
	// Labels that the namespace gets where it is created.
	// +kubebuilder:validation:MaxProperties=50
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations that the namespace gets where it is created.
	// +kubebuilder:validation:MaxProperties=50
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Parameter is one value of a chart in the manner of helm --set.
type Parameter struct {
	// Name is the path of the value, such as controller.replicas or hosts[0].name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	Name string `json:"name"`
	// Value as helm --set reads it: true and 3 are no strings, null takes back what
	// the chart has, and {a,b} is a list. In any other value commas are its own.
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Value string `json:"value"`
}

// IgnoredDifference is what others may change of the objects of a chart.
type IgnoredDifference struct {
	// Group of the objects; empty for the core group.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`
	// Kind of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Kind string `json:"kind"`
	// Namespace of the objects; empty for any.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object; empty for any.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
	// Paths of the fields as JSON pointers, such as /spec/replicas.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^/`
	// +listType=atomic
	// +required
	Paths []string `json:"paths"`
}

// ApplicationRequirement names another application, at a range of versions.
type ApplicationRequirement struct {
	// Name of the HelmApplication.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// Range of versions, such as ">=1.2 <2" or ^1.4. Empty for any.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Range string `json:"range,omitempty"`
}

// PublishedValue is a key of a binding, with a text.
type PublishedValue struct {
	// Key of the binding's Secret, such as url. type and provider are given.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]+$`
	// +required
	Key string `json:"key"`
	// Value is a text with templates over claim, as those of a CapabilityProvider.
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Value string `json:"value"`
}

// BindingValue is a value of a chart that comes from the binding of what is required.
type BindingValue struct {
	// Capability is the name of the requirement.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Capability string `json:"capability"`
	// Key of the binding, such as uri.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Key string `json:"key"`
	// TargetPath is the path of the value in the chart's values, such as database.uri.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=250
	// +required
	TargetPath string `json:"targetPath"`
}

// HelmApplicationStatus says how a catalogue entry fares.
type HelmApplicationStatus struct {
	// ObservedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Latest is the newest version that anybody may be given: no preview, not
	// withdrawn, and not past its end of life.
	// +optional
	Latest string `json:"latest,omitempty"`

	// Published lists what was published: a version that comes with other content
	// is not used.
	// +kubebuilder:validation:MaxItems=200
	// +listType=map
	// +listMapKey=version
	// +optional
	Published []PublishedVersion `json:"published,omitempty"`

	// Bundles is how many ApplicationBundles name the application.
	// +optional
	Bundles int32 `json:"bundles,omitempty"`

	// Problems says what is wrong with which version, the first ten of it.
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

// PublishedVersion is what a version was when it was first seen.
type PublishedVersion struct {
	// Version as it was written.
	Version string `json:"version"`
	// Digest of all of the version that must not change.
	Digest string `json:"digest"`
}

// HelmApplication is an application of the catalogue, with the versions of it that
// can be installed.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=helmapplications,scope=Cluster,shortName=happ
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Latest",type=string,JSONPath=`.status.latest`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Bundles",type=integer,JSONPath=`.status.bundles`,priority=1
// +kubebuilder:printcolumn:name="License",type=string,JSONPath=`.spec.license`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,priority=1
type HelmApplication struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec HelmApplicationSpec `json:"spec,omitempty"`
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status HelmApplicationStatus `json:"status,omitempty"`
}

// HelmApplicationList is a list of HelmApplications.
//
// +kubebuilder:object:root=true
type HelmApplicationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HelmApplication `json:"items"`
}
