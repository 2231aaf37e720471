// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterDiscoveryKind is the kind of ClusterDiscovery.
const ClusterDiscoveryKind = "ClusterDiscovery"

// DiscoveredKind is a kind of objects that stand for clusters.
type DiscoveredKind string

const (
	// DiscoveredCluster is a Cluster of Cluster API (cluster.x-k8s.io).
	DiscoveredCluster DiscoveredKind = "Cluster"
	// DiscoveredClusterProfile is a ClusterProfile of SIG Multicluster's inventory
	// (multicluster.x-k8s.io).
	DiscoveredClusterProfile DiscoveredKind = "ClusterProfile"
	// DiscoveredHostCluster is a HostCluster, which Strata's controller of hosts keeps.
	DiscoveredHostCluster DiscoveredKind = "HostCluster"
)

// ClusterDiscoverySpec says of which objects RemoteClusters are made, and how.
type ClusterDiscoverySpec struct {
	// Kind of the objects, in the namespace of the ClusterDiscovery: Cluster, of Cluster
	// API, ClusterProfile, of SIG Multicluster's inventory, or HostCluster. It cannot change.
	// +kubebuilder:validation:XValidation:rule="self in ['Cluster', 'ClusterProfile', 'HostCluster']",message="kind must be Cluster (of Cluster API), ClusterProfile (of the inventory of SIG Multicluster) or HostCluster"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="kind cannot change: make another ClusterDiscovery"
	// +required
	Kind DiscoveredKind `json:"kind"`

	// Selector selects the objects by their labels. An empty one selects all.
	// +required
	Selector metav1.LabelSelector `json:"selector"`

	// Template is what the RemoteClusters have besides what their objects say.
	// +optional
	Template RemoteClusterTemplate `json:"template,omitempty,omitzero"`
}

// RemoteClusterTemplate is what all RemoteClusters of a ClusterDiscovery have.
type RemoteClusterTemplate struct {
	// Labels of the RemoteClusters. They win over those of the objects.
	// +kubebuilder:validation:MaxProperties=50
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Interval as in RemoteClusters.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="interval must be at least 1s"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// Unreachable as in RemoteClusters.
	// +optional
	Unreachable UnreachableSpec `json:"unreachable,omitempty,omitzero"`
	// DeletionPolicy as in RemoteClusters, for when the object goes or is not selected
	// any more. It defaults to Abandon, since the cluster of an object that goes is gone,
	// too, or somebody else's. With Delete and Orphan a cluster whose object is gone and
	// which does not answer is abandoned.
	// +kubebuilder:validation:XValidation:rule="self in ['Wait', 'Delete', 'Orphan', 'Abandon']",message="deletionPolicy must be Wait (until no layer is there), Delete (uninstall what Platforms have there), Orphan (leave it without owner) or Abandon (leave it, and do not contact the cluster)"
	// +optional
	DeletionPolicy ClusterDeletionPolicy `json:"deletionPolicy,omitempty"`
}

// ClusterDiscoveryStatus says what was found.
type ClusterDiscoveryStatus struct {
	// ObservedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Selected counts the objects that are selected.
	// +optional
	Selected int32 `json:"selected,omitempty"`

	// Clusters counts the RemoteClusters that were made of objects and are not being
	// deleted.
	// +optional
	Clusters int32 `json:"clusters,omitempty"`

	// Ready counts those of them that are ready.
	// +optional
	Ready int32 `json:"ready,omitempty"`

	// Problems says, for the first ten objects of which no RemoteCluster can be made or
	// changed, why.
	// +kubebuilder:validation:MaxItems=100
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

// ClusterDiscovery makes a RemoteCluster of each cluster that somebody else makes, in its
// own namespace: of Clusters of Cluster API, of ClusterProfiles, or of HostClusters. A user who may write one may
// have RemoteClusters made there, with the kubeconfigs that lie there.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterdiscoveries,scope=Namespaced,shortName=cdisc
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.kind`
// +kubebuilder:printcolumn:name="Selected",type=integer,JSONPath=`.status.selected`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clusters`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name of a ClusterDiscovery must have at most 63 characters"
type ClusterDiscovery struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec ClusterDiscoverySpec `json:"spec,omitempty"`
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status ClusterDiscoveryStatus `json:"status,omitempty"`
}

// ClusterDiscoveryList is a list of ClusterDiscoveries.
//
// +kubebuilder:object:root=true
type ClusterDiscoveryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterDiscovery `json:"items"`
}
