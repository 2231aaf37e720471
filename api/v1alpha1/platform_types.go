// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlatformKind is the kind of Platform.
const PlatformKind = "Platform"

// PlatformSpec says what is installed, on which clusters, and how these are moved
// to another version.
//
// +kubebuilder:validation:XValidation:rule="has(self.bundle) || has(self.layers) || has(self.applications)",message="a platform must have a bundle or layers, applications, or both"
// +kubebuilder:validation:XValidation:rule="has(self.instanceName) == has(oldSelf.instanceName) && (!has(self.instanceName) || self.instanceName == oldSelf.instanceName)",message="instanceName is in the names of what is installed and cannot change: make another Platform"
// +kubebuilder:validation:XValidation:rule="!(has(self.bundle) && has(self.layers))",message="a platform must have a bundle that is published, or layers of its own, not both"
type PlatformSpec struct {
	// Bundle that is installed.
	// +optional
	Bundle *PlatformBundle `json:"bundle,omitempty"`

	// Layers that are installed instead of a bundle that somebody has published, written
	// as in bundles. Strata makes a bundle of them that is named by its content, so that a
	// change of them goes to the clusters as another version does. Their templates have
	// the inputs that the platform gives.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=name
	// +optional
	Layers []BundleLayer `json:"layers,omitempty"`

	// Applications that are installed beside the bundle, with all that they depend
	// on. Their versions are chosen so that they fit together, and are kept in
	// status.lock.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=name
	// +optional
	Applications []PlatformApplication `json:"applications,omitempty"`

	// Capabilities lists those that the clusters have, wherever they come from, as
	// category/type: of the platform's own layers and applications it is not told that none
	// of them provides these.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=127
	// +listType=set
	// +optional
	Capabilities []string `json:"capabilities,omitempty"`

	// Clusters names the RemoteClusters to install on. Without them, and without
	// clusterSelector, it is the cluster that Strata runs in.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=500
	// +listType=atomic
	// +optional
	Clusters []ClusterReference `json:"clusters,omitempty"`

	// ClusterSelector selects RemoteClusters to install on by their labels, besides
	// those that clusters names.
	// +optional
	ClusterSelector *ClusterSelector `json:"clusterSelector,omitempty"`

	// InstanceName is what instance.name is in the templates of bundles, and in the names of
	// clusters that these make: a text with templates over cluster, such as
	// "${cluster.labels.tenant}", which must come to another name on each cluster. Defaults
	// to the names of the platform and of the cluster. A cluster keeps the name that it was
	// given first.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	InstanceName string `json:"instanceName,omitempty"`

	// DependsOn lists other Platforms that come before this one. A cluster that both
	// are installed on waits for what the other one has there, for as long as it has
	// it; otherwise the first installation on a cluster waits for all of the other one.
	// A cluster that a bundle has made waits for the Platform of that without being
	// told. None of these Platforms is deleted before this one.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	DependsOn []PlatformDependency `json:"dependsOn,omitempty"`

	// Inputs of the bundle by name; they win over inputsFrom.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Inputs *apiextensionsv1.JSON `json:"inputs,omitempty"`

	// InputsFrom lists ConfigMaps with inputs: a key for each, with a text as its
	// value that is read by the input's type. Later ones win over earlier ones.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	InputsFrom []InputsReference `json:"inputsFrom,omitempty"`

	// Overrides are inputs of some of the clusters, which win over inputs and inputsFrom.
	// Of several that select a cluster the later win, each input as a whole.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Overrides []InputsOverride `json:"overrides,omitempty"`

	// Upgrade says when and how far clusters are moved to newer versions.
	// +optional
	Upgrade UpgradeSpec `json:"upgrade,omitempty,omitzero"`

	// Rollout says which clusters are moved before which.
	// +optional
	Rollout RolloutSpec `json:"rollout,omitempty,omitzero"`

	// Hold stops everything that the platform does: layers stay as they are, and are
	// still looked after. Its deletion goes on.
	// +optional
	Hold bool `json:"hold,omitempty"`

	// ServiceAccountName of the layers, an account of the controller's namespace or,
	// of a layer that has a source of its own, of that one's.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="serviceAccountName must be the name of a ServiceAccount in the controller's namespace"
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// LayerTemplate says what all layers of the platform have besides what its bundle
	// says.
	// +optional
	LayerTemplate *LayerTemplate `json:"layerTemplate,omitempty"`

	// DeletionPolicy of the layers: Delete (the default) uninstalls everything, Orphan
	// leaves it without owner, and Abandon does the same and does not even contact
	// other clusters.
	// +kubebuilder:validation:XValidation:rule="self in ['Delete', 'Orphan', 'Abandon']",message="deletionPolicy must be Delete (uninstall everything), Orphan (leave it without owner) or Abandon (leave it, and do not contact other clusters)"
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// PlatformBundle names the bundle of a platform.
type PlatformBundle struct {
	// Family of the bundle.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="family must be a name of small letters, digits and dashes"
	// +required
	Family string `json:"family"`
	// Version of the bundle: exactly, as 1.2.0, or a range such as ">=1.2 <2".
	// Empty for any.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Version string `json:"version,omitempty"`
}

// PlatformApplication is one application that is picked.
type PlatformApplication struct {
	// Name of the HelmApplication.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	// +required
	Name string `json:"name"`
	// Version: exactly, or a range. Empty for any.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Version string `json:"version,omitempty"`
	// Namespace to install into. Defaults to that of the HelmApplication, and without
	// that to name.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be the name of a namespace"
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Values over those of the HelmApplication, with templates in texts over cluster
	// and instance.
	// +optional
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
	// ValuesFrom as in bundles.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	ValuesFrom []ValuesReference `json:"valuesFrom,omitempty"`
}

// LayerTemplate is what all layers of a platform have. Where a field is not given it is,
// on each layer, whose layer that is: what people set there stays.
type LayerTemplate struct {
	// Labels of the objects that the layers list, such as HelmReleases and
	// RemoteClusters, and of the layers.
	// +kubebuilder:validation:MaxProperties=50
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Interval as in AddonsLayers.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="interval must be at least 1s"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// OrphanGrace as in AddonsLayers.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="orphanGrace must not be negative"
	// +optional
	OrphanGrace *metav1.Duration `json:"orphanGrace,omitempty"`
	// Timeout as in AddonsLayers, for layers of which the bundle says none.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="timeout must be at least 1s"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// WatchHealth as in AddonsLayers, for layers of which the bundle says nothing of it.
	// +optional
	WatchHealth *HealthWatch `json:"watchHealth,omitempty"`
	// Releases says how Flux looks after the releases; it wins over bundle and
	// catalogue.
	// +optional
	Releases *ReleaseSettings `json:"releases,omitempty"`
}

// PlatformDependency names a Platform that comes before another one.
type PlatformDependency struct {
	// Name of the Platform.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
	// Layer of that Platform's bundle that is waited for. Empty for all that it has.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="layer must be the name of a layer of the other Platform's bundle"
	// +optional
	Layer string `json:"layer,omitempty"`
}

// ClusterSelector selects RemoteClusters.
type ClusterSelector struct {
	metav1.LabelSelector `json:",inline"`
	// Namespace of the RemoteClusters; empty for all.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// MinClusters is on how many clusters the platform is to be, at the least, before it is
	// Ready. Defaults to 1; with 0 it is Ready on none.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MinClusters *int32 `json:"minClusters,omitempty"`
}

// InputsReference names a ConfigMap with inputs.
type InputsReference struct {
	// Namespace of the ConfigMap. Defaults to the controller's own.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="inputsFrom.namespace must be the name of a namespace"
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// Optional is true where the ConfigMap may be missing.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// InputsOverride are inputs of the clusters that it selects.
type InputsOverride struct {
	// Selector of the clusters by the labels of their RemoteClusters. The cluster that
	// Strata runs in has none.
	// +required
	Selector metav1.LabelSelector `json:"selector"`
	// Inputs by name.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +required
	Inputs apiextensionsv1.JSON `json:"inputs"`
}

// PlatformStatus says how a platform fares. Nothing in it grows with the fleet.
type PlatformStatus struct {
	// ObservedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Version of the bundle that the clusters are, or are being, moved to.
	// +optional
	Version string `json:"version,omitempty"`

	// Available is the newest version that the platform could be given, where that is
	// another one.
	// +optional
	Available string `json:"available,omitempty"`

	// Lock holds the versions of the picked applications and of what they depend on.
	// +optional
	Lock *PlatformLock `json:"lock,omitempty"`

	// Clusters counts the clusters.
	// +kubebuilder:default={}
	// +optional
	Clusters ClusterCount `json:"clusters,omitempty"`

	// Layers counts the layers.
	// +kubebuilder:default={}
	// +optional
	Layers LayerCount `json:"layers,omitempty"`

	// Stages of the roll-out.
	// +kubebuilder:validation:MaxItems=21
	// +listType=atomic
	// +optional
	Stages []StageStatus `json:"stages,omitempty"`

	// Rollout remembers how far the roll-out has come.
	// +optional
	Rollout *RolloutProgress `json:"rollout,omitempty"`

	// Approvals of stages, the last first.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Approvals []StageApproval `json:"approvals,omitempty"`

	// Worst names the clusters that are worst off, at most ten.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Worst []ClusterTrouble `json:"worst,omitempty"`

	// NextChange is when something may begin although nothing else has changed, such
	// as the opening of a window.
	// +optional
	NextChange *metav1.Time `json:"nextChange,omitempty"`

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

// PlatformLock holds chosen versions, which stay until what they were chosen from
// changes.
type PlatformLock struct {
	// Digest of what they were chosen from.
	Digest string `json:"digest"`
	// Bundle is the name of the ApplicationBundle that was made of them.
	// +optional
	Bundle string `json:"bundle,omitempty"`
	// Applications in the order of their installation.
	// +kubebuilder:validation:MaxItems=500
	// +listType=atomic
	// +optional
	Applications []LockedApplication `json:"applications,omitempty"`
}

// LockedApplication is one application of a lock.
type LockedApplication struct {
	// Name of the HelmApplication.
	Name string `json:"name"`
	// Version that was chosen.
	Version string `json:"version"`
	// Why it is there.
	// +optional
	Why string `json:"why,omitempty"`
}

// ClusterCount counts clusters. A number that is not there is 0.
type ClusterCount struct {
	// Total number of clusters.
	// +kubebuilder:default=0
	// +optional
	Total int32 `json:"total"`
	// Ready clusters: all of their layers are deployed at the platform's version.
	// +kubebuilder:default=0
	// +optional
	Ready int32 `json:"ready"`
	// Progressing clusters, on which something is being done.
	// +kubebuilder:default=0
	// +optional
	Progressing int32 `json:"progressing"`
	// Waiting clusters, which are well at another version.
	// +kubebuilder:default=0
	// +optional
	Waiting int32 `json:"waiting"`
	// Failed clusters.
	// +kubebuilder:default=0
	// +optional
	Failed int32 `json:"failed"`
	// Unreachable clusters, which catch up when they are back.
	// +kubebuilder:default=0
	// +optional
	Unreachable int32 `json:"unreachable"`
}

// ClusterTrouble says what is wrong on a cluster.
type ClusterTrouble struct {
	// Cluster as namespace/name of a RemoteCluster; empty for the cluster that Strata
	// runs in.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// Stage that the cluster is in.
	// +optional
	Stage string `json:"stage,omitempty"`
	// Reason in plain words.
	Reason string `json:"reason"`
}

// Platform is a bundle, and picked applications, installed on clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=platforms,scope=Cluster,shortName=plat
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Bundle",type=string,JSONPath=`.spec.bundle.family`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clusters.total`
// +kubebuilder:printcolumn:name="Up to date",type=integer,JSONPath=`.status.clusters.ready`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.clusters.failed`,priority=1
// +kubebuilder:printcolumn:name="Unreachable",type=integer,JSONPath=`.status.clusters.unreachable`,priority=1
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.available`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name of a Platform must have at most 63 characters: it is the value of a label on every layer of it"
type Platform struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec PlatformSpec `json:"spec,omitempty"`
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status PlatformStatus `json:"status,omitempty"`
}

// PlatformList is a list of Platforms.
//
// +kubebuilder:object:root=true
type PlatformList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Platform `json:"items"`
}
